func.func @main(%n: index, %x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %c8 {
    %tmp = memref.alloca() : memref<8xf32>
    %v = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
    vector.store %v, %tmp[%c0] : memref<8xf32>, vector<8xf32>
    scf.for %j = %c0 to %c8 step %c1 {
      %back = arith.constant 7 : index
      %k = arith.subi %back, %j : index
      %e = memref.load %tmp[%k] : memref<8xf32>
      %at = arith.addi %i, %j : index
      memref.store %e, %x[%at] : memref<?xf32>
    }
  }
  func.return
}
