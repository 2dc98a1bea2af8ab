// test: pass fix_numerics fuse bufferize tensor_to_loop coalesce_dimensions distribute
// tolerance: 1e-4
// sizes: B=3 N=2500

// two groups of threads share a row: each thread loads its part once, and keeps it, as it does the exponentials
func.func @softmax(%x: tensor<2x4096xf32>) -> tensor<2x4096xf32> {
  %0 = tensor.reduce_max %x {axes = [1]} : (tensor<2x4096xf32>) -> tensor<2xf32>
  %1 = tensor.reshape %0 : tensor<2xf32> to tensor<2x1xf32>
  %2 = tensor.sub %x, %1 : (tensor<2x4096xf32>, tensor<2x1xf32>) -> tensor<2x4096xf32>
  %3 = tensor.exp %2 : tensor<2x4096xf32>
  %4 = tensor.reduce_sum %3 {axes = [1]} : (tensor<2x4096xf32>) -> tensor<2xf32>
  %5 = tensor.reshape %4 : tensor<2xf32> to tensor<2x1xf32>
  %6 = tensor.div %3, %5 : (tensor<2x4096xf32>, tensor<2x1xf32>) -> tensor<2x4096xf32>
  func.return %6 : tensor<2x4096xf32>
}
// CHECK: tile = [1, 64], vector = 1, lanes = 1, tiles_per_cta = 1, groups_per_tile = 2, blocks_per_group = 32, ctas_at_once = 6
// CHECK-SAME: "share_rows(groups=2, blocks=32)", "keep_rows(registers=2)", "unroll_rows(blocks=[32, 8, 8])"
// CHECK: loop.scratch {registers = true}
// CHECK: loop.scratch {registers = true}
// CHECK: loop.load %x
// CHECK-NEXT: loop.store_scratch
// CHECK-NOT: loop.load %
// CHECK-NOT: loop.store %
// CHECK: dim = 1, unroll = 8}
// CHECK: loop.store %
// -----
// of several rows, the one that does not fit into registers is in shared memory
func.func @two(%x: tensor<2x16384xf32>, %y: tensor<2x16384xf32>) -> tensor<2x16384xf32> {
  %0 = tensor.mul %x, %y : tensor<2x16384xf32>
  %1 = tensor.reduce_sum %0 {axes = [1]} : (tensor<2x16384xf32>) -> tensor<2xf32>
  %2 = tensor.reshape %1 : tensor<2xf32> to tensor<2x1xf32>
  %3 = tensor.sub %x, %2 : (tensor<2x16384xf32>, tensor<2x1xf32>) -> tensor<2x16384xf32>
  %4 = tensor.div %3, %y : tensor<2x16384xf32>
  func.return %4 : tensor<2x16384xf32>
}
// CHECK: groups_per_tile = 8
// CHECK-SAME: "keep_rows(registers=1, shared=1)"
// -----
// a row of unknown length is read again, in runs by four groups
func.func @symbolic(%x: tensor<BxNxf32>) -> tensor<BxNxf32> {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<BxNxf32>) -> tensor<Bxf32>
  %1 = tensor.reshape %0 : tensor<Bxf32> to tensor<Bx1xf32>
  %2 = tensor.sub %x, %1 : (tensor<BxNxf32>, tensor<Bx1xf32>) -> tensor<BxNxf32>
  func.return %2 : tensor<BxNxf32>
}
// CHECK: groups_per_tile = 4, blocks_per_group = 32
// CHECK-NOT: loop.scratch
// CHECK: unroll = 16}
// CHECK: unroll = 8}
// -----
// a maximum does not depend on the order, so that groups may share it
func.func @maximum(%x: tensor<2x9000xf32>) -> tensor<2xf32> {
  %0 = tensor.reduce_max %x {axes = [1]} : (tensor<2x9000xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
// CHECK: groups_per_tile = 5
// CHECK: loop.for {{.*}}dim = 1, run = 32, kinds = ["maximumf"], unroll = 32}
// -----
// of short rows, a thread takes several if there are many
func.func @short(%x: tensor<4224x64xf32>) -> tensor<4224xf32> {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<4224x64xf32>) -> tensor<4224xf32>
  func.return %0 : tensor<4224xf32>
}
// CHECK: tile = [2, 64], vector = 1, lanes = 1, tiles_per_cta = 1, steps
// -----
// few columns are summed by groups of threads, each of them those of 32 bytes of a row
func.func @columns(%x: tensor<300x64xf32>) -> tensor<64xf32> {
  %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<300x64xf32>) -> tensor<64xf32>
  func.return %0 : tensor<64xf32>
}
// CHECK: tile = [1, 1], tiles_per_cta = 8, groups_per_tile = 8, blocks_per_group = 32, steps = ["unroll_rows(blocks=[32])", "share_rows(groups=8, blocks=32)"]
// -----
// so is their maximum, which does not depend on the order
func.func @maxima(%x: tensor<300x64xf32>) -> tensor<64xf32> {
  %0 = tensor.reduce_max %x {axes = [0]} : (tensor<300x64xf32>) -> tensor<64xf32>
  func.return %0 : tensor<64xf32>
}
// CHECK: groups_per_tile = 8
// CHECK: run = 32, kinds = ["maximumf"], unroll = 32}
// -----
// columns that do not fill a warp have a thread each
func.func @odd(%x: tensor<300x60xf32>) -> tensor<60xf32> {
  %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<300x60xf32>) -> tensor<60xf32>
  func.return %0 : tensor<60xf32>
}
// CHECK: tile = [1, 1], tiles_per_cta = 256, steps = ["unroll_rows(blocks=[32])"]
// -----
// a single row is stored as a tile of both dimensions, but loaded as one of d1
func.func @single(%x: tensor<1x244xf32>, %g: tensor<1x244xf32>) -> tensor<1x244xf32> {
  %0 = tensor.exp %x : tensor<1x244xf32>
  %1 = tensor.reduce_sum %0 {axes = [1]} : (tensor<1x244xf32>) -> tensor<1xf32>
  %2 = tensor.reshape %1 : tensor<1xf32> to tensor<1x1xf32>
  %3 = tensor.div %0, %2 : (tensor<1x244xf32>, tensor<1x1xf32>) -> tensor<1x244xf32>
  %4 = tensor.mul %g, %3 : tensor<1x244xf32>
  %5 = tensor.reduce_sum %4 {axes = [1]} : (tensor<1x244xf32>) -> tensor<1xf32>
  %6 = tensor.reshape %5 : tensor<1xf32> to tensor<1x1xf32>
  %7 = tensor.mul %3, %6 : (tensor<1x244xf32>, tensor<1x1xf32>) -> tensor<1x244xf32>
  %8 = tensor.sub %4, %7 : tensor<1x244xf32>
  func.return %8 : tensor<1x244xf32>
}
// CHECK: schedule
// -----
// 13 groups of threads take 25 runs in two turns, as 16 would
func.func @long(%x: tensor<2x50257xf32>) -> tensor<2xf32> {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<2x50257xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
// CHECK: tile = [1, 64], vector = 1, lanes = 1, tiles_per_cta = 1, groups_per_tile = 13, blocks_per_group = 32
