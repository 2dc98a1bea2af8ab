// test: pass scf_to_llvm
// meaning: none, functions of the llvm dialect take pointers; tests/test_scf_to_llvm.py compares the meaning
func.func @sum(%n: index, %x: memref<?x4xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %x[%i, %c1] : memref<?x4xf32>
    %s = arith.addf %acc, %v : f32
    scf.yield %s : f32
  }
  func.return %r : f32
}
// CHECK:      module {
// CHECK-NEXT:   llvm.func @sum(%n: i64, %x: !llvm.ptr, %x_0: i64) -> f32 {
// CHECK-NEXT:     %c0 = llvm.mlir.constant(0 : i64) : i64
// CHECK-NEXT:     %c1 = llvm.mlir.constant(1 : i64) : i64
// CHECK-NEXT:     %zero = llvm.mlir.constant(0.0 : f32) : f32
// CHECK-NEXT:     %0 = llvm.mlir.constant(4 : i64) : i64
// CHECK-NEXT:     llvm.br ^bb1(%c0, %zero : i64, f32)
// CHECK-NEXT:   ^bb1(%i: i64, %acc: f32):
// CHECK-NEXT:     %1 = llvm.icmp slt %i, %n : i64
// CHECK-NEXT:     llvm.cond_br %1, ^bb2, ^bb3
// CHECK-NEXT:   ^bb2:
// CHECK-NEXT:     %2 = llvm.mul %i, %0 : i64
// CHECK-NEXT:     %3 = llvm.getelementptr %x[%2] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:     %4 = llvm.getelementptr %3[1] : (!llvm.ptr) -> !llvm.ptr, f32
// CHECK-NEXT:     %v = llvm.load %4 {alignment = 4} : !llvm.ptr -> f32
// CHECK-NEXT:     %s = llvm.fadd %acc, %v : f32
// CHECK-NEXT:     %5 = llvm.add %i, %c1 : i64
// CHECK-NEXT:     llvm.br ^bb1(%5, %s : i64, f32)
// CHECK-NEXT:   ^bb3:
// CHECK-NEXT:     llvm.return %acc : f32
// CHECK-NEXT:   }
// CHECK-NEXT: }
