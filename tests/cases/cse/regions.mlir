// test: pass cse
// tolerance: bits

// what stands around a region reaches it; what stands in one branch reaches neither the other nor what follows
func.func @scopes(%c: i1, %x: i32) -> (i32, i32) {
  %a = arith.addi %x, %x : i32
  %r = scf.if %c -> (i32) {
    %b = arith.addi %x, %x : i32
    %d = arith.muli %b, %b : i32
    scf.yield %d : i32
  } else {
    %e = arith.muli %a, %a : i32
    scf.yield %e : i32
  }
  %f = arith.muli %a, %a : i32
  func.return %r, %f : i32, i32
}
// run: @scopes(true, 3) == (36, 36)
// CHECK: [[A:%\w+]] = arith.addi %x, %x
// CHECK-NOT: arith.addi
// CHECK: scf.if
// CHECK: arith.muli [[A]], [[A]]
// CHECK: else
// CHECK: arith.muli [[A]], [[A]]
// CHECK: arith.muli [[A]], [[A]]
// -----
// an operation after the region does not stand for one inside it
func.func @later(%c: i1, %x: i32) -> (i32, i32) {
  %r = scf.if %c -> (i32) {
    %d = arith.muli %x, %x : i32
    scf.yield %d : i32
  } else {
    scf.yield %x : i32
  }
  %f = arith.muli %x, %x : i32
  func.return %r, %f : i32, i32
}
// CHECK: scf.if
// CHECK-NEXT: arith.muli
// CHECK: }
// CHECK: arith.muli
// -----
// equal regions without effect make equal operations
func.func @twice(%n: index, %x: f32) -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (f32) {
    %s = arith.addf %v, %x : f32
    scf.yield %s : f32
  }
  %b = scf.for %j = %c0 to %n step %c1 iter_args(%w = %x) -> (f32) {
    %t = arith.addf %w, %x : f32
    scf.yield %t : f32
  }
  %d = scf.for %j = %c0 to %n step %c1 iter_args(%w = %x) -> (f32) {
    %t = arith.addf %w, %w : f32
    scf.yield %t : f32
  }
  func.return %a, %b, %d : f32, f32, f32
}
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: func.return [[A:%\w+]], [[A]], %{{\w+}}
// -----
// memory may have changed between two loads; a store is never merged
func.func @memory(%m: memref<4xf32>, %i: index, %x: f32) -> (f32, f32) {
  %a = memref.load %m[%i] : memref<4xf32>
  memref.store %x, %m[%i] : memref<4xf32>
  memref.store %x, %m[%i] : memref<4xf32>
  %b = memref.load %m[%i] : memref<4xf32>
  func.return %a, %b : f32, f32
}
// CHECK: memref.load
// CHECK: memref.store
// CHECK: memref.store
// CHECK: memref.load
// -----
// equal but for what they reach from around them: not equal
func.func @reaching(%c: i1, %x: i32, %y: i32) -> (i32, i32) {
  %r = scf.if %c -> (i32) {
    %a = arith.muli %x, %x : i32
    scf.yield %a : i32
  } else {
    scf.yield %x : i32
  }
  %s = scf.if %c -> (i32) {
    %a = arith.muli %y, %y : i32
    scf.yield %a : i32
  } else {
    scf.yield %y : i32
  }
  func.return %r, %s : i32, i32
}
// run: @reaching(true, 3, 5) == (9, 25)
// run: @reaching(false, 3, 5) == (3, 5)
