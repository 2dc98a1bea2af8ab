// test: roundtrip
// test: run interp
func.func @table(%m: index, %n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %t = memref.alloca() : memref<4x5xindex>
  scf.parallel (%p, %q) = (%c0, %c0) to (%c3, %c2) step (%c1, %c1) {
    memref.store %c0, %t[%p, %q] : memref<4x5xindex>
  }
  scf.parallel (%i, %j) = (%c1, %c0) to (%m, %n) step (%c2, %c1) {
    %x = arith.addi %i, %j : index
    memref.store %x, %t[%i, %j] : memref<4x5xindex>
    scf.reduce
  }
  %r = memref.load %t[%c1, %c1] : memref<4x5xindex>
  func.return %r : index
}
// run: @table(4, 5) == 2
// run: @table(1, 5) == 0
// run: @table(4, 0) == 0
// CHECK: scf.parallel (%i, %j) = (%c1, %c0) to (%m, %n) step (%c2, %c1) {
// CHECK-NOT: init
// CHECK: scf.reduce
