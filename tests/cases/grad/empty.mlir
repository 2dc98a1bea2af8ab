// test: pass grad
// test: run

// the cotangent of an axis of no elements has only the padding around them
func.func @f(%x: tensor<Nxf32>, %ct: tensor<(3*N + 3)xf32>) -> tensor<Nxf32> {
  %zero = tensor.full 0.0 : tensor<f32>
  %0 = tensor.pad %x, %zero {low = [1], high = [2], interior = [2]} : (tensor<Nxf32>, tensor<f32>) -> tensor<(3*N + 3)xf32>
  %1 = autodiff.backward of %0 cotangents %ct wrt %x : (tensor<(3*N + 3)xf32>, tensor<(3*N + 3)xf32>, tensor<Nxf32>) -> tensor<Nxf32>
  func.return %1 : tensor<Nxf32>
}
// CHECK: tensor.slice %ct {starts = [1], stops = ["3*N + 1"], steps = [3]}
// run: @f([], [1.0, 2.0, 3.0]) == []
// run: @f([0.0, 0.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]) == [2.0, 5.0]
// -----
func.func @f(%x: tensor<Nxf32>, %ct: tensor<(3*N + 1)xf32>) -> tensor<Nxf32> {
  %zero = tensor.full 0.0 : tensor<f32>
  %0 = tensor.pad %x, %zero {low = [3], high = [-2], interior = [2]} : (tensor<Nxf32>, tensor<f32>) -> tensor<(3*N + 1)xf32>
  %1 = autodiff.backward of %0 cotangents %ct wrt %x : (tensor<(3*N + 1)xf32>, tensor<(3*N + 1)xf32>, tensor<Nxf32>) -> tensor<Nxf32>
  func.return %1 : tensor<Nxf32>
}
// CHECK: tensor.pad %ct, %{{\d+}} {low = [0], high = [2], interior = [0]}
// run: @f([], [1.0]) == []
// run: @f([0.0, 0.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]) == [4.0, 7.0]
