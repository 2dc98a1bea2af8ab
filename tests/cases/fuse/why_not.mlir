// test: pass fix_numerics fuse
// tolerance: 1e-4

// a contraction reads its factors many times, so they are computed before
func.func @factor(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %0 = tensor.neg %x : tensor<4x8xf32>
  %1 = tensor.dot_general %0, %w {batch = [], contract = [[1, 0]]} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  func.return %1 : tensor<4x16xf32>
}
// CHECK: label = "neg"
// CHECK: unfused = ["neg: the domains differ: [4, 8] and [4, 16]; a contraction reads its factors many times"]
// -----
// a reduction is not repeated for every reader in another domain
func.func @once(%x: tensor<4x8xf32>, %y: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<4x8xf32>) -> tensor<8xf32>
  %1 = tensor.add %y, %0 : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  func.return %1 : tensor<5x8xf32>
}
// CHECK: unfused = ["reduce_sum: the domains differ: [5, 8] and [(4), 8]"]
// -----
// nor is anything dear that a broadcast would repeat
func.func @dear(%x: tensor<8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tensor.sqrt %x : tensor<8xf32>
  %1 = tensor.add %y, %0 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  func.return %1 : tensor<4x8xf32>
}
// CHECK: unfused = ["sqrt: the domains differ: [8] and [4, 8]; it would be computed more than once"]
// -----
// two reductions of a value along different axes go through it in different orders
func.func @shared(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %0 = tensor.sqrt %x : tensor<4x8xf32>
  %1 = tensor.reduce_sum %0 {axes = [1]} : (tensor<4x8xf32>) -> tensor<4xf32>
  %2 = tensor.reduce_sum %0 {axes = [0]} : (tensor<4x8xf32>) -> tensor<8xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<8xf32>
}
// CHECK: label = "sqrt_reduce_sum"
// CHECK: unfused = ["sqrt_reduce_sum: both have a loop of their own (reduce and reduce)"]
// -----
// two reductions over different domains are not fused, though their results have one shape
func.func @loops(%x: tensor<4x8xf32>, %y: tensor<4x9xf32>) -> tensor<4xf32> {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = tensor.reduce_max %y {axes = [1]} : (tensor<4x9xf32>) -> tensor<4xf32>
  %2 = tensor.add %0, %1 : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
// CHECK: label = "reduce_{{sum|max}}"
// CHECK: unfused = ["reduce_{{sum|max}}: both have a loop of their own (reduce and reduce)"]
// -----
// a consumer of other elements than its own cannot share the loop, and a reduction is not evaluated elsewhere
func.func @moved(%x: tensor<4x4x8xf32>) -> tensor<4x4xf32> {
  %0 = tensor.reduce_sum %x {axes = [2]} : (tensor<4x4x8xf32>) -> tensor<4x4xf32>
  %1 = tensor.transpose %0 {perm = [1, 0]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %1 : tensor<4x4xf32>
}
// CHECK: unfused = ["reduce_sum: it reads other elements than its own"]
// -----
// nor is anything dear that is read at two places
func.func @twice(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = tensor.sqrt %x : tensor<4x4xf32>
  %1 = tensor.transpose %0 {perm = [1, 0]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = tensor.add %0, %1 : tensor<4x4xf32>
  func.return %2 : tensor<4x4xf32>
}
// CHECK: unfused = ["sqrt: it reads other elements than its own; it would be computed more than once"]
// -----
// a few long rows are split among threads point by point, but not as rows
func.func @few(%x: tensor<2x40000xf32>) -> tensor<2x40000xf32> {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<2x40000xf32>) -> tensor<2xf32>
  %1 = tensor.reshape %0 : tensor<2xf32> to tensor<2x1xf32>
  %2 = tensor.div %x, %1 : (tensor<2x40000xf32>, tensor<2x1xf32>) -> tensor<2x40000xf32>
  func.return %2 : tensor<2x40000xf32>
}
// CHECK: unfused = ["reduce_sum: 2 rows of 40000 are too few"]
// -----
// rows shorter than vectors leave most lanes empty
func.func @short(%x: tensor<64x3xf32>) -> tensor<64x3xf32> {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<64x3xf32>) -> tensor<64xf32>
  %1 = tensor.reshape %0 : tensor<64xf32> to tensor<64x1xf32>
  %2 = tensor.div %x, %1 : (tensor<64x3xf32>, tensor<64x1xf32>) -> tensor<64x3xf32>
  func.return %2 : tensor<64x3xf32>
}
// CHECK: unfused = ["reduce_sum: rows of 3 are too short"]
// -----
// rows across memory are gone through once, for they do not stay in a cache
func.func @across(%x: tensor<Bx8xf32>) -> tensor<Bx8xf32> {
  %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<Bx8xf32>) -> tensor<8xf32>
  %1 = tensor.div %x, %0 : (tensor<Bx8xf32>, tensor<8xf32>) -> tensor<Bx8xf32>
  func.return %1 : tensor<Bx8xf32>
}
// CHECK: unfused = ["reduce_sum: rows of B lie across memory"]
// -----
// sums in different orders do not share a stage
func.func @orders(%x: tensor<4x90xf32>) -> (tensor<4xf32>, tensor<4xf64>) {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<4x90xf32>) -> tensor<4xf32>
  %1 = tensor.cast %x {dtype = f64} : tensor<4x90xf32> to tensor<4x90xf64>
  %2 = tensor.reduce_sum %1 {axes = [1]} : (tensor<4x90xf64>) -> tensor<4xf64>
  %3 = tensor.cast %0 {dtype = f64} : tensor<4xf32> to tensor<4xf64>
  %4 = tensor.sub %2, %3 : tensor<4xf64>
  func.return %0, %4 : tensor<4xf32>, tensor<4xf64>
}
// CHECK: they add in different orders
// -----
// nothing runs in the loops of a scatter, whose result is there when all updates are
func.func @scattered(%x: tensor<9xf32>, %i: tensor<4xi64>, %u: tensor<4xf32>) -> tensor<9xf32> {
  %nine = tensor.full 9 : tensor<i64>
  %at = tensor.rem %i, %nine : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
  %0 = tensor.scatter %x, %at, %u {axis = 0, kind = "add"} : (tensor<9xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<9xf32>
  %1 = tensor.sqrt %0 : tensor<9xf32>
  func.return %1 : tensor<9xf32>
}
// CHECK: unfused = ["scatter: a scatter is over when all updates are there"]
// -----
// padding is read many times by a contraction of few rows, and packed by one of more
func.func @padded(%x: tensor<1x8x8xf32>, %few: tensor<4x3x3xf32>, %more: tensor<32x3x3xf32>) -> (tensor<4x8x8xf32>, tensor<32x8x8xf32>) {
  %zero = tensor.full 0.0 : tensor<f32>
  %0 = tensor.pad %x, %zero {low = [0, 1, 1], high = [0, 1, 1], interior = [0, 0, 0]} : (tensor<1x8x8xf32>, tensor<f32>) -> tensor<1x10x10xf32>
  %1 = tensor.windows %0 {axis = 1, size = 3} : (tensor<1x10x10xf32>) -> tensor<1x8x3x10xf32>
  %2 = tensor.windows %1 {axis = 3, size = 3} : (tensor<1x8x3x10xf32>) -> tensor<1x8x3x8x3xf32>
  %3 = tensor.reshape %2 : tensor<1x8x3x8x3xf32> to tensor<8x3x8x3xf32>
  %4 = tensor.dot_general %few, %3 {batch = [], contract = [[1, 1], [2, 3]]} : (tensor<4x3x3xf32>, tensor<8x3x8x3xf32>) -> tensor<4x8x8xf32>
  %y = tensor.neg %x : tensor<1x8x8xf32>
  %5 = tensor.pad %y, %zero {low = [0, 1, 1], high = [0, 1, 1], interior = [0, 0, 0]} : (tensor<1x8x8xf32>, tensor<f32>) -> tensor<1x10x10xf32>
  %6 = tensor.windows %5 {axis = 1, size = 3} : (tensor<1x10x10xf32>) -> tensor<1x8x3x10xf32>
  %7 = tensor.windows %6 {axis = 3, size = 3} : (tensor<1x8x3x10xf32>) -> tensor<1x8x3x8x3xf32>
  %8 = tensor.reshape %7 : tensor<1x8x3x8x3xf32> to tensor<8x3x8x3xf32>
  %9 = tensor.dot_general %more, %8 {batch = [], contract = [[1, 1], [2, 3]]} : (tensor<32x3x3xf32>, tensor<8x3x8x3xf32>) -> tensor<32x8x8xf32>
  func.return %4, %9 : tensor<4x8x8xf32>, tensor<32x8x8xf32>
}
// CHECK: tensor.kernel {{.*}}label = "pad"
// CHECK: tensor.kernel {{.*}}label = "windows_windows_dot_general"
// CHECK: label = "{{\w*}}pad_windows_windows_dot_general"
