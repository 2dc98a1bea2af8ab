// test: roundtrip
llvm.mlir.global internal constant @table(dense<[1.0, 2.0]> : tensor<2xf32>) {alignment = 64} : !llvm.array<2 x f32>
llvm.func @elsewhere(i32, !llvm.ptr) -> !llvm.struct<(i64, vector<4xf32>)>
llvm.func internal @f(%a: i64, %p: !llvm.ptr, %x: f32, %v: vector<8xf32>, %at: vector<8xi32>, %m: vector<8xi1>) -> i32 attributes {passthrough = ["cold", ["some", "thing"]]} {
  %0 = llvm.mlir.constant(1 : i64) : i64
  %nan = llvm.mlir.constant(0x7FC00001 : f32) : f32
  %ones = llvm.mlir.constant(dense<1.0> : vector<8xf32>) : vector<8xf32>
  %1 = llvm.icmp slt %a, %0 : i64
  %2 = llvm.fcmp _true %x, %nan : f32
  %3 = llvm.select %m, %v, %ones : vector<8xi1>, vector<8xf32>
  %4 = llvm.bitcast %m : vector<8xi1> to i8
  %5 = llvm.getelementptr %p[%a, 1, %a] : (!llvm.ptr, i64, i64) -> !llvm.ptr, !llvm.struct<(i64, array<4 x f32>)>
  %6 = llvm.getelementptr %p[%at] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f32
  %7 = llvm.intr.masked.gather %6, %m, %v {alignment = 4} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  llvm.intr.masked.scatter %7, %6, %m {alignment = 4} : vector<8xf32>, vector<8xi1> into vector<8x!llvm.ptr>
  %8 = llvm.mlir.addressof @table : !llvm.ptr
  %9 = llvm.mlir.constant(0 : i8) : i8
  llvm.intr.memset %p, %9, %a : (!llvm.ptr, i8, i64) -> ()
  llvm.intr.memcpy %p, %8, %a : (!llvm.ptr, !llvm.ptr, i64) -> ()
  %10 = llvm.trunc %a : i64 to i32
  %11 = llvm.call @elsewhere(%10, %p) : (i32, !llvm.ptr) -> !llvm.struct<(i64, vector<4xf32>)>
  %12 = llvm.extractvalue %11[0] : !llvm.struct<(i64, vector<4xf32>)>
  %13 = llvm.insertvalue %a, %11[0] : !llvm.struct<(i64, vector<4xf32>)>
  %14 = llvm.call_intrinsic "llvm.x86.rdtscp"() : () -> !llvm.struct<(i64, i32)>
  llvm.cond_br %1, ^bb1(%a : i64), ^bb2
^bb1(%n: i64):
  llvm.br ^bb3(%n, %x : i64, f32)
^bb2:
  llvm.switch %10 : i32, ^bb1(%a : i64) [42: ^bb2, -1: ^bb3(%a, %x : i64, f32)]
^bb3(%r: i64, %s: f32):
  llvm.return %10 : i32
}
