func.func @main(%n: index, %x: memref<?xf32>, %y: memref<?xf32>, %sum: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %scale = arith.constant dense<[1.0, -1.0, 2.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.1, -0.0]> : vector<16xf32>
  %r = scf.for %i = %c0 to %n step %c16 iter_args(%acc = %zero) -> (vector<16xf32>) {
    %left = arith.subi %n, %i : index
    %mask = vector.create_mask %left : vector<16xi1>
    %v = vector.maskedload %x[%i], %mask, %zero : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %w = arith.mulf %v, %scale : vector<16xf32>
    vector.maskedstore %y[%i], %mask, %w : memref<?xf32>, vector<16xi1>, vector<16xf32>
    %s = arith.addf %acc, %w : vector<16xf32>
    scf.yield %s : vector<16xf32>
  }
  vector.store %r, %sum[%c0] : memref<16xf32>, vector<16xf32>
  func.return
}
