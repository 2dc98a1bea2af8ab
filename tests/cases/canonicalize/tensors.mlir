// test: pass canonicalize
// tolerance: bits

// constants are computed by numpy's rules of the element type
func.func @constants() -> (tensor<2xf32>, tensor<i64>) {
  %a = tensor.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = tensor.full 0.5 : tensor<f32>
  %c = tensor.mul %a, %b : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %d = tensor.full 3 : tensor<i64>
  %e = tensor.add %d, %d : tensor<i64>
  func.return %c, %e : tensor<2xf32>, tensor<i64>
}
// run: @constants() == ([0.5, 1.0], 6)
// CHECK: tensor.constant dense<[0.5, 1.0]> : tensor<2xf32>
// CHECK: tensor.full 6 : tensor<i64>
// CHECK-NOT: tensor.mul
// CHECK-NOT: tensor.add
// -----
// a sum of integers is computed; one of floats has no order yet, and other orders give other bits
func.func @sums() -> (tensor<i32>, tensor<f32>, tensor<f32>) {
  %a = tensor.constant dense<[1, 2, 4]> : tensor<3xi32>
  %b = tensor.constant dense<[1.0e8, 1.0, -1.0e8]> : tensor<3xf32>
  %c = tensor.reduce_sum %a {axes = [0]} : (tensor<3xi32>) -> tensor<i32>
  %d = tensor.reduce_sum %b {axes = [0]} : (tensor<3xf32>) -> tensor<f32>
  %e = tensor.reduce_max %b {axes = [0]} : (tensor<3xf32>) -> tensor<f32>
  func.return %c, %d, %e : tensor<i32>, tensor<f32>, tensor<f32>
}
// CHECK: tensor.full 7 : tensor<i32>
// CHECK: tensor.reduce_sum
// CHECK: tensor.full 100000000.0 : tensor<f32>
// CHECK-NOT: tensor.reduce_max
// -----
// twice the same movement of elements is one movement, or none
func.func @moves(%x: tensor<Bx3x4xf32>) -> (tensor<Bx3x4xf32>, tensor<Bx12xf32>) {
  %0 = tensor.transpose %x {perm = [2, 0, 1]} : (tensor<Bx3x4xf32>) -> tensor<4xBx3xf32>
  %1 = tensor.transpose %0 {perm = [1, 2, 0]} : (tensor<4xBx3xf32>) -> tensor<Bx3x4xf32>
  %2 = tensor.reshape %1 : tensor<Bx3x4xf32> to tensor<Bx4x3xf32>
  %3 = tensor.reshape %2 : tensor<Bx4x3xf32> to tensor<Bx12xf32>
  func.return %1, %3 : tensor<Bx3x4xf32>, tensor<Bx12xf32>
}
// CHECK: func.func @moves
// CHECK-NEXT: [[R:%\w+]] = tensor.reshape %x : tensor<Bx3x4xf32> to tensor<Bx12xf32>
// CHECK-NEXT: func.return %x, [[R]]
// -----
// a rule that changes IEEE values is off: x * 0 may be NaN or -0
func.func @careful(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tensor.full 0.0 : tensor<3xf32>
  %1 = tensor.mul %x, %0 : tensor<3xf32>
  func.return %1 : tensor<3xf32>
}
// run: @careful([inf, -1, 2]) == [nan, -0.0, 0]
// CHECK: tensor.mul
// -----
// |-x| is |x| where numbers have signs; an unsigned -x is 2^32 - x
func.func @signs(%x: tensor<3xui32>, %y: tensor<3xi32>) -> (tensor<3xui32>, tensor<3xi32>) {
  %0 = tensor.neg %x : tensor<3xui32>
  %1 = tensor.abs %0 : tensor<3xui32>
  %2 = tensor.neg %y : tensor<3xi32>
  %3 = tensor.abs %2 : tensor<3xi32>
  func.return %1, %3 : tensor<3xui32>, tensor<3xi32>
}
// run: @signs([3, 0, 1], [-3, 0, 1]) == ([4294967293, 0, 4294967295], [3, 0, 1])
// CHECK: tensor.neg %x : tensor<3xui32>
// CHECK-NOT: tensor.neg %y
// -----
// windows that do not overlap are an axis in two, without the elements at its end that are in no window
func.func @apart(%x: tensor<2x7xf32>) -> (tensor<2x3x2xf32>, tensor<2x1x7xf32>, tensor<2x3x3xf32>) {
  %0 = tensor.windows %x {axis = 1, size = 2, stride = 2} : (tensor<2x7xf32>) -> tensor<2x3x2xf32>
  %1 = tensor.windows %x {axis = 1, size = 7, stride = 7} : (tensor<2x7xf32>) -> tensor<2x1x7xf32>
  %2 = tensor.windows %x {axis = 1, size = 3, stride = 2} : (tensor<2x7xf32>) -> tensor<2x3x3xf32>
  func.return %0, %1, %2 : tensor<2x3x2xf32>, tensor<2x1x7xf32>, tensor<2x3x3xf32>
}
// CHECK: [[P:%\d+]] = tensor.slice %x {starts = [0, 0], stops = [2, 6], steps = [1, 1]}
// CHECK-NEXT: tensor.reshape [[P]] : tensor<2x6xf32> to tensor<2x3x2xf32>
// CHECK-NEXT: tensor.reshape %x : tensor<2x7xf32> to tensor<2x1x7xf32>
// CHECK-NEXT: tensor.windows %x {axis = 1, size = 3, stride = 2}
// -----
// a piece as large as the tensor starts at 0, whatever the start says
func.func @whole_pieces(%x: tensor<Bx3xf32>, %y: tensor<Bx3xf32>, %i: tensor<i64>) -> (tensor<Bx3xf32>, tensor<Bx3xf32>) {
  %0 = tensor.dynamic_slice %x, %i, %i {shape = ["B", 3]} : (tensor<Bx3xf32>, tensor<i64>, tensor<i64>) -> tensor<Bx3xf32>
  %1 = tensor.dynamic_update_slice %x, %y, %i, %i : (tensor<Bx3xf32>, tensor<Bx3xf32>, tensor<i64>, tensor<i64>) -> tensor<Bx3xf32>
  func.return %0, %1 : tensor<Bx3xf32>, tensor<Bx3xf32>
}
// CHECK-NOT: tensor.dynamic
// CHECK: func.return %x, %y
// -----
// the maximum of a maximum: the axes of the outer one are those that are left
func.func @twice(%x: tensor<2x3x4xf32>, %p: tensor<2x3x4xi1>) -> (tensor<3xf32>, tensor<4xi1>) {
  %0 = tensor.reduce_max %x {axes = [0]} : (tensor<2x3x4xf32>) -> tensor<3x4xf32>
  %1 = tensor.reduce_max %0 {axes = [1]} : (tensor<3x4xf32>) -> tensor<3xf32>
  %2 = tensor.reduce_all %p {axes = [1]} : (tensor<2x3x4xi1>) -> tensor<2x4xi1>
  %3 = tensor.reduce_all %2 {axes = [0]} : (tensor<2x4xi1>) -> tensor<4xi1>
  func.return %1, %3 : tensor<3xf32>, tensor<4xi1>
}
// CHECK: tensor.reduce_max %x {axes = [0, 2]}
// CHECK-NOT: tensor.reduce_max
// CHECK: tensor.reduce_all %p {axes = [0, 1]}
// CHECK-NOT: tensor.reduce_all
