// test: pass inline

// a private function called once, inside another that is; the body's size becomes the size at the call
func.func private @inner(%x: tensor<Nx3xf32>) -> tensor<(3*N)xf32> {
  %0 = tensor.exp %x : tensor<Nx3xf32>
  %1 = tensor.reshape %0 : tensor<Nx3xf32> to tensor<(3*N)xf32>
  func.return %1 : tensor<(3*N)xf32>
}
func.func private @outer(%x: tensor<(2*B)x3xf32>, %like: tensor<Bxf32>) -> tensor<(6*B)xf32> {
  %0 = func.call @inner(%x) : (tensor<(2*B)x3xf32>) -> tensor<(6*B)xf32>
  func.return %0 : tensor<(6*B)xf32>
}
func.func @entry(%x: tensor<8x3xf32>, %y: tensor<4xf32>) -> tensor<24xf32> {
  %0 = func.call @outer(%x, %y) : (tensor<8x3xf32>, tensor<4xf32>) -> tensor<24xf32>
  func.return %0 : tensor<24xf32>
}
// CHECK-NOT: func.call
// CHECK-NOT: private
// CHECK: func.func @entry
// CHECK-NEXT: tensor.exp %x : tensor<8x3xf32>
// CHECK-NEXT: [[R:%\w+]] = tensor.reshape %{{\w+}} : tensor<8x3xf32> to tensor<24xf32>
// CHECK-NEXT: func.return [[R]] : tensor<24xf32>
// -----
// symbols of caller and callee that have each other's names
func.func private @swap(%x: tensor<BxNxf32>) -> tensor<NxBxf32> {
  %0 = tensor.transpose %x {perm = [1, 0]} : (tensor<BxNxf32>) -> tensor<NxBxf32>
  func.return %0 : tensor<NxBxf32>
}
func.func @entry(%x: tensor<NxBxf32>) -> tensor<BxNxf32> {
  %0 = func.call @swap(%x) : (tensor<NxBxf32>) -> tensor<BxNxf32>
  func.return %0 : tensor<BxNxf32>
}
// CHECK: func.func @entry
// CHECK-NEXT: tensor.transpose %x {perm = [1, 0]} : (tensor<NxBxf32>) -> tensor<BxNxf32>
// -----
// a large function called twice, and one that calls itself, stay
func.func private @large(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  %1 = arith.addi %0, %x : i32
  %2 = arith.addi %1, %x : i32
  %3 = arith.addi %2, %x : i32
  %4 = arith.addi %3, %x : i32
  %5 = arith.addi %4, %x : i32
  %6 = arith.addi %5, %x : i32
  %7 = arith.addi %6, %x : i32
  func.return %7 : i32
}
func.func private @recursive(%x: i32, %c: i1) -> i32 {
  %0 = scf.if %c -> (i32) {
    %f = arith.constant false
    %1 = func.call @recursive(%x, %f) : (i32, i1) -> i32
    scf.yield %1 : i32
  } else {
    scf.yield %x : i32
  }
  func.return %0 : i32
}
func.func @entry(%x: i32, %c: i1) -> i32 {
  %0 = func.call @large(%x) : (i32) -> i32
  %1 = func.call @large(%0) : (i32) -> i32
  %2 = func.call @recursive(%1, %c) : (i32, i1) -> i32
  func.return %2 : i32
}
// CHECK: func.func @entry
// CHECK: func.call @large
// CHECK: func.call @large
