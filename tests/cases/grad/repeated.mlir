// test: pass grad

// what is repeated is saved once, and repeated again by the backward half; so is what is repeated twice
func.func private @f(%x: tensor<3xf64>) -> tensor<f64> {
  %0 = tensor.exp %x : tensor<3xf64>
  %1 = tensor.broadcast_to %0 : tensor<3xf64> to tensor<5x3xf64>
  %2 = tensor.broadcast_to %1 : tensor<5x3xf64> to tensor<2x5x3xf64>
  %3 = tensor.mul %2, %2 : tensor<2x5x3xf64>
  %4 = tensor.mul %1, %1 : tensor<5x3xf64>
  %5 = tensor.reduce_sum %3 {axes = [0, 1, 2]} : (tensor<2x5x3xf64>) -> tensor<f64>
  %6 = tensor.reduce_sum %4 {axes = [0, 1]} : (tensor<5x3xf64>) -> tensor<f64>
  %7 = tensor.add %5, %6 : tensor<f64>
  func.return %7 : tensor<f64>
}
func.func @main(%x: tensor<3xf64>) -> tensor<3xf64> {
  %0:2 = autodiff.grad @f(%x) wrt [0] : (tensor<3xf64>) -> (tensor<f64>, tensor<3xf64>)
  func.return %0#1 : tensor<3xf64>
}
// CHECK: @f_backward(%arg0: tensor<f64>, %arg1: tensor<3xf64>) -> tensor<3xf64>
// CHECK: tensor.broadcast_to %arg1
