// test: pass fuse bufferize tensor_to_loop coalesce_dimensions vectorize{machine=vector_bits:128;vector_registers:16;l2_bytes:4096} loop_to_scf canonicalize cse
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
// terms before the first row of a window that begins in a block, rows of windows, and what is left
// CHECK: scf.for %i4_0 = {{.*}} iter_args
// CHECK: math.fma
// CHECK: scf.for %i4_1 = {{.*}} iter_args
// CHECK: math.fma
// CHECK-NOT: arith.remui
// CHECK: scf.yield
// CHECK: scf.for %i4_2 = {{.*}} iter_args
// -----
// rows that lie one after the other, more than the cache holds: those of the next tile are prefetched
func.func @points(%x: tensor<1x64x16xf32>, %w: tensor<1x16x16xf32>) -> tensor<1x64x16xf32> {
  %0 = tensor.unpack %w {axis = 0, size = 16} : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
  %1 = tensor.dot_general %x, %0 {batch = [], contract = [[2, 1]], order = "chain"} : (tensor<1x64x16xf32>, tensor<16x16xf32>) -> tensor<1x64x16xf32>
  func.return %1 : tensor<1x64x16xf32>
}
// CHECK: memref.prefetch
// -----
// a result that is not contiguous along the vectors is transposed in registers, and stored by rows
func.func @rows(%x: tensor<6x5xf32>, %w: tensor<1x5x16xf32>) -> tensor<13x6xf32> {
  %0 = tensor.unpack %w {axis = 0, size = 13} : (tensor<1x5x16xf32>) -> tensor<13x5xf32>
  %1 = tensor.dot_general %0, %x {batch = [], contract = [[1, 1]], order = "chain"} : (tensor<13x5xf32>, tensor<6x5xf32>) -> tensor<13x6xf32>
  func.return %1 : tensor<13x6xf32>
}
// CHECK: vector.shuffle
// CHECK: vector.maskedstore %{{.*}} : memref<78xf32>
// CHECK-NOT: memref.store
