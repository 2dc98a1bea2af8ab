// test: roundtrip
// test: run interp

// the bytes of the first factor have no sign, and sums are clamped
func.func @pair(%a0: i8, %b0: i8, %a1: i8, %b1: i8) -> i16 {
  %zero = arith.constant dense<0> : vector<16xi8>
  %a = vector.insert %a0, %zero[12] : i8 into vector<16xi8>
  %aa = vector.insert %a1, %a[13] : i8 into vector<16xi8>
  %b = vector.insert %b0, %zero[12] : i8 into vector<16xi8>
  %bb = vector.insert %b1, %b[13] : i8 into vector<16xi8>
  %r = x86vector.pairs_of_bytes %aa, %bb : vector<16xi8>
  %s = vector.extract %r[6] : i16 from vector<8xi16>
  func.return %s : i16
}
// run: @pair(2, 3, 4, 5) == 26
// run: @pair(-1, -1, 0, 0) == -255
// run: @pair(-1, -128, -1, -128) == -32768
// run: @pair(-1, 127, -1, 127) == 32767
