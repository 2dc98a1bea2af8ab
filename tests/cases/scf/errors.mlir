// test: verify
func.func @f(%n: i32) {
  %c = arith.constant 0 : index
  scf.for %i = %c to %c step %c {
    "scf.for"(%c, %n, %c) ({  // error: bounds and step must have the same integer type
    ^bb0(%j: index):
      scf.yield
    }) : (index, i32, index) -> ()
    scf.yield
  }
  func.return
}
// -----
func.func @f(%n: index, %x: f32) {
  %r = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (f32) {
    scf.yield %i : index  // error: yields index, expected f32
  }
  func.return
}
// -----
func.func @f(%c: i1) -> f32 {
  %r = "scf.if"(%c) ({  // error: has results, but no second region
    %x = arith.constant 1.0 : f32
    scf.yield %x : f32
  }, {
  }) : (i1) -> f32
  func.return %r : f32
}
// -----
func.func @f(%x: i32) -> i32 {
  scf.yield %x : i32  // error: is outside of scf.for, scf.if and scf.while
}
// -----
func.func @f(%n: index) {
  "scf.parallel"(%n, %n) ({  // error: needs as many lower bounds as upper bounds and steps
  ^bb0(%i: index):
    "scf.reduce"() : () -> ()
  }) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (index, index) -> ()
  func.return
}
// -----
func.func @f(%n: index) {
  "scf.parallel"(%n, %n, %n) ({  // error: the body takes nothing, expected one index per dimension
    "scf.reduce"() : () -> ()
  }) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (index, index, index) -> ()
  func.return
}
// -----
func.func @f(%n: index, %x: f32) {
  "scf.parallel"(%n, %n, %n, %x) ({  // error: bounds and steps must be indices, and reductions are not supported
  ^bb0(%i: index):
    "scf.reduce"() : () -> ()
  }) {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (index, index, index, f32) -> ()
  func.return
}
// -----
func.func @f(%x: i32) {
  scf.reduce  // error: is outside of scf.parallel
}
