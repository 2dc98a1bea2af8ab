// test: roundtrip
// test: run interp
func.func @triangle(%n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> (index) {
    %s = arith.addi %sum, %i : index
    scf.yield %s : index
  }
  func.return %r : index
}
// run: @triangle(5) == 10
// run: @triangle(0) == 0

func.func @swap_often(%a: f32, %b: f32) -> (f32, f32) {
  %low = arith.constant -2 : i32
  %high = arith.constant 3 : i32
  %step = arith.constant 2 : i32
  %r:2 = scf.for %i = %low to %high step %step iter_args(%x = %a, %y = %b) -> (f32, f32) : i32 {
    scf.yield %y, %x : f32, f32
  }
  func.return %r#0, %r#1 : f32, f32
}
// run: @swap_often(1, 2) == (2, 1)

func.func @log2(%n: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r:2 = scf.while (%v = %n, %count = %zero) : (i64, i64) -> (i64, i64) {
    %more = arith.cmpi sgt, %v, %one : i64
    scf.condition(%more) %v, %count : i64, i64
  } do {
  ^bb0(%v: i64, %count: i64):
    %half = arith.shrsi %v, %one : i64
    %next = arith.addi %count, %one : i64
    scf.yield %half, %next : i64, i64
  }
  func.return %r#1 : i64
}
// run: @log2(1000) == 9

func.func @sign(%x: f64) -> f64 {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %minus = arith.constant -1.0 : f64
  %below = arith.cmpf olt, %x, %zero : f64
  %r = scf.if %below -> (f64) {
    scf.yield %minus : f64
  } else {
    %above = arith.cmpf ogt, %x, %zero : f64
    %s = scf.if %above -> (f64) {
      scf.yield %one : f64
    } else {
      scf.yield %x : f64
    }
    scf.yield %s : f64
  }
  func.return %r : f64
}
// run: @sign(-3) == -1
// run: @sign(0.25) == 1
// run: @sign(nan) == nan
