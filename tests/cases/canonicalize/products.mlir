// test: pass canonicalize

// what is repeated along a batch axis is read once, where the result keeps the order of its axes
func.func @shared(%x: tensor<Lx4xf32>, %w: tensor<4x3xf32>) -> tensor<Lx3xf32> {
  %0 = tensor.broadcast_to %w : tensor<4x3xf32> to tensor<Lx4x3xf32>
  %1 = tensor.dot_general %x, %0 {batch = [[0, 0]], contract = [[1, 1]]} : (tensor<Lx4xf32>, tensor<Lx4x3xf32>) -> tensor<Lx3xf32>
  func.return %1 : tensor<Lx3xf32>
}
// CHECK: @shared
// CHECK-NEXT: tensor.dot_general %x, %w {batch = [], contract = {{\[\[}}1, 0]]}
// -----
func.func @several(%x: tensor<Bx2xLx4xf32>, %w: tensor<2x4x3xf32>) -> tensor<2xBxLx3xf32> {
  %0 = tensor.broadcast_to %w : tensor<2x4x3xf32> to tensor<BxLx2x4x3xf32>
  %1 = tensor.dot_general %x, %0 {batch = [[1, 2], [0, 0], [2, 1]], contract = [[3, 3]]}
      : (tensor<Bx2xLx4xf32>, tensor<BxLx2x4x3xf32>) -> tensor<2xBxLx3xf32>
  func.return %1 : tensor<2xBxLx3xf32>
}
// CHECK: @several
// CHECK-NEXT: tensor.dot_general %x, %w {batch = {{\[\[}}1, 0]], contract = {{\[\[}}3, 1]]}
// -----
// here the lanes would come last
func.func @transposed(%x: tensor<Lx4xf32>, %w: tensor<3x4xf32>) -> tensor<Lx3xf32> {
  %0 = tensor.broadcast_to %w : tensor<3x4xf32> to tensor<Lx3x4xf32>
  %1 = tensor.dot_general %0, %x {batch = [[0, 0]], contract = [[2, 1]]} : (tensor<Lx3x4xf32>, tensor<Lx4xf32>) -> tensor<Lx3xf32>
  func.return %1 : tensor<Lx3xf32>
}
// CHECK: @transposed
// CHECK: batch = {{\[\[}}0, 0]]
// -----
// rows of a table that all lanes share are taken from the table
func.func @rows(%t: tensor<9x3xf32>, %i: tensor<Lx2xi64>) -> tensor<Lx2x3xf32> {
  %0 = tensor.broadcast_to %t : tensor<9x3xf32> to tensor<Lx9x3xf32>
  %zero = tensor.full 0 : tensor<i64>
  %low = tensor.maximum %i, %zero : (tensor<Lx2xi64>, tensor<i64>) -> tensor<Lx2xi64>
  %1 = tensor.reshape %low : tensor<Lx2xi64> to tensor<Lx2x1xi64>
  %2 = tensor.broadcast_to %1 : tensor<Lx2x1xi64> to tensor<Lx2x3xi64>
  %3 = tensor.take_along %0, %2 {axis = 1} : (tensor<Lx9x3xf32>, tensor<Lx2x3xi64>) -> tensor<Lx2x3xf32>
  func.return %3 : tensor<Lx2x3xf32>
}
// CHECK: @rows
// CHECK: tensor.take %t, {{%\w+}} {axis = 0}
// CHECK-NOT: broadcast_to
// -----
func.func @columns(%t: tensor<3x9xf32>, %i: tensor<Lx2xi64>) -> tensor<Lx3x2xf32> {
  %0 = tensor.broadcast_to %t : tensor<3x9xf32> to tensor<Lx3x9xf32>
  %zero = tensor.full 0 : tensor<i64>
  %low = tensor.maximum %i, %zero : (tensor<Lx2xi64>, tensor<i64>) -> tensor<Lx2xi64>
  %1 = tensor.reshape %low : tensor<Lx2xi64> to tensor<Lx1x2xi64>
  %2 = tensor.broadcast_to %1 : tensor<Lx1x2xi64> to tensor<Lx3x2xi64>
  %3 = tensor.take_along %0, %2 {axis = 2} : (tensor<Lx3x9xf32>, tensor<Lx3x2xi64>) -> tensor<Lx3x2xf32>
  func.return %3 : tensor<Lx3x2xf32>
}
// CHECK: @columns
// CHECK: tensor.take %t, {{%\w+}} {axis = 1}
// CHECK: tensor.transpose
// -----
// a product of single terms is elementwise, and the sum of -0 is 0
func.func @outer(%x: tensor<1x2xf32>, %y: tensor<3x1xf32>) -> tensor<2x3xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[0, 1]]} : (tensor<1x2xf32>, tensor<3x1xf32>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
// run: @outer([[2, -1]], [[1], [0], [3]]) == [[2, 0, 6], [-1, 0, -3]]
// CHECK-NOT: tensor.dot_general
// CHECK: tensor.mul
// CHECK: tensor.add
// -----
// of each of a batch
func.func @outer_of_each(%x: tensor<4x2x1xi32>, %y: tensor<3x1x4xi32>) -> tensor<4x2x3xi32> {
  %0 = tensor.dot_general %x, %y {batch = [[0, 2]], contract = [[2, 1]]} : (tensor<4x2x1xi32>, tensor<3x1x4xi32>) -> tensor<4x2x3xi32>
  func.return %0 : tensor<4x2x3xi32>
}
// CHECK-NOT: tensor.dot_general
// CHECK: tensor.mul
// CHECK-NOT: tensor.add
