func.func private @scaled(%x: memref<?x?xf32, strided<[?, 1]>>, %by: f32, %again: i1) -> (f32, index, i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1]>>
  %columns = memref.dim %x, %c1 : memref<?x?xf32, strided<[?, 1]>>
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %rows step %c1 iter_args(%outer = %zero) -> (f32) {
    %s = scf.for %j = %c0 to %columns step %c1 iter_args(%acc = %outer) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32, strided<[?, 1]>>
      %w = arith.mulf %v, %by : f32
      memref.store %w, %x[%i, %j] : memref<?x?xf32, strided<[?, 1]>>
      %t = arith.addf %acc, %w : f32
      scf.yield %t : f32
    }
    scf.yield %s : f32
  }
  %n = arith.muli %rows, %columns : index
  %yes = arith.constant true
  %other = arith.xori %again, %yes : i1
  func.return %r, %n, %other : f32, index, i1
}
func.func @main(%x: memref<?x?xf32, strided<[?, 1]>>, %sum: memref<2xf32>, %count: memref<2xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %by = arith.constant 3.0 : f32
  %no = arith.constant false
  %a:3 = func.call @scaled(%x, %by, %no) : (memref<?x?xf32, strided<[?, 1]>>, f32, i1) -> (f32, index, i1)
  memref.store %a#0, %sum[%c0] : memref<2xf32>
  scf.if %a#2 {
    memref.store %a#1, %count[%c1] : memref<2xindex>
  }
  func.return
}
