// test: pass grad
// tolerance: 1e-6

// the forward part stays where it is: the call saves what backward needs
func.func private @layer(%w: tensor<f32>, %x: tensor<Bxf32>) -> tensor<Bxf32> {
  %0 = tensor.broadcast_to %w : tensor<f32> to tensor<Bxf32>
  %1 = tensor.mul %0, %x : tensor<Bxf32>
  %2 = tensor.tanh %1 : tensor<Bxf32>
  func.return %2 : tensor<Bxf32>
}
// CHECK: @main
// CHECK: func.call @layer_forward
// CHECK-NOT: autodiff.backward
// CHECK: func.call @layer_backward
func.func @main(%w: tensor<f32>, %x: tensor<Bxf32>) -> (tensor<f32>, tensor<f32>) {
  %0 = func.call @layer(%w, %x) : (tensor<f32>, tensor<Bxf32>) -> tensor<Bxf32>
  %1 = func.call @layer(%w, %0) : (tensor<f32>, tensor<Bxf32>) -> tensor<Bxf32>
  %loss = tensor.reduce_sum %1 {axes = [0]} : (tensor<Bxf32>) -> tensor<f32>
  %one = tensor.full 1.0 : tensor<f32>
  %dw = autodiff.backward of %loss cotangents %one wrt %w : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %loss, %dw : tensor<f32>, tensor<f32>
}
// run: @main(1.0, [0.0, 0.0]) ~= (0.0, 0.0)
// -----
// the gradient of a gradient; by a value in the middle; a value that does not lead there has zeros
func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  %one = tensor.full 1.0 : tensor<f32>
  %0 = tensor.mul %x, %x : tensor<f32>
  %1 = tensor.mul %0, %x : tensor<f32>
  %first:2 = autodiff.backward of %1 cotangents %one wrt %x, %0 : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %second:2 = autodiff.backward of %first#0 cotangents %one wrt %x, %y : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  func.return %first#0, %first#1, %second#0, %second#1 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}
// run: @main(2.0, 3.0) ~= (12.0, 2.0, 12.0, 0.0)
// -----
// two roots that share a value
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %one = tensor.full 1.0 : tensor<f32>
  %0 = tensor.mul %x, %x : tensor<f32>
  %1 = tensor.mul %0, %0 : tensor<f32>
  %d = autodiff.backward of %0, %1 cotangents %one, %one wrt %x : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %d : tensor<f32>
}
// run: @main(3.0) ~= 114.0
