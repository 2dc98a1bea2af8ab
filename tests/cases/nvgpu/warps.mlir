// test: roundtrip
func.func @f(%a: vector<4x2xbf16>, %b: vector<2x2xbf16>, %c: vector<2x2xf32>, %s: memref<4x256xbf16, #gpu.address_space<workgroup>>, %g: memref<?xbf16>, %i: index, %x: vector<4x1xf32>, %y: vector<2x1xf32>) {
  %0 = nvgpu.mma.sync (%a, %b, %c) {mmaShape = [16, 8, 16]} : (vector<4x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>) -> vector<2x2xf32>
  %1 = nvgpu.mma.sync (%x, %y, %c) {mmaShape = [16, 8, 8], tf32Enabled = true} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
  %2 = nvgpu.ldmatrix %s[%i, %i] {transpose = false, numTiles = 4 : i32} : memref<4x256xbf16, #gpu.address_space<workgroup>> -> vector<4x2xbf16>
  %3 = nvgpu.device_async_copy %g[%i], %s[%i, %i], 8 {bypassL1 = true} : memref<?xbf16> to memref<4x256xbf16, #gpu.address_space<workgroup>>
  %4 = nvgpu.device_async_create_group %3
  nvgpu.device_async_wait %4 {numGroups = 1 : i32}
  nvgpu.device_async_wait %4
  %5 = nvgpu.device_async_create_group
  %6 = nvgpu.device_async_create_group
  %7 = nvgpu.device_async_create_group %5, %6
  func.return
}
