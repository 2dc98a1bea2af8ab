func.func @main(%a: memref<?x?xf32>, %i: index, %n: index, %out: memref<4x?xf32>, %flat: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %w = memref.subview %a[%i, 1] [4, %n] [2, %c2] : memref<?x?xf32> to memref<4x?xf32, strided<[?, ?], offset: ?>>
  %inner = memref.subview %w[1, 0] [2, %c2] [1, 1] : memref<4x?xf32, strided<[?, ?], offset: ?>> to memref<2x?xf32, strided<[?, ?], offset: ?>>
  scf.for %r = %c0 to %c4 step %c1 {
    scf.for %c = %c0 to %n step %c1 {
      %v = memref.load %w[%r, %c] : memref<4x?xf32, strided<[?, ?], offset: ?>>
      memref.store %v, %out[%r, %c] : memref<4x?xf32>
    }
  }
  %ten = arith.constant 10.0 : f32
  memref.store %ten, %inner[%c1, %c1] : memref<2x?xf32, strided<[?, ?], offset: ?>>
  %columns = memref.dim %w, %c1 : memref<4x?xf32, strided<[?, ?], offset: ?>>
  %size = memref.dim %a, %c1 : memref<?x?xf32>
  %rows = memref.dim %a, %c0 : memref<?x?xf32>
  %diagonal = arith.addi %size, %c1 : index
  %d = memref.reinterpret_cast %a to offset: [1], sizes: [%columns], strides: [%diagonal] : memref<?x?xf32> to memref<?xf32, strided<[?], offset: 1>>
  %four = memref.cast %out : memref<4x?xf32> to memref<?x?xf32>
  scf.for %c = %c0 to %columns step %c1 {
    %v = memref.load %d[%c] : memref<?xf32, strided<[?], offset: 1>>
    %u = memref.load %four[%c1, %c] : memref<?x?xf32>
    %s = arith.subf %v, %u : f32
    memref.store %s, %flat[%c] : memref<?xf32>
  }
  func.return
}
