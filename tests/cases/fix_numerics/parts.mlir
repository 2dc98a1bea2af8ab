// test: pass fix_numerics
// tolerance: 1e-4

// neighbouring axes are one row; others are reduced one group after the other, the inner one first
func.func @groups(%x: tensor<8x3x16x16xf32>, %y: tensor<8x3x1x2xf32>) -> (tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3x1xf32>) {
  %0 = tensor.reduce_sum %x {axes = [2, 3]} : (tensor<8x3x16x16xf32>) -> tensor<8x3xf32>
  %1 = tensor.reduce_sum %x {axes = [0, 2, 3]} : (tensor<8x3x16x16xf32>) -> tensor<3xf32>
  %2 = tensor.reduce_max %x {axes = [0, 2, 3]} : (tensor<8x3x16x16xf32>) -> tensor<3xf32>
  %3 = tensor.reduce_sum %y {axes = [0, 3]} : (tensor<8x3x1x2xf32>) -> tensor<3x1xf32>
  func.return %0, %1, %2, %3 : tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3x1xf32>
}
// CHECK: reduce_sum %x {axes = [2, 3], order = "lanes<16>"}
// CHECK: [[A:%\w+]] = tensor.reduce_sum %x {axes = [2, 3], order = "lanes<16>"}
// CHECK: reduce_sum [[A]] {axes = [0], order = "chain"} : (tensor<8x3xf32>) -> tensor<3xf32>
// CHECK: [[B:%\w+]] = tensor.reduce_max %x {axes = [2, 3]
// CHECK: reduce_max [[B]] {axes = [0]
// CHECK: [[C:%\w+]] = tensor.reduce_sum %y {axes = [0], order = "chain"} : (tensor<8x3x1x2xf32>) -> tensor<3x1x2xf32>
// CHECK: reduce_sum [[C]] {axes = [2], order = "chain"}
// -----
// long sums add in runs; products, integers and extrema do not need to
func.func @runs(%x: tensor<3000xf32>, %y: tensor<40x5xf32>, %i: tensor<3000xi32>) -> (tensor<f32>, tensor<5xf32>, tensor<f32>, tensor<f32>, tensor<i32>) {
  %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<3000xf32>) -> tensor<f32>
  %1 = tensor.reduce_sum %y {axes = [0]} : (tensor<40x5xf32>) -> tensor<5xf32>
  %2 = tensor.reduce_prod %x {axes = [0]} : (tensor<3000xf32>) -> tensor<f32>
  %3 = tensor.reduce_max %x {axes = [0]} : (tensor<3000xf32>) -> tensor<f32>
  %4 = tensor.reduce_sum %i {axes = [0]} : (tensor<3000xi32>) -> tensor<i32>
  func.return %0, %1, %2, %3, %4 : tensor<f32>, tensor<5xf32>, tensor<f32>, tensor<f32>, tensor<i32>
}
// CHECK: reduce_sum %x {axes = [0], order = "lanes<64, 32>"}
// CHECK: reduce_sum %y {axes = [0], order = "lanes<1, 32>"}
// CHECK: reduce_prod %x {axes = [0], order = "lanes<64>"}
// CHECK: reduce_max %x {axes = [0], order = "lanes<64>"}
// CHECK: reduce_sum %i {axes = [0], order = "lanes<64>"}
// -----
// very many elements are parts: of whole axes, or of an axis, in blocks that divide it; else they stay together
func.func @parts(%x: tensor<100x2000xf32>, %y: tensor<200000xf32>, %z: tensor<50000x3xf32>, %p: tensor<131101xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  %0 = tensor.reduce_sum %x {axes = [0, 1]} : (tensor<100x2000xf32>) -> tensor<f32>
  %1 = tensor.reduce_sum %y {axes = [0]} : (tensor<200000xf32>) -> tensor<f32>
  %2 = tensor.reduce_sum %z {axes = [0, 1]} : (tensor<50000x3xf32>) -> tensor<f32>
  %3 = tensor.reduce_sum %p {axes = [0]} : (tensor<131101xf32>) -> tensor<f32>
  func.return %0, %1, %2, %3 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}
// CHECK: [[A:%\w+]] = tensor.reduce_sum %x {axes = [1], order = "lanes<64>"}
// CHECK: reduce_sum [[A]] {axes = [0], order = "lanes<64>"}
// CHECK: [[B:%\w+]] = tensor.windows %y {axis = 0, size = 12500, stride = 12500
// CHECK: [[C:%\w+]] = tensor.reduce_sum [[B]] {axes = [1], order = "lanes<64, 32>"} : (tensor<16x12500xf32>) -> tensor<16xf32>
// CHECK: reduce_sum [[C]] {axes = [0], order = "lanes<16>"}
// CHECK: [[D:%\w+]] = tensor.windows %z {axis = 0, size = 5000, stride = 5000
// CHECK: [[E:%\w+]] = tensor.reduce_sum [[D]] {axes = [1, 2], order = "lanes<16, 32>"} : (tensor<10x5000x3xf32>) -> tensor<10xf32>
// CHECK: reduce_sum [[E]] {axes = [0], order = "lanes<16>"}
// CHECK: reduce_sum %p {axes = [0], order = "lanes<64, 32>"}
