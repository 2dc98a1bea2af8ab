// test: verify
llvm.func @f(%x: i32) {
  llvm.br ^bb1(%x : i32)  // error: gives i32 to a block that takes i64
^bb1(%y: i64):
  llvm.return
}
// -----
llvm.func @f(%x: i32) -> i64 {
  llvm.return %x : i32  // error: returns i32, which is not what the function returns
}
// -----
llvm.func @f(%x: i32) {
  %y = llvm.load %x : i32 -> f32  // error: the address is i32, not !llvm.ptr
  llvm.return
}
// -----
llvm.func @f(%x: !llvm.ptr) {
  %y = llvm.load %x : !llvm.ptr -> vector<8xi1>  // error: has no place in memory
  llvm.return
}
// -----
llvm.func @f(%x: !llvm.struct<(i32, f32)>) {
  %y = llvm.extractvalue %x[2] : !llvm.struct<(i32, f32)>  // error: has no member 2
  llvm.return
}
// -----
llvm.mlir.global internal constant @g(dense<[1, 2]> : tensor<2xi32>) : !llvm.array<3 x i32>  // error: is no !llvm.array<3 x i32>
