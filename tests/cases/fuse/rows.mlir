// test: pass decompose canonicalize cse fix_numerics fuse
// tolerance: 1e-4
// sizes: B=5

// softmax is one kernel: a maximum, a sum and a division over the same rows
func.func @softmax(%x: tensor<4x70xf32>) -> tensor<4x70xf32> {
  %0 = tensor.softmax %x {axis = 1} : tensor<4x70xf32>
  func.return %0 : tensor<4x70xf32>
}
// CHECK: tensor.kernel %x {label = "reduce_max_sub_map_reduce_sum_div"
// CHECK-NOT: tensor.kernel
// -----
// and so is its gradient
func.func @gradient(%y: tensor<4x70xf32>, %g: tensor<4x70xf32>) -> tensor<4x70xf32> {
  %0 = tensor.mul %g, %y : tensor<4x70xf32>
  %1 = tensor.reduce_sum %0 {axes = [1]} : (tensor<4x70xf32>) -> tensor<4xf32>
  %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
  %3 = tensor.mul %y, %2 : (tensor<4x70xf32>, tensor<4x1xf32>) -> tensor<4x70xf32>
  %4 = tensor.sub %0, %3 : tensor<4x70xf32>
  func.return %4 : tensor<4x70xf32>
}
// CHECK: tensor.kernel %g, %y {label = "mul_reduce_sum_mul_sub"
// CHECK-NOT: tensor.kernel
// -----
// a sum, a sum of squares of what is left, and the points of two axes
func.func @layer_norm(%x: tensor<Bx4x5xf32>, %w: tensor<4x5xf32>) -> tensor<Bx4x5xf32> {
  %0 = tensor.layer_norm %x, %w {axes = [1, 2], operandSegmentSizes = [1, 1, 0]} : (tensor<Bx4x5xf32>, tensor<4x5xf32>) -> tensor<Bx4x5xf32>
  func.return %0 : tensor<Bx4x5xf32>
}
// CHECK: tensor.kernel %x, %w {label = "reduce_sum_div_sub_mul_reduce_sum_div_etc"
// CHECK-NOT: tensor.kernel
// -----
// two reductions of one value read it once; what is exact takes the order of the sum
func.func @siblings(%x: tensor<4x70xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4x1xi64>) {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<4x70xf32>) -> tensor<4xf32>
  %1 = tensor.reduce_max %x {axes = [1]} : (tensor<4x70xf32>) -> tensor<4xf32>
  %2 = tensor.cast %x {dtype = i64} : tensor<4x70xf32> to tensor<4x70xi64>
  %3 = tensor.reduce_min %2 {axes = [1]} : (tensor<4x70xi64>) -> tensor<4xi64>
  %4 = tensor.reshape %3 : tensor<4xi64> to tensor<4x1xi64>
  func.return %0, %1, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4x1xi64>
}
// CHECK: tensor.kernel %x {label = "reduce_sum_reduce_max_cast_reduce_min"
// -----
// statistics of columns: rows that lie across memory, gone through several times if they are short
func.func @columns(%x: tensor<20x70xf32>) -> tensor<20x70xf32> {
  %0 = tensor.var %x {axes = [0], correction = 0} : (tensor<20x70xf32>) -> tensor<70xf32>
  %1 = tensor.sqrt %0 : tensor<70xf32>
  %2 = tensor.div %x, %1 : (tensor<20x70xf32>, tensor<70xf32>) -> tensor<20x70xf32>
  func.return %2 : tensor<20x70xf32>
}
// CHECK: tensor.kernel %x {label = "reduce_sum_div_sub_mul_reduce_sum_div_etc"
// CHECK-NOT: tensor.kernel
// -----
// what is picked by an index of each row belongs to the row
func.func @picked(%x: tensor<4x10xf32>, %y: tensor<4xi64>) -> tensor<4xf32> {
  %two = tensor.full 2 : tensor<i64>
  %at = tensor.rem %y, %two : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
  %0 = tensor.cross_entropy %x, %at {axis = 1, reduction = "none"} : (tensor<4x10xf32>, tensor<4xi64>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK: tensor.kernel %y, %x {label = "rem_reduce_max_sub_map_reduce_sum_map_etc"
// CHECK-NOT: tensor.kernel
// -----
// a cumulative operation takes what it reads and what reads it at the same point into its loop
func.func @cumulative(%x: tensor<4x10xf32>) -> tensor<4x10xf32> {
  %0 = tensor.mul %x, %x : tensor<4x10xf32>
  %1 = tensor.cumulative %0 {kind = "add", axis = 1} : tensor<4x10xf32>
  %2 = tensor.sqrt %1 : tensor<4x10xf32>
  func.return %2 : tensor<4x10xf32>
}
// CHECK: tensor.kernel %x {label = "mul_cumulative_sqrt"
// CHECK-NOT: tensor.kernel
// -----
// an element that an index picks may be any of the row, which is read again for it and not kept
func.func @picked(%x: tensor<4x300xf32>) -> tensor<4x1xf32> {
  %i = tensor.constant dense<[[3], [0], [299], [7]]> : tensor<4x1xi64>
  %0 = tensor.reduce_max %x {axes = [1]} : (tensor<4x300xf32>) -> tensor<4xf32>
  %1 = tensor.reshape %0 : tensor<4xf32> to tensor<4x1xf32>
  %2 = tensor.broadcast_to %1 : tensor<4x1xf32> to tensor<4x300xf32>
  %3 = tensor.sub %x, %2 : tensor<4x300xf32>
  %4 = tensor.exp %3 : tensor<4x300xf32>
  %5 = tensor.reduce_sum %4 {axes = [1]} : (tensor<4x300xf32>) -> tensor<4xf32>
  %6 = tensor.reshape %5 : tensor<4xf32> to tensor<4x1xf32>
  %7 = tensor.broadcast_to %6 : tensor<4x1xf32> to tensor<4x300xf32>
  %8 = tensor.div %4, %7 : tensor<4x300xf32>
  %9 = tensor.take_along %8, %i {axis = 1} : (tensor<4x300xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  func.return %9 : tensor<4x1xf32>
}
// CHECK: tensor.kernel %x, %i {{.*}}indexing_maps = [affine_map<(d0, d1) -> ()>
// CHECK-NOT: materialize
// -----
// it does so too if the mean of what is picked has a loop of its own: the rows are not stored for that
func.func @mean_of_picked(%x: tensor<40x10xf32>, %y: tensor<40xi64>) -> tensor<f32> {
  %two = tensor.full 2 : tensor<i64>
  %at = tensor.rem %y, %two : (tensor<40xi64>, tensor<i64>) -> tensor<40xi64>
  %0 = tensor.cross_entropy %x, %at {axis = 1, reduction = "mean"} : (tensor<40x10xf32>, tensor<40xi64>) -> tensor<f32>
  func.return %0 : tensor<f32>
}
// CHECK: tensor.reduce_max
// CHECK: tensor.take_along
// CHECK: tensor.kernel
// CHECK: tensor.reduce_sum {{.*}} (tensor<40xf32>) -> tensor<f32>
