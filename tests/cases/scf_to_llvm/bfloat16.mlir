// test: pass scf_to_llvm
// meaning: none, functions of the llvm dialect take pointers; tests/test_scf_to_llvm.py compares the meaning
func.func @twice(%x: bf16) -> bf16 {
  %y = arith.addf %x, %x : bf16
  func.return %y : bf16
}
// CHECK:      module {
// CHECK-NEXT:   llvm.func @twice(%x: i16) -> i16 {
// CHECK-NEXT:     %0 = llvm.mlir.constant(16 : i32) : i32
// CHECK-NEXT:     %1 = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT:     %2 = llvm.mlir.constant(32767 : i32) : i32
// CHECK-NEXT:     %3 = llvm.mlir.constant(64 : i32) : i32
// CHECK-NEXT:     %4 = llvm.zext %x : i16 to i32
// CHECK-NEXT:     %5 = llvm.shl %4, %0 : i32
// CHECK-NEXT:     %6 = llvm.bitcast %5 : i32 to f32
// CHECK-NEXT:     %7 = llvm.zext %x : i16 to i32
// CHECK-NEXT:     %8 = llvm.shl %7, %0 : i32
// CHECK-NEXT:     %9 = llvm.bitcast %8 : i32 to f32
// CHECK-NEXT:     %10 = llvm.fadd %6, %9 : f32
// CHECK-NEXT:     %11 = llvm.bitcast %10 : f32 to i32
// CHECK-NEXT:     %12 = llvm.lshr %11, %0 : i32
// CHECK-NEXT:     %13 = llvm.and %12, %1 : i32
// CHECK-NEXT:     %14 = llvm.add %13, %2 : i32
// CHECK-NEXT:     %15 = llvm.add %11, %14 : i32
// CHECK-NEXT:     %16 = llvm.lshr %15, %0 : i32
// CHECK-NEXT:     %17 = llvm.lshr %11, %0 : i32
// CHECK-NEXT:     %18 = llvm.or %17, %3 : i32
// CHECK-NEXT:     %19 = llvm.fcmp uno %10, %10 : f32
// CHECK-NEXT:     %20 = llvm.select %19, %18, %16 : i1, i32
// CHECK-NEXT:     %y = llvm.trunc %20 : i32 to i16
// CHECK-NEXT:     llvm.return %y : i16
// CHECK-NEXT:   }
// CHECK-NEXT: }
