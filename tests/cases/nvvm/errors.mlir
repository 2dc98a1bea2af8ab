// test: verify
gpu.module @kernels {
  llvm.func @k(%x: f64, %n: i32) {
    %0 = nvvm.shfl.sync up %n, %x, %n, %n : f64 -> f64  // error: up of f64: one of bfly, up, down, idx, of an i32 or f32, and i32s
    llvm.return
  }
}
// -----
gpu.module @kernels {
  llvm.func @k(%x: !llvm.ptr) {
    %0 = llvm.addrspacecast %x : !llvm.ptr to !llvm.ptr  // error: !llvm.ptr is no address in another space than !llvm.ptr
    llvm.return
  }
}
// -----
llvm.func @f(%x: !llvm.ptr, %n: i64) {
  %0 = llvm.atomicrmw max %x, %n monotonic : !llvm.ptr, i64  // error: max monotonic of a i64; there are monotonic add, umin of integers
  llvm.return
}
