// test: roundtrip
// test: run interp

// the second product of each pair is added first; what is subnormal is zero, be it a factor or a sum
func.func @dot(%c: f32, %a0: bf16, %b0: bf16, %a1: bf16, %b1: bf16) -> f32 {
  %zero = arith.constant dense<0.0> : vector<32xbf16>
  %src = vector.broadcast %c : f32 to vector<16xf32>
  %a = vector.insert %a0, %zero[6] : bf16 into vector<32xbf16>
  %aa = vector.insert %a1, %a[7] : bf16 into vector<32xbf16>
  %b = vector.insert %b0, %zero[6] : bf16 into vector<32xbf16>
  %bb = vector.insert %b1, %b[7] : bf16 into vector<32xbf16>
  %r = x86vector.avx512.dot %src, %aa, %bb : vector<32xbf16> -> vector<16xf32>
  %s = vector.extract %r[3] : f32 from vector<16xf32>
  func.return %s : f32
}
// run: @dot(1.0, 2.0, 3.0, 4.0, 5.0) == 27.0
// run: @dot(16777216.0, 1.0, 1.0, 1.0, 1.0) == 16777216.0
// run: @dot(3.0e38, 3.0e38, 1.0, -3.0e38, 1.0) == 3.0e38
// run: @dot(0.0, 1.0e-39, 1.0e10, 0.0, 0.0) == 0.0
// run: @dot(1.0e-39, 0.0, 0.0, 0.0, 0.0) == 0.0
// run: @dot(0.0, 1.0e-20, 1.0e-20, 0.0, 0.0) == 0.0
