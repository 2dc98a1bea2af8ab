func.func @main(%x: memref<?xi32>) {
  %low = arith.constant -3 : i32
  %high = arith.constant 4 : i32
  %step = arith.constant 2 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %low to %high step %step iter_args(%at = %c0) -> (index) : i32 {
    memref.store %i, %x[%at] : memref<?xi32>
    %next = arith.addi %at, %c1 : index
    scf.yield %next : index
  }
  %n = arith.index_cast %r : index to i32
  memref.store %n, %x[%r] : memref<?xi32>
  func.return
}
