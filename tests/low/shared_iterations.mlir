memref.global "private" constant @weights : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>

func.func @main(%m: index, %n: index, %start: index, %x: memref<?x?xf32>, %y: memref<?x?xf32>, %z: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %half = arith.constant 0.5 : f32
  %w = memref.get_global @weights : memref<4xf32>
  scf.parallel (%i, %j) = (%start, %c0) to (%m, %n) step (%c2, %c1) {
    %a = memref.load %x[%i, %j] : memref<?x?xf32>
    %k = arith.remui %j, %c4 : index
    %b = memref.load %w[%k] : memref<4xf32>
    %c = arith.mulf %a, %b : f32
    %d = arith.addf %c, %half : f32
    memref.store %d, %y[%i, %j] : memref<?x?xf32>
  }
  scf.parallel (%j) = (%c0) to (%n) step (%c1) {
    %scratch = memref.alloca() : memref<2xf32>
    memref.store %half, %scratch[%c1] : memref<2xf32>
    scf.parallel (%i) = (%c0) to (%m) step (%c1) {
      %a = memref.load %x[%i, %j] : memref<?x?xf32>
      %first = arith.cmpi eq, %i, %c0 : index
      scf.if %first {
        %b = memref.load %scratch[%c1] : memref<2xf32>
        %c = arith.addf %a, %b : f32
        memref.store %c, %z[%j] : memref<?xf32>
      }
    }
  }
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%c1, %c2, %c2) step (%c1, %c1, %c1) {
    %at = arith.addi %j, %k : index
    %inside = arith.cmpi ult, %at, %c0 : index
    scf.if %inside {
      memref.store %half, %z[%at] : memref<?xf32>
    }
  }
  func.return
}
