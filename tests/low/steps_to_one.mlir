func.func @main(%x: memref<?xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %three = arith.constant 3 : i64
  %n = memref.dim %x, %c0 : memref<?xi64>
  scf.for %i = %c0 to %n step %c1 {
    %start = memref.load %x[%i] : memref<?xi64>
    %r:2 = scf.while (%v = %start, %steps = %zero) : (i64, i64) -> (i64, i64) {
      %going = arith.cmpi ne, %v, %one : i64
      scf.condition(%going) %v, %steps : i64, i64
    } do {
    ^bb0(%v: i64, %steps: i64):
      %odd = arith.remui %v, %two : i64
      %is_odd = arith.cmpi eq, %odd, %one : i64
      %half = arith.shrui %v, %one : i64
      %triple = arith.muli %v, %three : i64
      %up = arith.addi %triple, %one : i64
      %next = arith.select %is_odd, %up, %half : i64
      %count = arith.addi %steps, %one : i64
      scf.yield %next, %count : i64, i64
    }
    memref.store %r#1, %x[%i] : memref<?xi64>
  }
  func.return
}
