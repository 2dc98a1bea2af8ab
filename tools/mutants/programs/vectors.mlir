// What vectors of two lengths become in the llvm dialect, which has shuffles of equal ones alone.
func.func @main(%x: f32) -> f32 {
  %first = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
  %second = arith.constant dense<[5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]> : vector<8xf32>
  %short = vector.broadcast %x : f32 to vector<4xf32>
  %long = vector.broadcast %x : f32 to vector<8xf32>
  %a = arith.mulf %short, %first : vector<4xf32>
  %b = arith.mulf %long, %second : vector<8xf32>
  %0 = vector.shuffle %a, %b [3, 4, 11, 0] : vector<4xf32>, vector<8xf32>
  %1 = vector.shuffle %b, %a [8, 7, 11, 0] : vector<8xf32>, vector<4xf32>
  %2 = vector.extract %0[1] : f32 from vector<4xf32>
  %3 = vector.extract %0[2] : f32 from vector<4xf32>
  %4 = vector.extract %1[2] : f32 from vector<4xf32>
  %5 = arith.subf %2, %3 : f32
  %6 = arith.mulf %5, %4 : f32
  func.return %6 : f32
}
