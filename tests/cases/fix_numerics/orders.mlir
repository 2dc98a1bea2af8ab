// test: pass fix_numerics
// sizes: B=3

// a reduction over the last axis adds by lanes, as many as its length and element type call for; any other in a chain
func.func @reductions(%x: tensor<4x100xf32>, %y: tensor<Bx8xf32>, %z: tensor<3x100xf64>) -> (tensor<4xf32>, tensor<100xf32>, tensor<Bxf32>, tensor<3xf64>, tensor<f32>) {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<4x100xf32>) -> tensor<4xf32>
  %1 = tensor.reduce_sum %x {axes = [0]} : (tensor<4x100xf32>) -> tensor<100xf32>
  %2 = tensor.reduce_max %y {axes = [1]} : (tensor<Bx8xf32>) -> tensor<Bxf32>
  %3 = tensor.reduce_sum %z {axes = [1]} : (tensor<3x100xf64>) -> tensor<3xf64>
  %4 = tensor.reduce_sum %y {axes = [0, 1]} : (tensor<Bx8xf32>) -> tensor<f32>
  func.return %0, %1, %2, %3, %4 : tensor<4xf32>, tensor<100xf32>, tensor<Bxf32>, tensor<3xf64>, tensor<f32>
}
// CHECK: reduce_sum %x {axes = [1], order = "lanes<64>"}
// CHECK: reduce_sum %x {axes = [0], order = "chain"}
// CHECK: reduce_max %y {axes = [1], order = "lanes<16>"}
// CHECK: reduce_sum %z {axes = [1], order = "lanes<32>"}
// CHECK: reduce_sum %y {axes = [0, 1], order = "lanes<16, 32>"}
// -----
// every product of matrices is one chain of fused multiply-adds per element
func.func @product(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  func.return %0 : tensor<2x4xf32>
}
// CHECK: dot_general %x, %y {batch = [], contract = {{\[\[1, 0\]\]}}, order = "chain"}
// -----
// 16-bit floats are computed in f32 and rounded once per operation; what only moves elements stays narrow
func.func @narrow(%x: tensor<5xbf16>, %y: tensor<5xbf16>) -> tensor<5xbf16> {
  %0 = tensor.reverse %x {axes = [0]} : tensor<5xbf16>
  %1 = tensor.add %0, %y : tensor<5xbf16>
  func.return %1 : tensor<5xbf16>
}
// CHECK: [[R:%\w+]] = tensor.reverse %x {axes = [0]} : tensor<5xbf16>
// CHECK: [[A:%\w+]] = tensor.cast [[R]] : tensor<5xbf16> to tensor<5xf32>
// CHECK: [[B:%\w+]] = tensor.cast %y : tensor<5xbf16> to tensor<5xf32>
// CHECK: [[C:%\w+]] = tensor.add [[A]], [[B]] : tensor<5xf32>
// CHECK: tensor.cast [[C]] : tensor<5xf32> to tensor<5xbf16>
// -----
// elementary functions become maps of arithmetic, and integer ones stay what they are
func.func @functions(%x: tensor<5xf32>, %i: tensor<5xi32>) -> (tensor<5xf32>, tensor<5xi32>) {
  %0 = tensor.exp %x : tensor<5xf32>
  %1 = tensor.rem %i, %i : tensor<5xi32>
  func.return %0, %1 : tensor<5xf32>, tensor<5xi32>
}
// CHECK-NOT: tensor.exp
// CHECK: tensor.map %x
// CHECK: math.fma
// CHECK: tensor.rem %i, %i
// -----
// an order that is given stays
func.func @given(%x: tensor<4x100xf32>) -> tensor<4xf32> {
  %0 = tensor.reduce_sum %x {axes = [1], order = "lanes<4>"} : (tensor<4x100xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK: order = "lanes<4>"
// -----
// rows that are stored in 16 bits are added in lanes, also of a factor that is transposed on the way; columns are not
func.func @main(%x: tensor<2x64xf32>, %w: tensor<5x64xf16>, %v: tensor<64x5xf16>) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
  %0 = tensor.cast %w : tensor<5x64xf16> to tensor<5x64xf32>
  %1 = tensor.transpose %0 {perm = [1, 0]} : (tensor<5x64xf32>) -> tensor<64x5xf32>
  %2 = tensor.dot_general %x, %1 {batch = [], contract = [[1, 0]]} : (tensor<2x64xf32>, tensor<64x5xf32>) -> tensor<2x5xf32>
  %3 = tensor.cast %v : tensor<64x5xf16> to tensor<64x5xf32>
  %4 = tensor.dot_general %x, %3 {batch = [], contract = [[1, 0]]} : (tensor<2x64xf32>, tensor<64x5xf32>) -> tensor<2x5xf32>
  func.return %2, %4 : tensor<2x5xf32>, tensor<2x5xf32>
}
// CHECK: dot_general {{.*}}order = "lanes<32>"
// CHECK: dot_general {{.*}}order = "chain"
