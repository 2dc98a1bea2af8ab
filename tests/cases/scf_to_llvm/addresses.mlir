// test: pass scf_to_llvm
// meaning: none, functions of the llvm dialect take pointers; tests/test_scf_to_llvm.py compares the meaning
// Accesses at constant distances share the product of the row, and a sum that occurs in addresses only is no instruction.
func.func @copy(%i: index, %x: memref<8x4xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %j = arith.addi %i, %c1 : index
  %a = memref.load %x[%i, %c1] : memref<8x4xf32>
  %b = memref.load %x[%j, %c2] : memref<8x4xf32>
  memref.store %a, %x[%j, %c1] : memref<8x4xf32>
  memref.store %b, %x[%i, %c2] : memref<8x4xf32>
  func.return
}
// CHECK:      module {
// CHECK-NEXT:   llvm.func @copy(%i: i64, %x: !llvm.ptr) {
// CHECK-NEXT:     %c1 = llvm.mlir.constant(1 : i64) : i64
// CHECK-NEXT:     %c2 = llvm.mlir.constant(2 : i64) : i64
// CHECK-NEXT:     %0 = llvm.mlir.constant(4 : i64) : i64
// CHECK-NEXT:     %1 = llvm.mul %i, %0 : i64
// CHECK-NEXT:     %2 = llvm.getelementptr %x[%1] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:     %3 = llvm.getelementptr %2[1] : (!llvm.ptr) -> !llvm.ptr, f32
// CHECK-NEXT:     %a = llvm.load %3 {alignment = 4} : !llvm.ptr -> f32
// CHECK-NEXT:     %4 = llvm.getelementptr %2[6] : (!llvm.ptr) -> !llvm.ptr, f32
// CHECK-NEXT:     %b = llvm.load %4 {alignment = 4} : !llvm.ptr -> f32
// CHECK-NEXT:     %5 = llvm.getelementptr %2[5] : (!llvm.ptr) -> !llvm.ptr, f32
// CHECK-NEXT:     llvm.store %a, %5 {alignment = 4} : f32, !llvm.ptr
// CHECK-NEXT:     %6 = llvm.getelementptr %2[2] : (!llvm.ptr) -> !llvm.ptr, f32
// CHECK-NEXT:     llvm.store %b, %6 {alignment = 4} : f32, !llvm.ptr
// CHECK-NEXT:     llvm.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
