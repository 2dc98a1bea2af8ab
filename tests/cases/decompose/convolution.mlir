// test: pass decompose canonicalize cse

// a convolution is one product of the weights and the windows of the image, whose last axes stay where they are
func.func @image(%x: tensor<Bx3x9x9xf32>, %w: tensor<5x3x3x3xf32>) -> tensor<Bx5x9x9xf32> {
  %0 = tensor.convolution %x, %w {low = [1, 1], high = [1, 1]} : (tensor<Bx3x9x9xf32>, tensor<5x3x3x3xf32>) -> tensor<Bx5x9x9xf32>
  func.return %0 : tensor<Bx5x9x9xf32>
}
// CHECK-LABEL: @image
// CHECK: [[Z:%\w+]] = tensor.pad %x
// CHECK: [[A:%\w+]] = tensor.windows [[Z]] {axis = 2, size = 3}
// CHECK: [[B:%\w+]] = tensor.windows [[A]] {axis = 4, size = 3}
// CHECK: [[W:%\w+]] = tensor.broadcast_to %w
// CHECK: [[R:%\w+]] = tensor.dot_general [[W]], [[B]] {batch = {{\[\[}}0, 0]], contract = {{\[\[}}2, 1], [3, 3], [4, 5]]}
// CHECK-NEXT: func.return [[R]]
// -----
// weights of one element need no windows
func.func @point(%x: tensor<Bx3x18x18xf32>, %w: tensor<5x3x1x1xf32>) -> tensor<Bx5x9x9xf32> {
  %0 = tensor.convolution %x, %w {stride = [2, 2]} : (tensor<Bx3x18x18xf32>, tensor<5x3x1x1xf32>) -> tensor<Bx5x9x9xf32>
  func.return %0 : tensor<Bx5x9x9xf32>
}
// CHECK-LABEL: @point
// CHECK-NOT: tensor.windows
// CHECK: tensor.dot_general
// CHECK-SAME: contract = {{\[\[}}2, 1]]
// -----
// with one channel in a group nothing is shared between products
func.func @depthwise(%x: tensor<Bx3x8xf32>, %w: tensor<3x1x3xf32>) -> tensor<Bx3x6xf32> {
  %0 = tensor.convolution %x, %w {groups = 3} : (tensor<Bx3x8xf32>, tensor<3x1x3xf32>) -> tensor<Bx3x6xf32>
  func.return %0 : tensor<Bx3x6xf32>
}
// CHECK-LABEL: @depthwise
// CHECK-NOT: tensor.dot_general
// CHECK: tensor.reduce_fma
// -----
// the few windows of a small image stand side by side with those of the others
func.func @small(%x: tensor<Bx3x9x9xf32>, %w: tensor<5x3x3x3xf32>) -> tensor<Bx5x7x7xf32> {
  %0 = tensor.convolution %x, %w : (tensor<Bx3x9x9xf32>, tensor<5x3x3x3xf32>) -> tensor<Bx5x7x7xf32>
  func.return %0 : tensor<Bx5x7x7xf32>
}
// CHECK-LABEL: @small
// CHECK: tensor.reshape
// CHECK-SAME: tensor<27x(49*B)xf32>
// CHECK: tensor.dot_general
// CHECK-SAME: batch = []
// -----
// of an image with gaps nothing is added up but its elements: each has a channel of weights for every place in a gap
func.func @spread(%x: tensor<Bx3x9xf32>, %w: tensor<5x3x3xf32>) -> tensor<Bx5x19xf32> {
  %0 = tensor.convolution %x, %w {low = [2], high = [2], spread = [2]} : (tensor<Bx3x9xf32>, tensor<5x3x3xf32>) -> tensor<Bx5x19xf32>
  func.return %0 : tensor<Bx5x19xf32>
}
// CHECK-LABEL: @spread
// CHECK-NOT: interior = [0, 0, 1]
// CHECK: tensor.dot_general
// -----
// of 16 bits, products are added with the channels last, which an instruction multiplies several of
func.func @narrow(%x: tensor<Bx4x9x9xbf16>, %w: tensor<5x4x3x3xbf16>) -> tensor<Bx5x7x7xbf16> {
  %0 = tensor.convolution %x, %w : (tensor<Bx4x9x9xbf16>, tensor<5x4x3x3xbf16>) -> tensor<Bx5x7x7xbf16>
  func.return %0 : tensor<Bx5x7x7xbf16>
}
// CHECK-LABEL: @narrow
// CHECK: tensor.transpose %w {perm = [0, 2, 3, 1]}
// CHECK: tensor.dot_general
