// test: verify
func.func @f(%x: vector<8xf32>, %a: vector<16xbf16>) {
  %r = x86vector.avx512.dot %x, %a, %a : vector<16xbf16> -> vector<8xf32>  // error: error[MLC0164]: x86vector.avx512.dot: vector<16xbf16> and vector<16xbf16> on vector<8xf32>
  func.return
}
// -----
func.func @bytes(%x: vector<2xi32>, %a: vector<8xi8>) {
  %r = x86vector.avx512.dot_bytes %x, %a, %a : vector<8xi8> -> vector<2xi32>  // error: error[MLC0164]: x86vector.avx512.dot_bytes: vector<8xi8> and vector<8xi8>: multiplies two vectors of 16, 32 or 64 bytes
  func.return
}
// -----
func.func @sums(%x: vector<16xi32>, %a: vector<32xi8>) {
  %r = x86vector.avx512.dot_bytes %x, %a, %a : vector<32xi8> -> vector<16xi32>  // error: error[MLC0164]: x86vector.avx512.dot_bytes: 32 bytes have sums of vector<8xi32>, not vector<16xi32>
  func.return
}
// -----
func.func @pairs(%a: vector<16xi8>, %b: vector<16xf16>) {
  %r = x86vector.pairs_of_bytes %a, %a : vector<16xi8>
  %s = vector.bitcast %r : vector<8xi16> to vector<16xi8>
  %t = vector.shuffle %s, %s [0, 1, 2, 3] : vector<16xi8>, vector<16xi8>
  %u = x86vector.pairs_of_bytes %t, %t : vector<4xi8>  // error: error[MLC0164]: x86vector.pairs_of_bytes: vector<4xi8> and vector<4xi8>
  func.return
}
