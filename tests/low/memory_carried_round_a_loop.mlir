func.func @main(%n: index, %a: memref<?xf32>, %b: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %t = %c0 to %c3 step %c1 iter_args(%p = %a, %q = %b) -> (memref<?xf32>, memref<?xf32>) {
    %m = arith.subi %n, %c1 : index
    scf.for %i = %c0 to %m step %c1 {
      %j = arith.addi %i, %c1 : index
      %x = memref.load %p[%i] : memref<?xf32>
      %y = memref.load %p[%j] : memref<?xf32>
      %s = arith.addf %x, %y : f32
      memref.store %s, %q[%i] : memref<?xf32>
    }
    scf.yield %q, %p : memref<?xf32>, memref<?xf32>
  }
  %v = memref.load %r#0[%c0] : memref<?xf32>
  memref.store %v, %r#1[%c1] : memref<?xf32>
  func.return
}
