// test: pass decompose
// test: pass decompose canonicalize cse

func.func @main(%x: tensor<Bx4xf32>) -> (tensor<Bx4xf32>, tensor<Bx4xf32>, tensor<Bxf32>) {
  %0 = tensor.softmax %x {axis = 1} : (tensor<Bx4xf32>) -> tensor<Bx4xf32>
  %1 = tensor.gelu %0 : tensor<Bx4xf32>
  %2 = tensor.logsumexp %x {axis = 1} : (tensor<Bx4xf32>) -> tensor<Bxf32>
  func.return %0, %1, %2 : tensor<Bx4xf32>, tensor<Bx4xf32>, tensor<Bxf32>
}
