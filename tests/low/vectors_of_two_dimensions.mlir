func.func @main(%x: memref<4x8xf32>, %y: memref<8x4xf32>, %z: memref<16xi16>, %l: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %none = arith.constant dense<0.0> : vector<4x8xf32>
  %r0 = vector.load %x[%c0, %c0] : memref<4x8xf32>, vector<8xf32>
  %r1 = vector.load %x[%c1, %c0] : memref<4x8xf32>, vector<8xf32>
  %r2 = vector.load %x[%c2, %c0] : memref<4x8xf32>, vector<8xf32>
  %r3 = vector.load %x[%c3, %c0] : memref<4x8xf32>, vector<8xf32>
  %m0 = vector.insert %r0, %none[0] : vector<8xf32> into vector<4x8xf32>
  %m1 = vector.insert %r1, %m0[1] : vector<8xf32> into vector<4x8xf32>
  %m2 = vector.insert %r2, %m1[2] : vector<8xf32> into vector<4x8xf32>
  %m3 = vector.insert %r3, %m2[3] : vector<8xf32> into vector<4x8xf32>
  %k = arith.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [-1.0, -2.0, 1.0, 1.0, 1.0, 1.0, 1.0, -0.0]]> : vector<4x8xf32>
  %s = arith.addf %m3, %k : vector<4x8xf32>
  %mask = vector.create_mask %c3, %l : vector<4x8xi1>
  %chosen = arith.select %mask, %s, %m3 : vector<4x8xi1>, vector<4x8xf32>
  %five = arith.constant 5.0 : f32
  %marked = vector.insert %five, %chosen[2, 7] : f32 into vector<4x8xf32>
  %t = vector.transpose %marked, [1, 0] : vector<4x8xf32> to vector<8x4xf32>
  %e = vector.extract %t[1, 2] : f32 from vector<8x4xf32>
  %all = vector.broadcast %e : f32 to vector<8x4xf32>
  %u = arith.mulf %t, %all : vector<8x4xf32>
  %u0 = vector.extract %u[0] : vector<4xf32> from vector<8x4xf32>
  %u7 = vector.extract %u[7] : vector<4xf32> from vector<8x4xf32>
  vector.store %u0, %y[%c0, %c0] : memref<8x4xf32>, vector<4xf32>
  vector.store %u7, %y[%c3, %c0] : memref<8x4xf32>, vector<4xf32>
  %lane = vector.extract %r0[%l] : f32 from vector<8xf32>
  %put = vector.insert %lane, %u0[%c2] : f32 into vector<4xf32>
  %long = vector.shuffle %put, %r1 [0, 11, 4, 2] : vector<4xf32>, vector<8xf32>
  vector.store %long, %y[%c1, %c0] : memref<8x4xf32>, vector<4xf32>
  %wide = vector.broadcast %u0 : vector<4xf32> to vector<2x4xf32>
  %w1 = vector.extract %wide[1] : vector<4xf32> from vector<2x4xf32>
  vector.store %w1, %y[%c2, %c0] : memref<8x4xf32>, vector<4xf32>
  %bits = vector.bitcast %r0 : vector<8xf32> to vector<16xi16>
  vector.store %bits, %z[%c0] : memref<16xi16>, vector<16xi16>
  func.return
}
