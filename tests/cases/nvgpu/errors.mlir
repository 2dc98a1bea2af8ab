// test: verify
func.func @f(%a: vector<4x2xf32>, %b: vector<2x2xf32>, %c: vector<2x2xf32>) {
  %0 = nvgpu.mma.sync (%a, %b, %c) {mmaShape = [16, 8, 16]} : (vector<4x2xf32>, vector<2x2xf32>, vector<2x2xf32>) -> vector<2x2xf32>  // error: error[MLC0184]: nvgpu.mma.sync: [16, 8, 16] of vector<4x2xf32>
  func.return
}
// -----
func.func @f(%s: memref<256xf32, #gpu.address_space<workgroup>>, %i: index) {
  %0 = nvgpu.ldmatrix %s[%i] {transpose = true, numTiles = 4} : memref<256xf32, #gpu.address_space<workgroup>> -> vector<4x1xf32>  // error: error[MLC0184]: nvgpu.ldmatrix: 4 tiles of a memref<256xf32
  func.return
}
// -----
func.func @f(%s: memref<256xbf16, #gpu.address_space<workgroup>>, %g: memref<?xbf16>, %i: index) {
  %0 = nvgpu.device_async_copy %g[%i], %s[%i], 3 : memref<?xbf16> to memref<256xbf16, #gpu.address_space<workgroup>>  // error: error[MLC0184]: nvgpu.device_async_copy: 3 elements of memref<?xbf16>
  func.return
}
