// test: pass cse

// private functions that are equal are one; calls of functions without effect are computed once
func.func private @a(%x: tensor<Bxf32>) -> tensor<Bxf32> {
  %0 = tensor.exp %x : tensor<Bxf32>
  func.return %0 : tensor<Bxf32>
}
func.func private @b(%y: tensor<Bxf32>) -> tensor<Bxf32> {
  %0 = tensor.exp %y : tensor<Bxf32>
  func.return %0 : tensor<Bxf32>
}
func.func private @calls_a(%x: tensor<Bxf32>) -> tensor<Bxf32> {
  %0 = func.call @a(%x) : (tensor<Bxf32>) -> tensor<Bxf32>
  func.return %0 : tensor<Bxf32>
}
func.func private @calls_b(%x: tensor<Bxf32>) -> tensor<Bxf32> {
  %0 = func.call @b(%x) : (tensor<Bxf32>) -> tensor<Bxf32>
  func.return %0 : tensor<Bxf32>
}
func.func @entry(%x: tensor<Bxf32>) -> (tensor<Bxf32>, tensor<Bxf32>) {
  %0 = func.call @calls_a(%x) : (tensor<Bxf32>) -> tensor<Bxf32>
  %1 = func.call @calls_b(%x) : (tensor<Bxf32>) -> tensor<Bxf32>
  func.return %0, %1 : tensor<Bxf32>, tensor<Bxf32>
}
// CHECK: func.func private @a
// CHECK-NOT: @b
// CHECK-NOT: @calls_b
// CHECK: func.func @entry
// CHECK-NEXT: [[R:%\w+]] = func.call @calls_a
// CHECK-NEXT: func.return [[R]], [[R]]
