// test: pass grad canonicalize cse dce

// windows that do not overlap: no cotangents are added
func.func @pooled(%x: tensor<2x7xf32>) -> tensor<2x7xf32> {
  %0 = tensor.max_pool %x {size = [2], stride = [2]} : (tensor<2x7xf32>) -> tensor<2x3xf32>
  %1 = tensor.reduce_sum %0 {axes = [0, 1]} : (tensor<2x3xf32>) -> tensor<f32>
  %2 = tensor.full 1.0 : tensor<f32>
  %3 = autodiff.backward of %1 cotangents %2 wrt %x : (tensor<f32>, tensor<f32>, tensor<2x7xf32>) -> tensor<2x7xf32>
  func.return %3 : tensor<2x7xf32>
}
// CHECK-NOT: tensor.place
// CHECK: [[D:%\d+]] = tensor.reshape %{{\d+}} : tensor<2x3x2xf32> to tensor<2x6xf32>
// CHECK-NEXT: tensor.pad [[D]]
// -----
// windows that overlap: they are, each at the place of its maximum
func.func @overlapping(%x: tensor<2x7xf32>) -> tensor<2x7xf32> {
  %0 = tensor.max_pool %x {size = [3], stride = [2]} : (tensor<2x7xf32>) -> tensor<2x3xf32>
  %1 = tensor.reduce_sum %0 {axes = [0, 1]} : (tensor<2x3xf32>) -> tensor<f32>
  %2 = tensor.full 1.0 : tensor<f32>
  %3 = autodiff.backward of %1 cotangents %2 wrt %x : (tensor<f32>, tensor<f32>, tensor<2x7xf32>) -> tensor<2x7xf32>
  func.return %3 : tensor<2x7xf32>
}
// CHECK: [[P:%\d+]] = tensor.reduce_min %{{\d+}} {axes = [2], order = "chain"}
// CHECK: tensor.scatter_along %{{\d+}}, [[P]], %{{\d+}} {axis = 1}
