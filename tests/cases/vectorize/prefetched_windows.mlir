// test: pass fuse bufferize tensor_to_loop vectorize{machine=l2_bytes:1024}
// tolerance: bits

// channels last: what the row below adds to the windows of a tile is prefetched, a line for each of its four columns
func.func @stride_1(%x: tensor<10x11x32xf32>) -> tensor<8x9x32xf32> {
  %0 = tensor.windows %x {axis = 0, size = 3} : (tensor<10x11x32xf32>) -> tensor<8x3x11x32xf32>
  %1 = tensor.windows %0 {axis = 2, size = 3} : (tensor<8x3x11x32xf32>) -> tensor<8x3x9x3x32xf32>
  %2 = tensor.reduce_max %1 {axes = [1, 3], order = "chain"} : (tensor<8x3x9x3x32xf32>) -> tensor<8x9x32xf32>
  func.return %2 : tensor<8x9x32xf32>
}
// CHECK: @stride_1
// CHECK: prefetch_windows(dim=0, lines=4)
// CHECK: loop.prefetch
// CHECK-SAME: (d0 + 3, d1, d2)
// CHECK: loop.prefetch
// CHECK-SAME: (d0 + 3, d1 + 1, d2)
// -----
// with a stride of two, two rows of eight columns
func.func @stride_2(%x: tensor<11x19x32xf32>) -> tensor<5x9x32xf32> {
  %0 = tensor.windows %x {axis = 0, size = 3, stride = 2} : (tensor<11x19x32xf32>) -> tensor<5x3x19x32xf32>
  %1 = tensor.windows %0 {axis = 2, size = 3, stride = 2} : (tensor<5x3x19x32xf32>) -> tensor<5x3x9x3x32xf32>
  %2 = tensor.reduce_max %1 {axes = [1, 3], order = "chain"} : (tensor<5x3x9x3x32xf32>) -> tensor<5x9x32xf32>
  func.return %2 : tensor<5x9x32xf32>
}
// CHECK: prefetch_windows(dim=0, lines=16)
// -----
// an image that the cache holds
func.func @small(%x: tensor<3x5x16xf32>) -> tensor<1x3x16xf32> {
  %0 = tensor.windows %x {axis = 0, size = 3} : (tensor<3x5x16xf32>) -> tensor<1x3x5x16xf32>
  %1 = tensor.windows %0 {axis = 2, size = 3} : (tensor<1x3x5x16xf32>) -> tensor<1x3x3x3x16xf32>
  %2 = tensor.reduce_max %1 {axes = [1, 3], order = "chain"} : (tensor<1x3x3x3x16xf32>) -> tensor<1x3x16xf32>
  func.return %2 : tensor<1x3x16xf32>
}
// CHECK: @small
// CHECK-NOT: loop.prefetch
