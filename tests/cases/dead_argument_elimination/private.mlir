// test: pass dead_argument_elimination

// a result that nobody uses, what it was made of, and the argument that only that read
func.func private @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tensor.exp %x : tensor<4xf32>
  %1 = tensor.sin %y : tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %z = tensor.cos %y : tensor<4xf32>
  %0, %1 = func.call @f(%x, %z) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %0 : tensor<4xf32>
}
// CHECK: func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NOT: tensor.sin
// CHECK: func.func @main
// CHECK-NOT: tensor.cos
// CHECK: func.call @f(%x) : tensor<4xf32>
// -----
// results that are equal, or arguments
func.func private @f(%x: tensor<Bxf32>) -> (tensor<Bxf32>, tensor<Bxf32>, tensor<Bxf32>) {
  %0 = tensor.exp %x : tensor<Bxf32>
  func.return %0, %x, %0 : tensor<Bxf32>, tensor<Bxf32>, tensor<Bxf32>
}
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0, %1, %2 = func.call @f(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  func.return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK: func.func private @f(%x: tensor<Bxf32>) -> tensor<Bxf32>
// CHECK: func.func @main
// CHECK: [[R:%\w+]] = func.call @f(%x) : tensor<4xf32>
// CHECK: func.return [[R]], %x, [[R]]
// -----
// an argument that alone tells a size stays; one of two that do goes
func.func private @f(%x: tensor<Bx3xf32>, %y: tensor<Bxf32>, %n: tensor<Nxf32>) -> tensor<i64> {
  %0 = tensor.size "B" : tensor<i64>
  func.return %0 : tensor<i64>
}
func.func @main(%x: tensor<7x3xf32>, %y: tensor<7xf32>) -> tensor<i64> {
  %0 = func.call @f(%x, %y, %y) : (tensor<7x3xf32>, tensor<7xf32>, tensor<7xf32>) -> tensor<i64>
  func.return %0 : tensor<i64>
}
// CHECK: func.func private @f(%x: tensor<Bx3xf32>) -> tensor<i64>
// -----
// through several functions: nobody needs the sine
func.func private @inner(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tensor.exp %x : tensor<4xf32>
  %1 = tensor.mul %0, %y : tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func private @outer(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = tensor.sin %x : tensor<4xf32>
  %0, %1 = func.call @inner(%x, %s) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0, %1 = func.call @outer(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %0 : tensor<4xf32>
}
// CHECK-NOT: tensor.sin
// CHECK: func.call @inner(%x) : tensor<4xf32>
// CHECK: func.call @outer(%x) : tensor<4xf32>
// -----
// donated arguments are named by position
func.func private @f(%n: tensor<2xf32>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {donate = [0, 2]} {
  %0 = tensor.sub %x, %y : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %n: tensor<2xf32>) -> tensor<4xf32> {
  %y = tensor.exp %x : tensor<4xf32>
  %0 = func.call @f(%n, %x, %y) : (tensor<2xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK: func.func private @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {donate = [1]} {
