// test: pass canonicalize
// tolerance: bits

// the sum of what is padded alike, as of gradients of slices, is padded once
func.func @alike(%x: tensor<3xf32>, %y: tensor<3xf32>, %z: tensor<3xf32>) -> tensor<6xf32> {
  %0 = tensor.full 0.0 : tensor<f32>
  %1 = tensor.pad %x, %0 {low = [1], high = [2], interior = [0]} : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %2 = tensor.pad %y, %0 {low = [1], high = [2], interior = [0]} : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %3 = tensor.pad %z, %0 {low = [1], high = [2], interior = [0]} : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %4 = tensor.add %1, %2 : tensor<6xf32>
  %5 = tensor.add %4, %3 : tensor<6xf32>
  func.return %5 : tensor<6xf32>
}
// CHECK: @alike
// CHECK: tensor.add %x, %y
// CHECK: tensor.add
// CHECK-NEXT: tensor.pad
// CHECK-NOT: tensor.pad
// -----
// other padding, other values, and padded tensors that are used otherwise stay
func.func @other(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %0 = tensor.full 0.0 : tensor<f32>
  %1 = tensor.full -0.0 : tensor<f32>
  %2 = tensor.pad %x, %0 {low = [1], high = [2], interior = [0]} : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %3 = tensor.pad %y, %0 {low = [2], high = [1], interior = [0]} : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %4 = tensor.add %2, %3 : tensor<6xf32>
  %5 = tensor.pad %x, %1 {low = [1], high = [2], interior = [0]} : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %6 = tensor.pad %y, %1 {low = [1], high = [2], interior = [0]} : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %7 = tensor.add %5, %6 : tensor<6xf32>
  %8 = tensor.pad %y, %0 {low = [1], high = [2], interior = [0]} : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %9 = tensor.add %8, %2 : tensor<6xf32>
  func.return %4, %7, %9, %8 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}
// CHECK: @other
// CHECK: tensor.pad
// CHECK: tensor.pad
// CHECK: tensor.pad
// CHECK: tensor.pad
// CHECK: tensor.pad
// -----
// zeros on one side only: the sum beside is the other value
func.func @seven(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = tensor.full 0.0 : tensor<f32>
  %1 = tensor.full 7.0 : tensor<f32>
  %2 = tensor.pad %x, %0 {low = [1], high = [2], interior = [0]} : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %3 = tensor.pad %y, %1 {low = [1], high = [2], interior = [0]} : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %4 = tensor.add %2, %3 : tensor<6xf32>
  %5 = tensor.pad %y, %0 {low = [1], high = [2], interior = [0]} : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %6 = tensor.pad %x, %1 {low = [1], high = [2], interior = [0]} : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  %7 = tensor.add %6, %5 : tensor<6xf32>
  func.return %4, %7 : tensor<6xf32>, tensor<6xf32>
}
// CHECK: @seven
// CHECK: tensor.pad
// CHECK: tensor.pad
// CHECK: tensor.add
// CHECK: tensor.pad
// CHECK: tensor.pad
// CHECK: tensor.add
