// test: pass cse
// tolerance: bits

// equal operations are computed once; operands of commutative ones may stand in either order
func.func @equal(%x: i32, %y: i32) -> (i32, i32, i32, i32) {
  %a = arith.addi %x, %y : i32
  %b = arith.addi %y, %x : i32
  %c = arith.subi %x, %y : i32
  %d = arith.subi %y, %x : i32
  func.return %a, %b, %c, %d : i32, i32, i32, i32
}
// CHECK: [[A:%\w+]] = arith.addi %x, %y
// CHECK-NEXT: [[C:%\w+]] = arith.subi %x, %y
// CHECK-NEXT: [[D:%\w+]] = arith.subi %y, %x
// CHECK-NEXT: func.return [[A]], [[A]], [[C]], [[D]]
// -----
// attributes that look alike to Python are not equal
func.func @attributes(%x: f32) -> (f32, f32, i1, i1) {
  %a = arith.constant 0.0 : f32
  %b = arith.constant -0.0 : f32
  %c = arith.cmpf olt, %x, %a : f32
  %d = arith.cmpf ole, %x, %a : f32
  %e = arith.addf %x, %a : f32
  %f = arith.addf %x, %b : f32
  func.return %e, %f, %c, %d : f32, f32, i1, i1
}
// run: @attributes(-0.0) == (0.0, -0.0, false, true)
// CHECK: arith.constant
// CHECK: arith.constant
// CHECK: arith.cmpf
// CHECK: arith.cmpf
// CHECK: arith.addf
// CHECK: arith.addf
// -----
// arrays are compared by their bytes
func.func @arrays() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a = tensor.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = tensor.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %c = tensor.constant dense<[1.0, 3.0]> : tensor<2xf32>
  func.return %a, %b, %c : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
// CHECK: [[A:%\w+]] = tensor.constant dense<[1.0, 2.0]>
// CHECK-NEXT: [[C:%\w+]] = tensor.constant dense<[1.0, 3.0]>
// CHECK-NEXT: func.return [[A]], [[A]], [[C]]
