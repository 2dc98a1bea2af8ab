func.func private @f_arena_bytes(%B: index) -> index {
  %c8 = arith.constant 8 : index
  %n = arith.muli %B, %c8 : index
  func.return %n : index
}
func.func @f(%B: index, %x: memref<?x2xf32>, %w: memref<?xf32>, %half: memref<?xf32>, %y: memref<?xf32>,
             %arena: memref<?xi8>, %errors: memref<1xi64>)
    attributes {interface = "(tensor<Bx2xf32>, tensor<(2*B+1)xf32>) -> (tensor<(B floordiv 2)xf32>, tensor<(2*B+1)xf32>, tensor<Bxf32>)",
                symbols = ["B"], aliases = [-1, 1, -1]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tmp = memref.view %arena[%c0][%B] : memref<?xi8> to memref<?x2xf32>
  scf.for %i = %c0 to %B step %c1 {
    %a = memref.load %x[%i, %c1] : memref<?x2xf32>
    memref.store %a, %tmp[%i, %c0] : memref<?x2xf32>
    %b = memref.load %tmp[%i, %c0] : memref<?x2xf32>
    memref.store %b, %y[%i] : memref<?xf32>
    memref.store %b, %w[%i] : memref<?xf32>
    %zero = arith.constant 0.0 : f32
    %bad = arith.cmpf olt, %b, %zero : f32
    scf.if %bad {
      %element = arith.index_cast %i : index to i64
      %least = memref.atomic_rmw minu %element, %errors[%c0] : (i64, memref<1xi64>) -> i64
    }
  }
  %n = memref.dim %half, %c0 : memref<?xf32>
  %m = memref.dim %w, %c0 : memref<?xf32>
  %k = arith.addi %n, %m : index
  %l = arith.index_cast %k : index to i32
  %s = arith.sitofp %l : i32 to f32
  scf.for %i = %c0 to %n step %c1 {
    memref.store %s, %half[%i] : memref<?xf32>
  }
  func.return
}
