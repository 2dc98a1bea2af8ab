// test: pass scf_to_llvm
// meaning: none, functions of the llvm dialect take pointers; tests/test_scf_to_llvm.py compares the meaning
func.func @twice(%x: bf16) -> bf16 {
  %y = arith.addf %x, %x : bf16
  func.return %y : bf16
}
// CHECK:      module {
// CHECK-NEXT:   llvm.func @twice(%x: i16) -> i16 {
// CHECK-NEXT:     %0 = llvm.mlir.constant(16 : i32) : i32
// CHECK-NEXT:     %1 = llvm.mlir.constant(65536 : i32) : i32
// CHECK-NEXT:     %2 = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:     %3 = llvm.mlir.constant(32768 : i32) : i32
// CHECK-NEXT:     %4 = llvm.mlir.constant(32767 : i32) : i32
// CHECK-NEXT:     %5 = llvm.mlir.constant(4194304 : i32) : i32
// CHECK-NEXT:     %6 = llvm.zext %x : i16 to i32
// CHECK-NEXT:     %7 = llvm.shl %6, %0 : i32
// CHECK-NEXT:     %8 = llvm.bitcast %7 : i32 to f32
// CHECK-NEXT:     %9 = llvm.zext %x : i16 to i32
// CHECK-NEXT:     %10 = llvm.shl %9, %0 : i32
// CHECK-NEXT:     %11 = llvm.bitcast %10 : i32 to f32
// CHECK-NEXT:     %12 = llvm.fadd %8, %11 : f32
// CHECK-NEXT:     %13 = llvm.bitcast %12 : f32 to i32
// CHECK-NEXT:     %14 = llvm.and %13, %1 : i32
// CHECK-NEXT:     %15 = llvm.icmp ne %14, %2 : i32
// CHECK-NEXT:     %16 = llvm.select %15, %3, %4 : i1, i32
// CHECK-NEXT:     %17 = llvm.add %13, %16 : i32
// CHECK-NEXT:     %18 = llvm.or %13, %5 : i32
// CHECK-NEXT:     %19 = llvm.fcmp uno %12, %12 : f32
// CHECK-NEXT:     %20 = llvm.select %19, %18, %17 : i1, i32
// CHECK-NEXT:     %21 = llvm.lshr %20, %0 : i32
// CHECK-NEXT:     %y = llvm.trunc %21 : i32 to i16
// CHECK-NEXT:     llvm.return %y : i16
// CHECK-NEXT:   }
// CHECK-NEXT: }
