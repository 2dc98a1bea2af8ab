// test: pass hoist_constants{panels=true} fuse assign_layouts
// tolerance: bits

// Pixels of 512 channels are 2 KiB apart, so that the lines of a window are in two sets of a cache: the padded image has
// a line of channels more, which nobody reads.
func.func @main(%x: tensor<1x3x2x3xf32>, %v: tensor<512x3xf32>, %w: tensor<16x512x3x3xf32>) -> tensor<1x16x2x3xf32> attributes {constants = [1, 2]} {
  %zero = tensor.full 0.0 : tensor<f32>
  %0 = tensor.broadcast_to %v : tensor<512x3xf32> to tensor<1x512x3xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<1x512x3xf32>, tensor<1x3x2x3xf32>) -> tensor<1x512x2x3xf32>
  %2 = tensor.pad %1, %zero {low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0]} : (tensor<1x512x2x3xf32>, tensor<f32>) -> tensor<1x512x4x5xf32>
  %3 = tensor.windows %2 {axis = 2, size = 3} : (tensor<1x512x4x5xf32>) -> tensor<1x512x2x3x5xf32>
  %4 = tensor.windows %3 {axis = 4, size = 3} : (tensor<1x512x2x3x5xf32>) -> tensor<1x512x2x3x3x3xf32>
  %5 = tensor.broadcast_to %w : tensor<16x512x3x3xf32> to tensor<1x16x512x3x3xf32>
  %6 = tensor.dot_general %5, %4 {batch = [[0, 0]], contract = [[2, 1], [3, 3], [4, 5]], order = "chain"} : (tensor<1x16x512x3x3xf32>, tensor<1x512x2x3x3x3xf32>) -> tensor<1x16x2x3xf32>
  func.return %6 : tensor<1x16x2x3xf32>
}
// CHECK: domain = [1, 528, 4, 5]
// CHECK: tensor.pad {{.*}} high = [0, 16, 1, 1]
// CHECK: tensor.yield {{.*}} : tensor<1x4x5x528xf32>
// CHECK: tensor.slice {{.*}} stops = [1, 512, 4, 5]
// CHECK: tensor.dot_general
