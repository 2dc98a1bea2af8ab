// test: pass hoist_constants{panels=true}
// tolerance: bits
// sizes: B=2

// what depends on constants alone is a function: a weight in panels, a scale. Biases are passed on
func.func @main(%x: tensor<4x6xf32>, %w: tensor<32x6xf32>, %b: tensor<32xf32>, %s: tensor<32xf32>) -> tensor<4x32xf32> attributes {constants = [1, 2, 3], arg_names = ["x", "w", "b", "s"]} {
  %t = tensor.transpose %w {perm = [1, 0]} : (tensor<32x6xf32>) -> tensor<6x32xf32>
  %y = tensor.dot_general %x, %t {batch = [], contract = [[1, 0]], order = "chain"} : (tensor<4x6xf32>, tensor<6x32xf32>) -> tensor<4x32xf32>
  %one = tensor.full 1.0 : tensor<32xf32>
  %r = tensor.div %one, %s : tensor<32xf32>
  %z = tensor.mul %y, %r : (tensor<4x32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
  %out = tensor.add %z, %b : (tensor<4x32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
  func.return %out : tensor<4x32xf32>
}
// CHECK: @main_constants(%w: {{.*}}, %s: {{.*}} attributes {cold = true, arg_names = ["w", "s"], sources = [1, 3]}
// CHECK: [[P:%\w+]] = tensor.pack {{.*}} {axis = 1, width = 16}
// CHECK: [[R:%\w+]] = tensor.div
// CHECK: func.return [[P]], [[R]] : tensor<2x6x16xf32>, tensor<32xf32>
// CHECK: @main(
// CHECK: [[C:%\w+]]:2 = func.call @main_constants(%w, %s)
// CHECK: func.call @main_with_constants(%x, %b, [[C]]#0, [[C]]#1)
// CHECK: @main_with_constants({{.*}} attributes {arg_names = ["x", "b", "", ""], sources = [0, 2, -1, -2]}
// CHECK: [[U:%\w+]] = tensor.unpack {{.*}} {axis = 1, size = 32}
// CHECK: tensor.dot_general %x, [[U]]
// CHECK-NOT: tensor.div
// -----
// what is no smaller than what it is made of, and what only moves elements, is computed in each call
func.func @views(%x: tensor<2x3xf32>, %w: tensor<3x2xf32>, %b: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {constants = [1, 2]} {
  %t = tensor.transpose %w {perm = [1, 0]} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %y = tensor.add %x, %t : tensor<2x3xf32>
  %wide = tensor.broadcast_to %b : tensor<3xf32> to tensor<2x3xf32>
  %z = tensor.sub %wide, %x : tensor<2x3xf32>
  func.return %y, %z : tensor<2x3xf32>, tensor<2x3xf32>
}
// CHECK-NOT: @views_constants
// CHECK: @views
// -----
// a product of few rows reads each weight once, one of few columns has no panels, and a batch of weights no matrix
func.func @plain(%x: tensor<2x3xf32>, %y: tensor<9x3xf32>, %b: tensor<2x9x3xf32>, %w: tensor<3x32xf32>, %n: tensor<3x20xf32>, %ws: tensor<2x3x32xf32>) -> (tensor<2x32xf32>, tensor<9x20xf32>, tensor<2x9x32xf32>) attributes {constants = [3, 4, 5]} {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]], order = "chain"} : (tensor<2x3xf32>, tensor<3x32xf32>) -> tensor<2x32xf32>
  %1 = tensor.dot_general %y, %n {batch = [], contract = [[1, 0]], order = "chain"} : (tensor<9x3xf32>, tensor<3x20xf32>) -> tensor<9x20xf32>
  %2 = tensor.dot_general %b, %ws {batch = [[0, 0]], contract = [[2, 1]], order = "chain"} : (tensor<2x9x3xf32>, tensor<2x3x32xf32>) -> tensor<2x9x32xf32>
  func.return %0, %1, %2 : tensor<2x32xf32>, tensor<9x20xf32>, tensor<2x9x32xf32>
}
// CHECK-NOT: tensor.pack
// -----
// a function without constants is left as it is
func.func @none(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tensor.neg %x : tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
// CHECK: @none
// CHECK-NEXT: tensor.neg
// -----
// what depends on a size of another argument is no constant
func.func @sizes(%x: tensor<Bxi64>, %w: tensor<3xi64>) -> (tensor<Bxi64>, tensor<3xi64>) attributes {constants = [1]} {
  %b = tensor.size "B" : tensor<i64>
  %y = tensor.mul %w, %b : (tensor<3xi64>, tensor<i64>) -> tensor<3xi64>
  func.return %x, %y : tensor<Bxi64>, tensor<3xi64>
}
// CHECK-NOT: @sizes_constants
