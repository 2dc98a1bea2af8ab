// test: pass hoist_constants{panels=true,pairs=true}
// tolerance: bits

// weights of a convolution on tiles that are no constants are packed in each call, their terms in order
func.func @main(%x: tensor<1x32x9x9xbf16>, %w: tensor<32x32x1x1xf32>) -> tensor<1x32x9x9xbf16> {
  %0 = tensor.cast %w : tensor<32x32x1x1xf32> to tensor<32x32x1x1xbf16>
  %1 = tensor.reshape %0 : tensor<32x32x1x1xbf16> to tensor<32x32xbf16>
  %2 = tensor.broadcast_to %1 : tensor<32x32xbf16> to tensor<1x32x32xbf16>
  %3 = tensor.cast %2 : tensor<1x32x32xbf16> to tensor<1x32x32xf32>
  %4 = tensor.cast %x : tensor<1x32x9x9xbf16> to tensor<1x32x9x9xf32>
  %5 = tensor.dot_general %3, %4 {batch = [[0, 0]], contract = [[2, 1]], order = "pairs<32>"} : (tensor<1x32x32xf32>, tensor<1x32x9x9xf32>) -> tensor<1x32x9x9xf32>
  %6 = tensor.cast %5 : tensor<1x32x9x9xf32> to tensor<1x32x9x9xbf16>
  func.return %6 : tensor<1x32x9x9xbf16>
}
// CHECK: tensor.pack {{.*}} -> tensor<1x32x32xbf16>
// CHECK: [[WORDS:%\w+]] = tensor.pack {{.*}} -> tensor<1x16x32x2xbf16>
// CHECK: tensor.unpack [[WORDS]]
// CHECK-NOT: reverse
// -----
// a matrix is packed where it is read: few blocks of rows do
func.func @main(%x: tensor<9x32xbf16>, %w: tensor<32x32xbf16>) -> tensor<9x32xf32> {
  %0 = tensor.cast %x : tensor<9x32xbf16> to tensor<9x32xf32>
  %1 = tensor.cast %w : tensor<32x32xbf16> to tensor<32x32xf32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 1]], order = "pairs<32>"} : (tensor<9x32xf32>, tensor<32x32xf32>) -> tensor<9x32xf32>
  func.return %2 : tensor<9x32xf32>
}
// CHECK-NOT: tensor.pack
// -----
// so are those that are no constants where others are
func.func @main(%x: tensor<1x32x9x9xbf16>, %w: tensor<32x32xbf16>, %v: tensor<4xf32>) -> (tensor<1x32x9x9xf32>, tensor<4xf32>) attributes {constants = [2]} {
  %0 = tensor.broadcast_to %w : tensor<32x32xbf16> to tensor<1x32x32xbf16>
  %1 = tensor.cast %0 : tensor<1x32x32xbf16> to tensor<1x32x32xf32>
  %2 = tensor.cast %x : tensor<1x32x9x9xbf16> to tensor<1x32x9x9xf32>
  %3 = tensor.dot_general %1, %2 {batch = [[0, 0]], contract = [[2, 1]], order = "pairs<32>"} : (tensor<1x32x32xf32>, tensor<1x32x9x9xf32>) -> tensor<1x32x9x9xf32>
  %4 = tensor.neg %v : tensor<4xf32>
  func.return %3, %4 : tensor<1x32x9x9xf32>, tensor<4xf32>
}
// CHECK: func.func @main_with_constants
// CHECK: tensor.pack {{.*}} -> tensor<1x16x32x2xbf16>
