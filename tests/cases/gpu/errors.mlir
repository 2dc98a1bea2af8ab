// test: verify
gpu.module @kernels {
  gpu.func @k(%x: memref<4xf32>) workgroup(%s: memref<?xf32, #gpu.address_space<workgroup>>) kernel {  // error: memref<?xf32, #gpu.address_space<workgroup>> is no memory of known size in the workgroup's space
    gpu.return
  }
}
// -----
gpu.module @kernels {
  gpu.func @k() kernel attributes {known_block_size = [32, 0, 1]} {  // error: a block has a positive number of threads along x, y and z
    gpu.return
  }
}
// -----
gpu.module @kernels {
  gpu.func @k(%x: i32) kernel {
    gpu.return
  }
}
func.func @main(%n: index) {
  gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)  // error: passes (), but @k takes (i32)
  func.return
}
// -----
gpu.module @kernels {
  gpu.func @k() kernel {
    gpu.return
  }
}
func.func @main(%n: index) {
  gpu.launch_func @kernels::@other blocks in (%n, %n, %n) threads in (%n, %n, %n)  // error: @kernels::other is not defined
  func.return
}
// -----
gpu.module @kernels {
  gpu.func @k(%x: i8, %n: i32) kernel {
    %0, %1 = gpu.shuffle idx %x, %n, %n : i8  // error: exchanges numbers of 32 or 64 bits, not i8
    gpu.return
  }
}
// -----
func.func @main() {
  gpu.return  // error: stands outside of a gpu.func
}
// -----
func.func @main(%x: f32, %m: memref<4xf32>, %i: index) {
  %0 = memref.atomic_rmw minu %x, %m[%i] : (f32, memref<4xf32>) -> f32  // error: minu of a f32 and an element of memref<4xf32>; there are addi, minu of integers
  func.return
}
// -----
func.func @main(%x: f32) {
  %0 = vector.from_elements %x, %x : vector<3xf32>  // error: 2 elements do not make a vector<3xf32>
  func.return
}
// -----
gpu.module @kernels {
  gpu.func @k() kernel {
    %0 = "gpu.thread_id"() {dimension = #gpu<dim >} : () -> index  // error: there is no axis '': x, y or z
    gpu.return
  }
}
