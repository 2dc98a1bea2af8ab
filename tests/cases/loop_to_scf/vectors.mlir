// test: pass fix_numerics fuse bufferize tensor_to_loop coalesce_dimensions vectorize{machine=vector_bits:128;vector_registers:16} loop_to_scf canonicalize cse
// tolerance: 1e-4
// sizes: B=5

// whole vectors in a loop, and what is left over as one masked vector
func.func @tail(%x: tensor<37xf32>) -> tensor<37xf32> {
  %0 = tensor.sqrt %x : tensor<37xf32>
  func.return %0 : tensor<37xf32>
}
// CHECK: scf.for
// CHECK: vector.load %x{{.*}} vector<16xf32>
// CHECK: math.sqrt %{{\d+}} : vector<16xf32>
// CHECK: vector.store
// CHECK: vector.create_mask
// CHECK: vector.maskedload
// CHECK: vector.maskedstore
// -----
// a size that is not known may leave nothing over
func.func @unknown(%x: tensor<Bxf32>) -> tensor<Bxf32> {
  %0 = tensor.sqrt %x : tensor<Bxf32>
  func.return %0 : tensor<Bxf32>
}
// CHECK: scf.for
// CHECK: arith.cmpi sgt
// CHECK: scf.if
// CHECK: vector.create_mask
// -----
// lanes are added as a tree: the upper half onto the lower
func.func @tree(%x: tensor<2x16xf32>) -> tensor<2xf32> {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<2x16xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
// CHECK: arith.addf %{{\w+}}, %{{\w+}} : vector<16xf32>
// CHECK: vector.shuffle %{{\w+}}, %{{\w+}} [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK: arith.addf %{{\w+}}, %{{\w+}} : vector<8xf32>
// CHECK: arith.addf %{{\w+}}, %{{\w+}} : vector<4xf32>
// CHECK: arith.addf %{{\w+}}, %{{\w+}} : vector<2xf32>
// CHECK: arith.addf %{{\w+}}, %{{\w+}} : vector<1xf32>
// CHECK: vector.extract
// -----
// lanes that are far apart in memory are vectors along what is contiguous; a tree adds these
func.func @channels(%x: tensor<3x7x20xf32>) -> tensor<20xf32> {
  %0 = tensor.transpose %x {perm = [2, 0, 1]} : (tensor<3x7x20xf32>) -> tensor<20x3x7xf32>
  %1 = tensor.reduce_sum %0 {axes = [1, 2]} : (tensor<20x3x7xf32>) -> tensor<20xf32>
  func.return %1 : tensor<20xf32>
}
// CHECK: vector.load %{{.*}} vector<4xf32>
// CHECK-NOT: vector.shuffle
// CHECK-NOT: vector.gather
// CHECK: vector.store
// -----
// of the last lanes, those beyond the end are masked
func.func @some(%x: tensor<Bx7x20xf32>) -> tensor<20xf32> {
  %0 = tensor.transpose %x {perm = [2, 0, 1]} : (tensor<Bx7x20xf32>) -> tensor<20xBx7xf32>
  %1 = tensor.reduce_sum %0 {axes = [1, 2]} : (tensor<20xBx7xf32>) -> tensor<20xf32>
  func.return %1 : tensor<20xf32>
}
// CHECK: vector.load %{{.*}} vector<4xf32>
// CHECK: vector.create_mask
// CHECK: vector.maskedload %{{.*}} vector<4xf32>
// CHECK-NOT: vector.gather
// CHECK: vector.store
// -----
// reading across rows gathers
func.func @across(%x: tensor<16x4xf32>) -> tensor<4x16xf32> {
  %0 = tensor.transpose %x {perm = [1, 0]} : (tensor<16x4xf32>) -> tensor<4x16xf32>
  func.return %0 : tensor<4x16xf32>
}
// CHECK: vector.gather
// -----
// a product is fused multiply-adds of one element of a row with vectors of columns
func.func @product(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  func.return %0 : tensor<2x4xf32>
}
// CHECK: scf.for
// CHECK: vector.load %y
// CHECK: math.fma %{{\w+}}, %{{\w+}}, %{{\w+}} : vector<4xf32>
// CHECK: math.fma %{{\w+}}, %{{\w+}}, %{{\w+}} : vector<4xf32>
// CHECK: scf.yield
// -----
// every other element: two vectors, of which only what is wanted is read
func.func @halves(%x: tensor<37xf32>) -> tensor<18xf32> {
  %0 = tensor.slice %x {starts = [1], stops = [37], steps = [2]} : (tensor<37xf32>) -> tensor<18xf32>
  func.return %0 : tensor<18xf32>
}
// CHECK: vector.maskedload
// CHECK: vector.maskedload
// CHECK: vector.shuffle %{{\w+}}, %{{\w+}} [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
// CHECK-NOT: vector.gather
// -----
// rows that are added at indices: whether an index is in range is the same for all lanes, and so a branch
func.func @rows(%x: tensor<5x16xf32>, %y: tensor<3x16xf32>) -> tensor<5x16xf32> {
  %0 = tensor.constant dense<[3, 0, 3]> : tensor<3xi64>
  %1 = tensor.scatter %x, %0, %y {axis = 0} : (tensor<5x16xf32>, tensor<3xi64>, tensor<3x16xf32>) -> tensor<5x16xf32>
  func.return %1 : tensor<5x16xf32>
}
// CHECK-NOT: masked
// CHECK: scf.if %{{\w+}} -> (vector<16xf32>)
// CHECK: vector.load
// CHECK: arith.addf
// CHECK: scf.if
// CHECK: vector.store
// CHECK-NOT: masked
// -----
// columns in panels lie in lanes where the lanes of each vector are those of one panel
func.func @panels(%x: tensor<2x3xf32>, %w: tensor<2x3x16xf32>) -> tensor<2x32xf32> {
  %0 = tensor.unpack %w {axis = 1, size = 32} : (tensor<2x3x16xf32>) -> tensor<3x32xf32>
  %1 = tensor.dot_general %x, %0 {batch = [], contract = [[1, 0]]} : (tensor<2x3xf32>, tensor<3x32xf32>) -> tensor<2x32xf32>
  func.return %1 : tensor<2x32xf32>
}
// CHECK: arith.divui
// CHECK: vector.load
// CHECK: math.fma
// CHECK-NOT: vector.gather
// -----
// as they do not where panels are of other widths than vectors
func.func @narrow_panels(%x: tensor<2x3xf32>, %w: tensor<6x3x6xf32>) -> tensor<2x32xf32> {
  %0 = tensor.unpack %w {axis = 1, size = 32} : (tensor<6x3x6xf32>) -> tensor<3x32xf32>
  %1 = tensor.dot_general %x, %0 {batch = [], contract = [[1, 0]]} : (tensor<2x3xf32>, tensor<3x32xf32>) -> tensor<2x32xf32>
  func.return %1 : tensor<2x32xf32>
}
// CHECK: vector.gather
// -----
// rows that are left over of an unknown number are taken one by one
func.func @rows(%x: tensor<Bx3xf32>, %y: tensor<3x4xf32>) -> tensor<Bx4xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<Bx3xf32>, tensor<3x4xf32>) -> tensor<Bx4xf32>
  func.return %0 : tensor<Bx4xf32>
}
// CHECK: arith.remui
// CHECK: scf.for
// CHECK: scf.for
