// test: pass fix_numerics fuse
// tolerance: 1e-4
// The rules by which operations come together are on the kernel, and so is where their values are.
// an epilogue shares the loop of a contraction
func.func @epilogue(%x: tensor<8x16xf32>, %w: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = tensor.neg %0 : tensor<8x8xf32>
  func.return %1 : tensor<8x8xf32>
}
// CHECK: fused = ["neg reads dot_general at its own point: one loop over [8, 8]", "kept in registers: dot_general"]
// -----
// a pointwise producer is computed where it is read, whatever the map
func.func @absorbed(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %0 = tensor.neg %x : tensor<4x8xf32>
  %1 = tensor.transpose %0 {perm = [1, 0]} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  func.return %1 : tensor<8x4xf32>
}
// CHECK: fused = ["neg is computed where transpose, its only reader, reads it", "kept in registers: neg"]
