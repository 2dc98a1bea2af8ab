func.func @main(%x: memref<?xf64>, %out: memref<?xf64>, %count: memref<2xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %limit = arith.constant 0.5 : f64
  %n = memref.dim %x, %c0 : memref<?xf64>
  %many:2 = scf.for %i = %c0 to %n step %c1 iter_args(%above = %zero, %nans = %zero) -> (i64, i64) {
    %v = memref.load %x[%i] : memref<?xf64>
    %big = arith.cmpf ogt, %v, %limit : f64
    %nan = arith.cmpf uno, %v, %v : f64
    %r:2 = scf.if %big -> (f64, i64) {
      %more = arith.addi %above, %one : i64
      scf.yield %limit, %more : f64, i64
    } else {
      scf.yield %v, %above : f64, i64
    }
    %seen = arith.extui %nan : i1 to i64
    %total = arith.addi %nans, %seen : i64
    scf.if %nan {
      memref.store %limit, %out[%i] : memref<?xf64>
    } else {
      memref.store %r#0, %out[%i] : memref<?xf64>
    }
    scf.yield %r#1, %total : i64, i64
  }
  memref.store %many#0, %count[%c0] : memref<2xi64>
  %yes = arith.constant true
  scf.if %yes {
    memref.store %many#1, %count[%c1] : memref<2xi64>
  }
  func.return
}
