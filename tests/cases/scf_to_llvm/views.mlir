// test: pass scf_to_llvm
// meaning: none, functions of the llvm dialect take pointers; tests/test_scf_to_llvm.py compares the meaning
// accesses of the same memory with other element types have bases of their own
func.func @f(%i: index, %a: f64, %b: f32) -> (f64, f32) {
  %c0 = arith.constant 0 : index
  %m = memref.alloca() : memref<64xi8>
  %v64 = memref.view %m[%c0][] : memref<64xi8> to memref<8xf64>
  %v32 = memref.view %m[%c0][] : memref<64xi8> to memref<16xf32>
  memref.store %a, %v64[%i] : memref<8xf64>
  memref.store %b, %v32[%i] : memref<16xf32>
  %y = memref.load %v64[%i] : memref<8xf64>
  %z = memref.load %v32[%i] : memref<16xf32>
  func.return %y, %z : f64, f32
}
// CHECK: llvm.getelementptr {{%\w+}}[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
// CHECK: llvm.getelementptr {{%\w+}}[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
