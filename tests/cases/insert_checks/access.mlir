// test: pass insert_checks
// meaning: none, it is that of an entry; tests/test_insert_checks.py compares the meaning
func.func @main(%N: index, %x: memref<?xf32>, %y: memref<?xf32>, %arena: memref<?xi8>, %errors: memref<1xi64>)
    attributes {interface = "(tensor<Nxf32>) -> tensor<Nxf32>", symbols = ["N"], aliases = [-1], error_sites = []} {
  func.call @copy(%N, %x, %y) : (index, memref<?xf32>, memref<?xf32>) -> ()
  func.return
}
func.func private @copy(%N: index, %x: memref<?xf32>, %y: memref<?xf32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %N step %1 {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK:      func.func @main
// CHECK-SAME: error_sites = [
// CHECK-SAME: trap: memref.load outside of memref<?xf32>, at index
// CHECK-SAME: trap: memref.store outside of memref<?xf32>, at index
// CHECK-SAME: trap: memref.load of memref<?xf32> reads uninitialised memory, at index
// CHECK-SAME: trap: a result memref<?xf32> is not written at element
// CHECK:      func.call @copy(%N, %x, %y
// CHECK:      func.func private @copy(%N: index, %x: memref<?xf32>, %y: memref<?xf32>, %x_unwritten: memref<?xi32>, %y_unwritten: memref<?xi32>, %trap: memref<1xi64>)
// CHECK:      scf.for %i
// CHECK:        [[SIZE:%\d+]] = memref.dim %x
// CHECK-NEXT:   [[SAFE:%\d+]] = arith.cmpi ult, %i, [[SIZE]] : index
// CHECK:        scf.if [[SAFE]] -> (f32) {
// CHECK:          memref.load %x[%i]
// CHECK:          memref.load %x_unwritten[%i]
// CHECK:        } else {
// CHECK:          func.call @record_trap(%trap
// CHECK:        scf.if
// CHECK:          memref.store {{.*}}, %y[%i]
// CHECK:          memref.store {{.*}}, %y_unwritten[%i]
