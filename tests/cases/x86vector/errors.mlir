// test: verify
func.func @f(%x: vector<8xf32>, %a: vector<16xbf16>) {
  %r = x86vector.avx512.dot %x, %a, %a : vector<16xbf16> -> vector<8xf32>  // error: error[MLC0164]: x86vector.avx512.dot: vector<16xbf16> and vector<16xbf16> on vector<8xf32>
  func.return
}
// -----
func.func @bytes(%x: vector<8xi32>, %a: vector<32xi8>) {
  %r = x86vector.avx512.dot_bytes %x, %a, %a : vector<32xi8> -> vector<8xi32>  // error: error[MLC0164]: x86vector.avx512.dot_bytes: vector<32xi8> and vector<32xi8> on vector<8xi32>
  func.return
}
