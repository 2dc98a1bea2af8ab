// test: pass fuse assign_layouts
// tolerance: bits

// A padded image of which tiles load blocks of channels has its channels last, whatever the order of the image is.
func.func @main(%x: tensor<1x32x4x5xbf16>, %w: tensor<32x32x3x3xbf16>) -> tensor<1x32x4x5xbf16> {
  %zero = tensor.full 0.0 : tensor<bf16>
  %panels = tensor.pack %w {axis = 0, width = 32} : (tensor<32x32x3x3xbf16>) -> tensor<1x32x3x3x32xbf16>
  %columns = tensor.unpack %panels {axis = 0, size = 32} : (tensor<1x32x3x3x32xbf16>) -> tensor<32x32x3x3xbf16>
  %0 = tensor.pad %x, %zero {low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0]} : (tensor<1x32x4x5xbf16>, tensor<bf16>) -> tensor<1x32x6x7xbf16>
  %1 = tensor.windows %0 {axis = 2, size = 3} : (tensor<1x32x6x7xbf16>) -> tensor<1x32x4x3x7xbf16>
  %2 = tensor.windows %1 {axis = 4, size = 3} : (tensor<1x32x4x3x7xbf16>) -> tensor<1x32x4x3x5x3xbf16>
  %3 = tensor.broadcast_to %columns : tensor<32x32x3x3xbf16> to tensor<1x32x32x3x3xbf16>
  %4 = tensor.cast %3 : tensor<1x32x32x3x3xbf16> to tensor<1x32x32x3x3xf32>
  %5 = tensor.cast %2 : tensor<1x32x4x3x5x3xbf16> to tensor<1x32x4x3x5x3xf32>
  %6 = tensor.dot_general %4, %5 {batch = [[0, 0]], contract = [[3, 3], [4, 5], [2, 1]], order = "pairs<32>"} : (tensor<1x32x32x3x3xf32>, tensor<1x32x4x3x5x3xf32>) -> tensor<1x32x4x5xf32>
  %7 = tensor.cast %6 : tensor<1x32x4x5xf32> to tensor<1x32x4x5xbf16>
  func.return %7 : tensor<1x32x4x5xbf16>
}
// CHECK: label = "pad"
// CHECK: tensor.yield {{.*}} : tensor<1x6x7x32xbf16>
