// test: roundtrip
// test: pass gpu_to_nvvm
// tolerance: bits

// One warp: 16 x 16 times 16 x 8, both copied to shared memory first, the right one transposed where it is read.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @product(%a: memref<16x16xbf16>, %b: memref<16x8xbf16>, %c: memref<16x8xf32>) workgroup(%l: memref<16x16xbf16, #gpu.address_space<workgroup>>, %r: memref<16x8xbf16, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = [32, 1, 1]} {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %two = arith.constant 2 : index
      %four = arith.constant 4 : index
      %eight = arith.constant 8 : index
      %sixteen = arith.constant 16 : index
      %lane = gpu.thread_id x
      %row = arith.remui %lane, %sixteen : index
      %half = arith.divui %lane, %sixteen : index
      %column = arith.muli %half, %eight : index
      %0 = nvgpu.device_async_copy %a[%row, %column], %l[%row, %column], 8 {bypassL1 = true} : memref<16x16xbf16> to memref<16x16xbf16, #gpu.address_space<workgroup>>
      %first = nvgpu.device_async_create_group %0
      %fifteen = arith.constant 15 : index
      %back = arith.subi %fifteen, %row : index
      %upper = arith.cmpi slt, %lane, %sixteen : index
      scf.if %upper {
        %1 = nvgpu.device_async_copy %b[%back, %zero], %r[%back, %zero], 8 : memref<16x8xbf16> to memref<16x8xbf16, #gpu.address_space<workgroup>>
        scf.yield
      }
      %second = nvgpu.device_async_create_group
      nvgpu.device_async_wait %first {numGroups = 1 : i32}
      gpu.barrier
      %x = nvgpu.ldmatrix %l[%row, %column] {transpose = false, numTiles = 4 : i32} : memref<16x16xbf16, #gpu.address_space<workgroup>> -> vector<4x2xbf16>
      nvgpu.device_async_wait %second {numGroups = 0 : i32}
      gpu.barrier
      %y = nvgpu.ldmatrix %r[%row, %zero] {transpose = true, numTiles = 2 : i32} : memref<16x8xbf16, #gpu.address_space<workgroup>> -> vector<2x2xbf16>
      %sums = arith.constant dense<1.0> : vector<2x2xf32>
      %z = nvgpu.mma.sync (%x, %y, %sums) {mmaShape = [16, 8, 16]} : (vector<4x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>) -> vector<2x2xf32>
      %g = arith.divui %lane, %four : index
      %t = arith.remui %lane, %four : index
      %at = arith.muli %t, %two : index
      %next = arith.addi %at, %one : index
      %below = arith.addi %g, %eight : index
      %z0 = vector.extract %z[0, 0] : f32 from vector<2x2xf32>
      %z1 = vector.extract %z[0, 1] : f32 from vector<2x2xf32>
      %z2 = vector.extract %z[1, 0] : f32 from vector<2x2xf32>
      %z3 = vector.extract %z[1, 1] : f32 from vector<2x2xf32>
      memref.store %z0, %c[%g, %at] : memref<16x8xf32>
      memref.store %z1, %c[%g, %next] : memref<16x8xf32>
      memref.store %z2, %c[%below, %at] : memref<16x8xf32>
      memref.store %z3, %c[%below, %next] : memref<16x8xf32>
      gpu.return
    }
  }
  func.func @main(%a: memref<16x16xbf16>, %b: memref<16x8xbf16>, %c: memref<16x8xf32>) {
    %one = arith.constant 1 : index
    %warp = arith.constant 32 : index
    gpu.launch_func @kernels::@product blocks in (%one, %one, %one) threads in (%warp, %one, %one) args(%a : memref<16x16xbf16>, %b : memref<16x8xbf16>, %c : memref<16x8xf32>)
    func.return
  }
}
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 1
// CHECK: nvvm.ldmatrix {{.*}}num = 4
// CHECK: nvvm.mma.sync A[
