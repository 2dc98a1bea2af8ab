// test: roundtrip
// test: run interp

// the bytes of the first factor have no sign
func.func @dot(%c: i32, %a0: i8, %b0: i8, %a1: i8, %b1: i8) -> i32 {
  %zero = arith.constant dense<0> : vector<64xi8>
  %src = vector.broadcast %c : i32 to vector<16xi32>
  %a = vector.insert %a0, %zero[12] : i8 into vector<64xi8>
  %aa = vector.insert %a1, %a[15] : i8 into vector<64xi8>
  %b = vector.insert %b0, %zero[12] : i8 into vector<64xi8>
  %bb = vector.insert %b1, %b[15] : i8 into vector<64xi8>
  %r = x86vector.avx512.dot_bytes %src, %aa, %bb : vector<64xi8> -> vector<16xi32>
  %s = vector.extract %r[3] : i32 from vector<16xi32>
  func.return %s : i32
}
// run: @dot(1, 2, 3, 4, 5) == 27
// run: @dot(0, -1, -1, 0, 0) == -255
// run: @dot(0, -1, -128, -1, -128) == -65280
// run: @dot(2147483647, 1, 1, 0, 0) == -2147483648
