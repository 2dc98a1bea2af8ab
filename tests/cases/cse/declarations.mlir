// test: pass cse dce
// meaning: none, the functions are defined elsewhere

// declarations of equal type are different functions, and calls of them may have effects
func.func private @first(memref<4xf32>)
func.func private @second(memref<4xf32>)
func.func @main(%x: memref<4xf32>) {
  func.call @first(%x) : (memref<4xf32>) -> ()
  func.call @second(%x) : (memref<4xf32>) -> ()
  func.return
}
// CHECK: func.func private @first(memref<4xf32>)
// CHECK: func.func private @second(memref<4xf32>)
// CHECK: func.call @first
// CHECK-NEXT: func.call @second
