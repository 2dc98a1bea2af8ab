// test: pass grad
// a branch that is nothing but a constant of outside is told the size of it
func.func private @f(%c: tensor<i1>, %x: tensor<3xNxf32>) -> tensor<3xNxf32> {
  %0 = tensor.full 0.5 : tensor<3xNxf32>
  %1 = tensor.item %c : (tensor<i1>) -> i1
  %2 = scf.if %1 -> (tensor<3xNxf32>) {
    %3 = tensor.exp %x : tensor<3xNxf32>
    scf.yield %3 : tensor<3xNxf32>
  } else {
    scf.yield %0 : tensor<3xNxf32>
  }
  func.return %2 : tensor<3xNxf32>
}
func.func @main(%c: tensor<i1>, %x: tensor<3xNxf32>, %ct: tensor<3xNxf32>) -> tensor<3xNxf32> {
  %0:2 = autodiff.vjp @f(%c, %x, %ct) wrt [1] : (tensor<i1>, tensor<3xNxf32>, tensor<3xNxf32>) -> (tensor<3xNxf32>, tensor<3xNxf32>)
  func.return %0#1 : tensor<3xNxf32>
}
func.func @taken(%x: tensor<3xNxf32>, %ct: tensor<3xNxf32>) -> tensor<3xNxf32> {
  %0 = tensor.full 0 : tensor<i1>
  %1:2 = autodiff.vjp @f(%0, %x, %ct) wrt [1] : (tensor<i1>, tensor<3xNxf32>, tensor<3xNxf32>) -> (tensor<3xNxf32>, tensor<3xNxf32>)
  func.return %1#1 : tensor<3xNxf32>
}
