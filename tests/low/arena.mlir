func.func @main(%n: index, %x: memref<?x3xf32>, %y: memref<3x?xf32>, %count: memref<i64>, %arena: memref<?xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c12 = arith.constant 12 : index
  %bytes = arith.muli %n, %c12 : index
  %square = memref.view %arena[%c0][%n] : memref<?xi8> to memref<?x3xf32>
  %last = memref.view %arena[%bytes][] : memref<?xi8> to memref<2xi64>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  memref.store %zero, %last[%c1] : memref<2xi64>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %v = memref.load %x[%i, %j] : memref<?x3xf32>
      %w = arith.mulf %v, %v : f32
      memref.store %w, %square[%i, %j] : memref<?x3xf32>
      %seen = memref.load %last[%c1] : memref<2xi64>
      %more = arith.addi %seen, %one : i64
      memref.store %more, %last[%c1] : memref<2xi64>
    }
  }
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %v = memref.load %square[%i, %j] : memref<?x3xf32>
      memref.store %v, %y[%j, %i] : memref<3x?xf32>
    }
  }
  %all = memref.load %last[%c1] : memref<2xi64>
  memref.store %all, %count[] : memref<i64>
  func.return
}
