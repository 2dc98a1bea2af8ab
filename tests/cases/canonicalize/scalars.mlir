// test: pass canonicalize
// tolerance: bits

// constants are computed, and what they make an identity goes
func.func @identities(%x: i32) -> (i32, i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %three = arith.addi %c1, %c2 : i32
  %a = arith.addi %c0, %x : i32
  %b = arith.muli %a, %c1 : i32
  %c = arith.muli %x, %c0 : i32
  %d = arith.muli %three, %b : i32
  func.return %b, %c, %d : i32, i32, i32
}
// run: @identities(-5) == (-5, 0, -15)
// CHECK-LABEL: @identities
// CHECK-DAG: [[ZERO:%\w+]] = arith.constant 0 : i32
// CHECK-DAG: [[THREE:%\w+]] = arith.constant 3 : i32
// CHECK: [[D:%\w+]] = arith.muli %x, [[THREE]] : i32
// CHECK-NEXT: func.return %x, [[ZERO]], [[D]] : i32, i32, i32
// -----
// floats keep their zeros: x + 0.0 is not x where x is -0.0, and x * 0.0 is not 0.0
func.func @floats(%x: f32) -> (f32, f32) {
  %zero = arith.constant 0.0 : f32
  %a = arith.addf %x, %zero : f32
  %b = arith.mulf %x, %zero : f32
  func.return %a, %b : f32, f32
}
// run: @floats(-0.0) == (0.0, -0.0)
// run: @floats(inf) == (inf, nan)
// CHECK: arith.addf
// CHECK: arith.mulf
// -----
// a constant goes to the right of a commutative operation, and only of those
func.func @sides(%x: i32) -> (i32, i32) {
  %c = arith.constant 7 : i32
  %a = arith.xori %c, %x : i32
  %b = arith.subi %c, %x : i32
  func.return %a, %b : i32, i32
}
// CHECK: [[C:%\w+]] = arith.constant 7
// CHECK: arith.xori %x, [[C]]
// CHECK: arith.subi [[C]], %x
// -----
// a choice between known things is made
func.func @choice(%x: f32, %y: f32) -> f32 {
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %c = arith.cmpi slt, %one, %two : i32
  %r = arith.select %c, %x, %y : f32
  func.return %r : f32
}
// CHECK: func.func @choice
// CHECK-NEXT: func.return %x : f32
// -----
// folding rounds as the operation does
func.func @rounds() -> (f32, i8) {
  %a = arith.constant 16777216.0 : f32
  %b = arith.constant 1.0 : f32
  %c = arith.addf %a, %b : f32
  %d = arith.constant 127 : i8
  %e = arith.constant 1 : i8
  %f = arith.addi %d, %e : i8
  func.return %c, %f : f32, i8
}
// run: @rounds() == (16777216.0, -128)
// CHECK-NOT: arith.add
// -----
// what is undefined folds to some number, and to none that has no end
func.func @undefined() -> (index, index, index, index) {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %minus = arith.constant -1 : index
  %far = arith.constant 100000000000 : index
  %a = arith.floordivsi %one, %zero : index
  %b = arith.shli %one, %far : index
  %c = arith.shli %one, %minus : index
  %d = arith.shrsi %one, %minus : index
  func.return %a, %b, %c, %d : index, index, index, index
}
// CHECK-LABEL: @undefined
// CHECK-NOT: arith.shli
// CHECK-NOT: arith.floordivsi
