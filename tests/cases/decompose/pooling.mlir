// test: pass decompose
// tolerance: bits

// of zeros of both signs, +0 is the maximum
func.func @zeros() -> tensor<2xf32> {
  %0 = tensor.constant dense<[0.0, -0.0, -0.0, -0.0]> : tensor<4xf32>
  %1 = tensor.max_pool %0 {size = [2], stride = [2], low = [0], high = [0]} : (tensor<4xf32>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
}
// CHECK: tensor.reduce_max
// -----
func.func @other_order() -> tensor<1xf32> {
  %0 = tensor.constant dense<[-0.0, 0.0]> : tensor<2xf32>
  %1 = tensor.max_pool %0 {size = [2], stride = [2], low = [0], high = [0]} : (tensor<2xf32>) -> tensor<1xf32>
  func.return %1 : tensor<1xf32>
}
// CHECK: tensor.reduce_max
