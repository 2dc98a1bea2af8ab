// test: pass fix_numerics fuse bufferize tensor_to_loop coalesce_dimensions vectorize{machine=vector_bits:128;vector_registers:16} parallelize{worth=0} loop_to_scf canonicalize cse
// tolerance: 1e-4
// sizes: B=5 N=70

// one dimension: each part is a run of blocks, and the last one has what is left over
func.func @blocks(%x: tensor<37xf32>) -> tensor<37xf32> {
  %0 = tensor.sqrt %x : tensor<37xf32>
  func.return %0 : tensor<37xf32>
}
// CHECK: scf.parallel (%part) = (%{{\w+}}) to (%{{\w+}}) step (%{{\w+}}) {
// CHECK: scf.for
// CHECK: vector.store
// CHECK: scf.if
// CHECK: vector.maskedstore
// CHECK: scf.reduce
// -----
// a size that is not known decides how many parts there are
func.func @unknown(%x: tensor<Nxf32>) -> tensor<Nxf32> {
  %0 = tensor.sqrt %x : tensor<Nxf32>
  func.return %0 : tensor<Nxf32>
}
// CHECK: arith.maxsi
// CHECK: scf.parallel
// -----
// a part of a product may begin and end within a row of blocks
func.func @product(%x: tensor<13x3xf32>, %y: tensor<3x70xf32>) -> tensor<13x70xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<13x3xf32>, tensor<3x70xf32>) -> tensor<13x70xf32>
  func.return %0 : tensor<13x70xf32>
}
// CHECK: scf.parallel (%part)
// CHECK: scf.for %row
// CHECK: scf.for %i1
// CHECK: scf.reduce
// -----
func.func @unknown_product(%x: tensor<BxNxf32>, %y: tensor<NxBxf32>) -> tensor<BxBxf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<BxNxf32>, tensor<NxBxf32>) -> tensor<BxBxf32>
  func.return %0 : tensor<BxBxf32>
}
// CHECK: scf.parallel (%part)
// -----
// three dimensions
func.func @batches(%x: tensor<2x5x3xf32>, %y: tensor<2x3x9xf32>) -> tensor<2x5x9xf32> {
  %0 = tensor.dot_general %x, %y {batch = [[0, 0]], contract = [[2, 1]]} : (tensor<2x5x3xf32>, tensor<2x3x9xf32>) -> tensor<2x5x9xf32>
  func.return %0 : tensor<2x5x9xf32>
}
// CHECK: scf.parallel (%part)
// CHECK: scf.for %row
// -----
// rows of a reduction
func.func @rows(%x: tensor<Bx19xf32>) -> tensor<Bxf32> {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<Bx19xf32>) -> tensor<Bxf32>
  func.return %0 : tensor<Bxf32>
}
// CHECK: scf.parallel (%part)
// -----
// an index that may be out of range: threads may find some at the same time, and the least is recorded
func.func @checked(%x: tensor<10xf32>, %i: tensor<Nxi64>) -> tensor<Nxf32> {
  %zero = tensor.full 0 : tensor<i64>
  %0 = tensor.mul %i, %zero : (tensor<Nxi64>, tensor<i64>) -> tensor<Nxi64>
  %1 = tensor.take %x, %0 {axis = 0} : (tensor<10xf32>, tensor<Nxi64>) -> tensor<Nxf32>
  func.return %1 : tensor<Nxf32>
}
// CHECK: scf.parallel (%part)
// CHECK: memref.atomic_rmw minu
// -----
// nothing to share
func.func @one(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tensor.sqrt %x : tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
// CHECK-NOT: scf.parallel
