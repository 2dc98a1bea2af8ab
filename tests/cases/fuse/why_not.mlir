// test: pass fix_numerics fuse
// tolerance: 1e-4

// a contraction reads its factors many times, so they are computed before
func.func @factor(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %0 = tensor.neg %x : tensor<4x8xf32>
  %1 = tensor.dot_general %0, %w {batch = [], contract = [[1, 0]]} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  func.return %1 : tensor<4x16xf32>
}
// CHECK: label = "neg"
// CHECK: unfused = ["neg: the domains differ: [4, 8] and [4, 16]; a contraction reads its factors from memory"]
// -----
// a reduction is not repeated for every element that reads it
func.func @once(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<4x8xf32>) -> tensor<8xf32>
  %1 = tensor.add %x, %0 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  func.return %1 : tensor<4x8xf32>
}
// CHECK: unfused = ["reduce_sum: the domains differ: [8] and [4, 8]"]
// -----
// nor is anything dear that a broadcast would repeat
func.func @dear(%x: tensor<8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tensor.sqrt %x : tensor<8xf32>
  %1 = tensor.add %y, %0 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  func.return %1 : tensor<4x8xf32>
}
// CHECK: unfused = ["sqrt: the domains differ: [8] and [4, 8]; it would be computed more than once"]
// -----
// a value with two readers is in memory for both
func.func @shared(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %0 = tensor.sqrt %x : tensor<4x8xf32>
  %1 = tensor.reduce_sum %0 {axes = [1]} : (tensor<4x8xf32>) -> tensor<4xf32>
  %2 = tensor.reduce_sum %0 {axes = [0]} : (tensor<4x8xf32>) -> tensor<8xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<8xf32>
}
// CHECK: unfused = ["sqrt: the domains differ: [4, 8] and [4]; its value is needed elsewhere too"]
// CHECK: unfused = ["sqrt: the domains differ: [4, 8] and [8]; its value is needed elsewhere too"]
// -----
// two loops of reductions stay apart, though their results have one shape
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
