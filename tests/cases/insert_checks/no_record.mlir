// test: pass insert_checks
func.func @no_memory(%n: index) -> index {
  %0 = arith.addi %n, %n : index
  func.return %0 : index
}
// run: @no_memory(3) == 6
// CHECK:      func.func @no_memory(%n: index) -> index {
// CHECK-NEXT:   %0 = arith.addi %n, %n : index
// CHECK-NEXT:   func.return %0 : index
