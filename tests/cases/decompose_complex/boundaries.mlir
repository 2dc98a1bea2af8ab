// test: pass decompose-complex
// test: roundtrip

// within a function there are two tensors; an argument and a result are one, with both parts along the last axis
// CHECK: @f(%x: tensor<Nx2xf32>, %k: tensor<f32>) -> tensor<Nx2xf32> attributes {complex_args = [0], complex_results = [0]}
// CHECK-NOT: complex<
func.func @f(%x: tensor<Nxcomplex<f32>>, %k: tensor<f32>) -> tensor<Nxcomplex<f32>> {
  %0 = tensor.cast %k : tensor<f32> to tensor<complex<f32>>
  %1 = tensor.mul %x, %0 : (tensor<Nxcomplex<f32>>, tensor<complex<f32>>) -> tensor<Nxcomplex<f32>>
  func.return %1 : tensor<Nxcomplex<f32>>
}
// run: @f([1 + 2j, -1j], 2) ~= [2 + 4j, -2j]
// -----
// a call, a branch and a loop carry the tensor with both parts
func.func private @square(%x: tensor<complex<f64>>) -> tensor<complex<f64>> {
  %0 = tensor.mul %x, %x : tensor<complex<f64>>
  func.return %0 : tensor<complex<f64>>
}
// CHECK: func.call @square(%{{.*}}) : tensor<2xf64>
// CHECK: scf.if %{{.*}} -> (tensor<2xf64>)
func.func @main(%c: tensor<i1>, %x: tensor<complex<f64>>) -> tensor<complex<f64>> {
  %i = tensor.full (0.0, 1.0) : tensor<complex<f64>>
  %0 = tensor.add %x, %i : tensor<complex<f64>>
  %1 = func.call @square(%0) : (tensor<complex<f64>>) -> tensor<complex<f64>>
  %2 = tensor.item %c : (tensor<i1>) -> i1
  %3 = scf.if %2 -> (tensor<complex<f64>>) {
    %4 = tensor.mul %1, %i : tensor<complex<f64>>
    scf.yield %4 : tensor<complex<f64>>
  } else {
    scf.yield %x : tensor<complex<f64>>
  }
  func.return %3 : tensor<complex<f64>>
}
// run: @main(True, 1) == -2
// run: @main(False, 1 + 1j) == 1 + 1j
// -----
// a constant and a value that several blocks use are decomposed once
// CHECK: tensor.constant dense<[1.0, 0.5]>
func.func @f(%x: tensor<2xcomplex<f32>>) -> (tensor<2xcomplex<f32>>, tensor<2xf32>) {
  %0 = tensor.constant dense<[(1.0, 2.0), (0.5, -1.0)]> : tensor<2xcomplex<f32>>
  %1 = tensor.sub %x, %0 : tensor<2xcomplex<f32>>
  %2 = tensor.imag %0 : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  func.return %1, %2 : tensor<2xcomplex<f32>>, tensor<2xf32>
}
// run: @f([1, 1]) ~= ([-2j, 0.5 + 1j], [2, -1])
