// test: roundtrip
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @reverse(%x: memref<?xf32>, %out: memref<?xf32>) workgroup(%row: memref<64xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = [64, 1, 1]} {
      %thread = gpu.thread_id x
      %block = gpu.block_id y
      %size = gpu.block_dim x
      %blocks = gpu.grid_dim z
      %first = arith.muli %block, %size : index
      %at = arith.addi %first, %thread : index
      %a = memref.load %x[%at] : memref<?xf32>
      memref.store %a, %row[%thread] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %last = arith.constant 63 : index
      %back = arith.subi %last, %thread : index
      %b = memref.load %row[%back] : memref<64xf32, #gpu.address_space<workgroup>>
      %offset = arith.constant 1 : i32
      %width = arith.constant 32 : i32
      %c, %valid = gpu.shuffle xor %b, %offset, %width : f32
      %d = arith.select %valid, %c, %b : f32
      memref.store %d, %out[%at] : memref<?xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<?xf32>, %out: memref<?xf32>, %n: index) {
    %one = arith.constant 1 : index
    %size = arith.constant 64 : index
    gpu.launch_func @kernels::@reverse blocks in (%one, %n, %one) threads in (%size, %one, %one) args(%x : memref<?xf32>, %out : memref<?xf32>)
    func.return
  }
}
