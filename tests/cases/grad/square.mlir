// test: pass grad
// test: pass grad cse inline canonicalize cse dce
// tolerance: 1e-6

func.func private @f(%x: tensor<Bxf32>) -> tensor<f32> {
  %0 = tensor.mul %x, %x : tensor<Bxf32>
  %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<Bxf32>) -> tensor<f32>
  func.return %1 : tensor<f32>
}
func.func @main(%x: tensor<Bxf32>) -> (tensor<f32>, tensor<Bxf32>) {
  %0:2 = autodiff.grad @f(%x) wrt [0] : (tensor<Bxf32>) -> (tensor<f32>, tensor<Bxf32>)
  func.return %0#0, %0#1 : tensor<f32>, tensor<Bxf32>
}
// run: @main([1.0, 2.0, -3.0]) ~= (14.0, [2.0, 4.0, -6.0])
// run: @main([]) ~= (0.0, [])
// -----
// the gradient of the sum of the gradient of x^3 is 6 x
func.func private @cube(%x: tensor<Bxf32>) -> tensor<f32> {
  %0 = tensor.mul %x, %x : tensor<Bxf32>
  %1 = tensor.mul %0, %x : tensor<Bxf32>
  %2 = tensor.reduce_sum %1 {axes = [0]} : (tensor<Bxf32>) -> tensor<f32>
  func.return %2 : tensor<f32>
}
func.func private @slope(%x: tensor<Bxf32>) -> tensor<f32> {
  %0:2 = autodiff.grad @cube(%x) wrt [0] : (tensor<Bxf32>) -> (tensor<f32>, tensor<Bxf32>)
  %1 = tensor.reduce_sum %0#1 {axes = [0]} : (tensor<Bxf32>) -> tensor<f32>
  func.return %1 : tensor<f32>
}
func.func @main(%x: tensor<Bxf32>) -> tensor<Bxf32> {
  %0:2 = autodiff.grad @slope(%x) wrt [0] : (tensor<Bxf32>) -> (tensor<f32>, tensor<Bxf32>)
  func.return %0#1 : tensor<Bxf32>
}
// run: @main([1.0, -2.0]) ~= [6.0, -12.0]
