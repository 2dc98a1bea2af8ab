// What vectors of two lengths become in the llvm dialect, which has shuffles of equal ones alone.
func.func @main(%m: memref<12xf32>) -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %a = vector.load %m[%c0] : memref<12xf32>, vector<4xf32>
  %b = vector.load %m[%c4] : memref<12xf32>, vector<8xf32>
  %0 = vector.shuffle %a, %b [3, 4, 11, 0] : vector<4xf32>, vector<8xf32>
  %1 = vector.shuffle %b, %a [8, 7, 11, 0] : vector<8xf32>, vector<4xf32>
  %2 = vector.extract %0[1] : f32 from vector<4xf32>
  %3 = vector.extract %0[2] : f32 from vector<4xf32>
  %4 = vector.extract %1[2] : f32 from vector<4xf32>
  func.return %2, %3, %4 : f32, f32, f32
}
