// test: pass dce
// tolerance: bits

// unused operations go with what only they used; effects and their operands stay
func.func @unused(%x: i32, %m: memref<4xi32>, %i: index) -> i32 {
  %a = arith.addi %x, %x : i32
  %b = arith.muli %a, %a : i32
  %c = arith.subi %x, %x : i32
  %d = memref.load %m[%i] : memref<4xi32>
  memref.store %c, %m[%i] : memref<4xi32>
  func.return %x : i32
}
// CHECK: func.func @unused
// CHECK-NEXT: [[C:%\w+]] = arith.subi
// CHECK-NEXT: memref.store [[C]]
// CHECK-NEXT: func.return %x
// -----
// a region goes if nothing in it has an effect and nothing uses its results; one that stores stays
func.func @regions(%n: index, %x: f32, %m: memref<4xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (f32) {
    %s = arith.addf %v, %x : f32
    %unused = arith.mulf %v, %x : f32
    scf.yield %s : f32
  }
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (f32) {
    memref.store %v, %m[%c0] : memref<4xf32>
    %unused = arith.mulf %v, %x : f32
    scf.yield %v : f32
  }
  func.return %x : f32
}
// CHECK: scf.for
// CHECK-NEXT: memref.store
// CHECK-NEXT: scf.yield
// CHECK-NOT: scf.for
// CHECK-NOT: arith.mulf
// CHECK-NOT: arith.addf
// -----
// private functions that no public one reaches go, those in a circle too; a call without effect may go
func.func private @used(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  func.return %0 : f32
}
func.func private @only_called_in_vain(%x: f32) -> f32 {
  %0 = arith.mulf %x, %x : f32
  func.return %0 : f32
}
func.func private @circle(%x: f32) -> f32 {
  %0 = func.call @circle(%x) : (f32) -> f32
  func.return %0 : f32
}
func.func private @writes(%m: memref<4xf32>, %i: index, %x: f32) -> f32 {
  memref.store %x, %m[%i] : memref<4xf32>
  func.return %x : f32
}
func.func @entry(%m: memref<4xf32>, %i: index, %x: f32) -> f32 {
  %0 = func.call @used(%x) : (f32) -> f32
  %1 = func.call @only_called_in_vain(%x) : (f32) -> f32
  %2 = func.call @writes(%m, %i, %x) : (memref<4xf32>, index, f32) -> f32
  func.return %0 : f32
}
// CHECK: @used
// CHECK-NOT: @only_called_in_vain
// CHECK-NOT: @circle
// CHECK: @writes
// CHECK: func.call @used
// CHECK-NEXT: func.call @writes
