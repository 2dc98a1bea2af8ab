// test: pass hoist_constants{panels=true} fuse assign_layouts
// tolerance: bits

// The channels of an image between two convolutions are its last axis; arguments and results are in row-major order.
func.func @main(%x: tensor<1x3x4x5xf32>, %v: tensor<16x3xf32>, %w: tensor<16x16x3x3xf32>) -> tensor<1x16x4x5xf32> attributes {constants = [1, 2]} {
  %zero = tensor.full 0.0 : tensor<f32>
  %0 = tensor.broadcast_to %v : tensor<16x3xf32> to tensor<1x16x3xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<1x16x3xf32>, tensor<1x3x4x5xf32>) -> tensor<1x16x4x5xf32>
  %2 = tensor.pad %1, %zero {low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0]} : (tensor<1x16x4x5xf32>, tensor<f32>) -> tensor<1x16x6x7xf32>
  %3 = tensor.windows %2 {axis = 2, size = 3} : (tensor<1x16x6x7xf32>) -> tensor<1x16x4x3x7xf32>
  %4 = tensor.windows %3 {axis = 4, size = 3} : (tensor<1x16x4x3x7xf32>) -> tensor<1x16x4x3x5x3xf32>
  %5 = tensor.broadcast_to %w : tensor<16x16x3x3xf32> to tensor<1x16x16x3x3xf32>
  %6 = tensor.dot_general %5, %4 {batch = [[0, 0]], contract = [[2, 1], [3, 3], [4, 5]], order = "chain"} : (tensor<1x16x16x3x3xf32>, tensor<1x16x4x3x5x3xf32>) -> tensor<1x16x4x5xf32>
  func.return %6 : tensor<1x16x4x5xf32>
}
// CHECK: @main_with_constants(%x: tensor<1x3x4x5xf32>
// CHECK: tensor.yield {{.*}} : tensor<1x4x5x16xf32>
// the padded image is an operand of the second convolution, and has the same layout
// CHECK: tensor.kernel
// CHECK: tensor.transpose %arg{{.*}} {perm = [0, 3, 1, 2]}
// CHECK: tensor.pad
// CHECK: tensor.yield {{.*}} : tensor<1x6x7x16xf32>
// CHECK: tensor.dot_general
// CHECK: tensor.yield {{.*}} : tensor<1x16x4x5xf32>
// -----
// A private function takes and returns images as its callers have them; a view of one axis as two keeps the layout.
func.func private @layer(%x: tensor<1x16x4x6xf32>, %w: tensor<16x16xf32>) -> tensor<1x16x4x6xf32> {
  %0 = tensor.broadcast_to %w : tensor<16x16xf32> to tensor<1x16x16xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<1x16x16xf32>, tensor<1x16x4x6xf32>) -> tensor<1x16x4x6xf32>
  %2 = tensor.add %1, %x : tensor<1x16x4x6xf32>
  func.return %2 : tensor<1x16x4x6xf32>
}
func.func @main(%x: tensor<1x3x4x6xf32>, %v: tensor<16x3xf32>, %w: tensor<16x16xf32>, %u: tensor<16x16xf32>) -> tensor<1x16x2x3xf32> attributes {constants = [1, 2, 3]} {
  %0 = tensor.broadcast_to %v : tensor<16x3xf32> to tensor<1x16x3xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<1x16x3xf32>, tensor<1x3x4x6xf32>) -> tensor<1x16x4x6xf32>
  %2 = func.call @layer(%1, %w) : (tensor<1x16x4x6xf32>, tensor<16x16xf32>) -> tensor<1x16x4x6xf32>
  %3 = func.call @layer(%2, %u) : (tensor<1x16x4x6xf32>, tensor<16x16xf32>) -> tensor<1x16x4x6xf32>
  %4 = tensor.reshape %3 : tensor<1x16x4x6xf32> to tensor<1x16x2x2x3x2xf32>
  %5 = tensor.reduce_max %4 {axes = [3, 5]} : (tensor<1x16x2x2x3x2xf32>) -> tensor<1x16x2x3xf32>
  func.return %5 : tensor<1x16x2x3xf32>
}
// CHECK: func.func private @layer(%x: tensor<1x4x6x16xf32>, {{.*}}) -> tensor<1x4x6x16xf32>
// CHECK: tensor.reshape {{.*}} : tensor<1x4x6x16xf32> to tensor<1x2x2x3x2x16xf32>
// -----
// A view may split the contiguous axis: phases of a transposed convolution, whose channels stay contiguous.
func.func @main(%x: tensor<1x3x4x5xf32>, %v: tensor<64x3xf32>) -> tensor<1x16x8x10xf32> attributes {constants = [1]} {
  %0 = tensor.broadcast_to %v : tensor<64x3xf32> to tensor<1x64x3xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<1x64x3xf32>, tensor<1x3x4x5xf32>) -> tensor<1x64x4x5xf32>
  %2 = tensor.reshape %1 : tensor<1x64x4x5xf32> to tensor<1x2x2x16x4x5xf32>
  %3 = tensor.transpose %2 {perm = [0, 3, 4, 1, 5, 2]} : (tensor<1x2x2x16x4x5xf32>) -> tensor<1x16x4x2x5x2xf32>
  %4 = tensor.reshape %3 : tensor<1x16x4x2x5x2xf32> to tensor<1x16x8x10xf32>
  %5 = tensor.neg %4 : tensor<1x16x8x10xf32>
  func.return %5 : tensor<1x16x8x10xf32>
}
// CHECK: tensor.reshape {{.*}} : tensor<1x4x5x64xf32> to tensor<1x4x5x2x2x16xf32>
// CHECK: tensor.reshape {{.*}} : tensor<1x4x2x5x2x16xf32> to tensor<1x8x10x16xf32>
// -----
// If the calls of a function do not agree, its argument is in row-major order at all of them, but not its result.
func.func private @layer(%x: tensor<1x16x4x5xf32>, %w: tensor<16x16xf32>) -> tensor<1x16x4x5xf32> {
  %0 = tensor.broadcast_to %w : tensor<16x16xf32> to tensor<1x16x16xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<1x16x16xf32>, tensor<1x16x4x5xf32>) -> tensor<1x16x4x5xf32>
  func.return %1 : tensor<1x16x4x5xf32>
}
func.func @main(%x: tensor<1x16x4x5xf32>, %w: tensor<16x16xf32>, %u: tensor<16x16xf32>) -> tensor<1x16x4x5xf32> attributes {constants = [1, 2]} {
  %0 = func.call @layer(%x, %w) : (tensor<1x16x4x5xf32>, tensor<16x16xf32>) -> tensor<1x16x4x5xf32>
  %1 = tensor.mul %0, %0 : tensor<1x16x4x5xf32>
  %2 = func.call @layer(%1, %u) : (tensor<1x16x4x5xf32>, tensor<16x16xf32>) -> tensor<1x16x4x5xf32>
  %3 = tensor.add %2, %2 : tensor<1x16x4x5xf32>
  func.return %3 : tensor<1x16x4x5xf32>
}
// CHECK: func.func private @layer(%x: tensor<1x16x4x5xf32>, {{.*}}) -> tensor<1x4x5x16xf32>
// -----
// What others than kernels read stays as it is: a reshape of several axes as one, here.
func.func @main(%x: tensor<1x3x4x5xf32>, %v: tensor<16x3xf32>) -> tensor<320xf32> attributes {constants = [1]} {
  %0 = tensor.broadcast_to %v : tensor<16x3xf32> to tensor<1x16x3xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<1x16x3xf32>, tensor<1x3x4x5xf32>) -> tensor<1x16x4x5xf32>
  %2 = tensor.reshape %1 : tensor<1x16x4x5xf32> to tensor<320xf32>
  %3 = tensor.mul %2, %2 : tensor<320xf32>
  func.return %3 : tensor<320xf32>
}
// CHECK: tensor.dot_general
// CHECK-NOT: tensor.transpose
// CHECK: tensor.reshape {{.*}} : tensor<1x16x4x5xf32> to tensor<320xf32>
// -----
// an axis of a view is the same as one of its operand if what is before it has as many elements, too
func.func @main(%x: tensor<16x3x4x6xf32>, %v: tensor<16x3xf32>) -> tensor<16x16x2x3xf32> attributes {constants = [1]} {
  %0 = tensor.broadcast_to %v : tensor<16x3xf32> to tensor<16x16x3xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<16x16x3xf32>, tensor<16x3x4x6xf32>) -> tensor<16x16x4x6xf32>
  %2 = tensor.reshape %1 : tensor<16x16x4x6xf32> to tensor<16x16x2x2x3x2xf32>
  %3 = tensor.reduce_max %2 {axes = [3, 5]} : (tensor<16x16x2x2x3x2xf32>) -> tensor<16x16x2x3xf32>
  func.return %3 : tensor<16x16x2x3xf32>
}
// CHECK: tensor.reshape {{.*}} : tensor<16x4x6x16xf32> to tensor<16x2x2x3x2x16xf32>
// -----
// what is added along its last axis in many lanes is in row-major order
func.func @main(%x: tensor<1x3x4x6xf32>, %v: tensor<16x3xf32>) -> tensor<1x16xf32> attributes {constants = [1]} {
  %0 = tensor.broadcast_to %v : tensor<16x3xf32> to tensor<1x16x3xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<1x16x3xf32>, tensor<1x3x4x6xf32>) -> tensor<1x16x4x6xf32>
  %2 = tensor.reduce_sum %1 {axes = [2, 3], order = "lanes<64>"} : (tensor<1x16x4x6xf32>) -> tensor<1x16xf32>
  func.return %2 : tensor<1x16xf32>
}
// CHECK: tensor.unpack
// CHECK-NOT: tensor.transpose
// CHECK: tensor.reduce_sum
// -----
// few lanes can each be a vector of channels
func.func @main(%x: tensor<1x3x4x6xf32>, %v: tensor<16x3xf32>) -> tensor<1x16xf32> attributes {constants = [1]} {
  %0 = tensor.broadcast_to %v : tensor<16x3xf32> to tensor<1x16x3xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<1x16x3xf32>, tensor<1x3x4x6xf32>) -> tensor<1x16x4x6xf32>
  %2 = tensor.reduce_sum %1 {axes = [2, 3], order = "lanes<16>"} : (tensor<1x16x4x6xf32>) -> tensor<1x16xf32>
  func.return %2 : tensor<1x16xf32>
}
// CHECK: tensor.unpack
// CHECK: tensor.transpose
// CHECK: tensor<1x4x6x16xf32>
// CHECK: tensor.reduce_sum
// -----
// not if rows are read again for what the sum is for
func.func @main(%x: tensor<1x3x4x6xf32>, %v: tensor<16x3xf32>) -> tensor<1x16x4x6xf32> attributes {constants = [1]} {
  %0 = tensor.broadcast_to %v : tensor<16x3xf32> to tensor<1x16x3xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<1x16x3xf32>, tensor<1x3x4x6xf32>) -> tensor<1x16x4x6xf32>
  %2 = tensor.reduce_sum %1 {axes = [2, 3], order = "lanes<16>"} : (tensor<1x16x4x6xf32>) -> tensor<1x16xf32>
  %3 = tensor.reshape %2 : tensor<1x16xf32> to tensor<1x16x1x1xf32>
  %4 = tensor.sub %1, %3 : (tensor<1x16x4x6xf32>, tensor<1x16x1x1xf32>) -> tensor<1x16x4x6xf32>
  func.return %4 : tensor<1x16x4x6xf32>
}
// CHECK: tensor.unpack
// CHECK-NOT: tensor<1x4x6x16xf32>
// CHECK: tensor.sub
// -----
// Samples and channels become one axis: as the last axis holds the channels, the image is in row-major order before that.
func.func @main(%x: tensor<2x3x4x5xf32>, %v: tensor<16x3xf32>) -> tensor<32x4x5xf32> attributes {constants = [1]} {
  %0 = tensor.broadcast_to %v : tensor<16x3xf32> to tensor<2x16x3xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<2x16x3xf32>, tensor<2x3x4x5xf32>) -> tensor<2x16x4x5xf32>
  %2 = tensor.reshape %1 : tensor<2x16x4x5xf32> to tensor<32x4x5xf32>
  %3 = tensor.neg %2 : tensor<32x4x5xf32>
  func.return %3 : tensor<32x4x5xf32>
}
// CHECK: tensor.reshape {{.*}} : tensor<2x16x4x5xf32> to tensor<32x4x5xf32>
