// test: pass fuse bufferize tensor_to_loop coalesce_dimensions vectorize{machine=vector_bits:128;vector_registers:16;l2_bytes:4096}
// tolerance: bits

// the columns of panels are in vectors; elements of a row of a window are shared by neighbouring points; blocks of terms begin within windows
func.func @windows(%x: tensor<1x5x6x4xf32>, %w: tensor<2x4x3x3x16xf32>) -> tensor<1x32x3x4xf32> {
  %0 = tensor.transpose %x {perm = [0, 3, 1, 2]} : (tensor<1x5x6x4xf32>) -> tensor<1x4x5x6xf32>
  %1 = tensor.windows %0 {axis = 2, size = 3} : (tensor<1x4x5x6xf32>) -> tensor<1x4x3x3x6xf32>
  %2 = tensor.windows %1 {axis = 4, size = 3} : (tensor<1x4x3x3x6xf32>) -> tensor<1x4x3x3x4x3xf32>
  %3 = tensor.unpack %w {axis = 0, size = 32} : (tensor<2x4x3x3x16xf32>) -> tensor<32x4x3x3xf32>
  %4 = tensor.broadcast_to %3 : tensor<32x4x3x3xf32> to tensor<1x32x4x3x3xf32>
  %5 = tensor.dot_general %4, %2 {batch = [[0, 0]], contract = [[2, 1], [3, 3], [4, 5]], order = "blocks<16>"} : (tensor<1x32x4x3x3xf32>, tensor<1x4x3x3x4x3xf32>) -> tensor<1x32x3x4xf32>
  func.return %5 : tensor<1x32x3x4xf32>
}
// CHECK: domain = [1, 32, 3, 4, 36]
// CHECK-SAME: vector = 1
// CHECK-SAME: "unroll_terms(dim=4, count=3)", "tile(dim=3, size=4)", "tile(dim=2, size=3)", "strip_mine(dim=3, size=4)", "strip_mine(dim=2, size=1)"
// CHECK: loop.for {dim = 2, size = 1}
// CHECK: loop.for {dim = 3, size = 4}
// CHECK: loop.for {{.*}}{dim = 4, unroll = 3}
// -----
// rows that lie one after the other, more than the cache holds: those of the next tile are prefetched
func.func @points(%x: tensor<1x64x16xf32>, %w: tensor<1x16x16xf32>) -> tensor<1x64x16xf32> {
  %0 = tensor.unpack %w {axis = 0, size = 16} : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
  %1 = tensor.dot_general %x, %0 {batch = [], contract = [[2, 1]], order = "chain"} : (tensor<1x64x16xf32>, tensor<16x16xf32>) -> tensor<1x64x16xf32>
  func.return %1 : tensor<1x64x16xf32>
}
// CHECK: prefetch_rows(dim=
// CHECK: loop.contract
// CHECK: loop.prefetch %x
// -----
// few rows, which read each panel faster than it comes from memory: their tiles prefetch what follows, a line each
func.func @few_rows(%x: tensor<24x40xf32>, %w: tensor<2x40x32xf32>) -> tensor<24x64xf32> {
  %0 = tensor.unpack %w {axis = 0, size = 64} : (tensor<2x40x32xf32>) -> tensor<64x40xf32>
  %1 = tensor.dot_general %x, %0 {batch = [], contract = [[1, 1]], order = "blocks<16>"} : (tensor<24x40xf32>, tensor<64x40xf32>) -> tensor<24x64xf32>
  func.return %1 : tensor<24x64xf32>
}
// CHECK: "prefetch_panels(dim=1, lines=1)"
// CHECK: loop.contract
// CHECK: loop.prefetch %w {map = affine_map<(d0, d1, d2) -> (d1 floordiv 32, 0, 16*(d0 floordiv {{[0-9]+}}) + 32*d2 + 512)>, locality = 2}
// -----
// rows of a window that registers cannot hold are no reason for a small tile, and are not unrolled
func.func @wide_windows(%x: tensor<1x4x30xf32>, %w: tensor<1x4x15x16xf32>) -> tensor<1x16x16xf32> {
  %0 = tensor.windows %x {axis = 2, size = 15} : (tensor<1x4x30xf32>) -> tensor<1x4x16x15xf32>
  %1 = tensor.unpack %w {axis = 0, size = 16} : (tensor<1x4x15x16xf32>) -> tensor<16x4x15xf32>
  %2 = tensor.broadcast_to %1 : tensor<16x4x15xf32> to tensor<1x16x4x15xf32>
  %3 = tensor.dot_general %2, %0 {batch = [[0, 0]], contract = [[2, 1], [3, 3]], order = "chain"} : (tensor<1x16x4x15xf32>, tensor<1x4x16x15xf32>) -> tensor<1x16x16xf32>
  func.return %3 : tensor<1x16x16xf32>
}
// CHECK: domain = [1, 16, 16, 60]
// CHECK-NOT: unroll_terms
// CHECK: loop.contract
// -----
// few columns: tiles have fewer rows, so that there are tasks for several threads
func.func @few_columns(%x: tensor<98x4xf32>, %w: tensor<1x4x16xf32>) -> tensor<98x16xf32> {
  %0 = tensor.unpack %w {axis = 0, size = 16} : (tensor<1x4x16xf32>) -> tensor<16x4xf32>
  %1 = tensor.dot_general %x, %0 {batch = [], contract = [[1, 1]], order = "chain"} : (tensor<98x4xf32>, tensor<16x4xf32>) -> tensor<98x16xf32>
  func.return %1 : tensor<98x16xf32>
}
// CHECK: "tile(dim=0, size=30)"
