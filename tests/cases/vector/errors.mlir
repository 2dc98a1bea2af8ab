// test: verify
func.func @f(%x: vector<4xf32>) {
  %r = vector.reduction <add>, %x : vector<4xf32> into f32  // error: add does not work on vector<4xf32>
  func.return
}
// -----
func.func @f(%m: memref<4x4xf32, strided<[1, 4]>>, %i: index) {
  %v = vector.load %m[%i, %i] : memref<4x4xf32, strided<[1, 4]>>, vector<4xf32>  // error: is not contiguous
  func.return
}
// -----
func.func @f(%m: memref<4xf32>, %i: index, %k: vector<3xi1>, %p: vector<4xf32>) {
  %v = vector.maskedload %m[%i], %k, %p : memref<4xf32>, vector<3xi1>, vector<4xf32> into vector<4xf32>  // error: mask is vector<3xi1>
  func.return
}
// -----
func.func @f(%x: vector<4xf32>) {
  %r = vector.shuffle %x, %x [0, 8] : vector<4xf32>, vector<4xf32>  // error: names lanes
  func.return
}
// -----
func.func @f(%x: vector<4xf32>) {
  %r = vector.extract %x[4] : f32 from vector<4xf32>  // error: [4] is no place in vector<4xf32>
  func.return
}
// -----
func.func @f(%x: vector<4xf32>) {
  %r = vector.bitcast %x : vector<4xf32> to vector<4xi16>  // error: has not the bits of vector<4xi16>
  func.return
}
