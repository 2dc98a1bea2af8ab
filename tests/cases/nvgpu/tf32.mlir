// test: roundtrip
// test: pass gpu_to_nvvm
// tolerance: bits
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: f32, %out: memref<32x4xf32>) kernel {
      %lane = gpu.thread_id x
      %a = vector.from_elements %x, %x, %x, %x : vector<4x1xf32>
      %b = vector.from_elements %x, %x : vector<2x1xf32>
      %c = arith.constant dense<0.5> : vector<2x2xf32>
      %d = nvgpu.mma.sync (%a, %b, %c) {mmaShape = [16, 8, 8], tf32Enabled = true} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %e = vector.extract %d[1, 0] : f32 from vector<2x2xf32>
      %zero = arith.constant 0 : index
      memref.store %e, %out[%lane, %zero] : memref<32x4xf32>
      gpu.return
    }
  }
  func.func @main(%x: f32, %out: memref<32x4xf32>) {
    %one = arith.constant 1 : index
    %warp = arith.constant 32 : index
    gpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%warp, %one, %one) args(%x : f32, %out : memref<32x4xf32>)
    func.return
  }
}
