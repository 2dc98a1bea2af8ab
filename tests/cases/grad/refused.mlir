// test: verify

func.func private @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  func.return %x : tensor<3xf32>
}
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0:2 = autodiff.grad @f(%x) wrt [0] : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) // error: not a float scalar
  func.return %0#1 : tensor<3xf32>
}
// -----
func.func private @f(%x: tensor<3xi64>) -> tensor<3xi64> {
  func.return %x : tensor<3xi64>
}
func.func @main(%x: tensor<3xi64>) -> tensor<3xi64> {
  %0:2 = autodiff.vjp @f(%x) wrt [0] : (tensor<3xi64>) -> (tensor<3xi64>, tensor<3xi64>) // error: has no derivative
  func.return %0#1 : tensor<3xi64>
}
// -----
func.func @main(%x: tensor<f32>, %y: tensor<2xf32>) -> tensor<f32> {
  %0 = tensor.mul %x, %x : tensor<f32>
  %1 = autodiff.backward of %0 cotangents %y wrt %x : (tensor<f32>, tensor<2xf32>, tensor<f32>) -> tensor<f32> // error: the cotangents have types
  func.return %1 : tensor<f32>
}
