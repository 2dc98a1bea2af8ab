// test: roundtrip
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global internal @row() {alignment = 16, addr_space = 3} : !llvm.array<32 x f32>
    llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel = true, nvvm.kernel = true, nvvm.maxntid = [32, 1, 1]} {
      %0 = nvvm.read.ptx.sreg.tid.x : i32
      %1 = nvvm.read.ptx.sreg.nctaid.z : i32
      %2 = llvm.mlir.addressof @row : !llvm.ptr<3>
      %3 = llvm.addrspacecast %2 : !llvm.ptr<3> to !llvm.ptr
      %4 = llvm.load %3 : !llvm.ptr -> i32
      %5 = nvvm.shfl.sync bfly %0, %4, %1, %1 : i32 -> i32
      %6 = nvvm.shfl.sync down %0, %4, %1, %1 {return_value_and_is_valid = true} : i32 -> !llvm.struct<(i32, i1)>
      nvvm.barrier
      %7 = llvm.atomicrmw umin %x, %5 monotonic : !llvm.ptr, i32
      llvm.return
    }
  }
}
