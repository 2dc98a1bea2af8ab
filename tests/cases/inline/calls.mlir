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
// -----
// a layer: one contraction and what is fused with it becomes one kernel in each place, however often it is called
func.func private @layer(%x: tensor<2x3xf32>, %w: tensor<3x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
  %1 = tensor.add %0, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %2 = tensor.exp %1 : tensor<2x3xf32>
  %3 = tensor.add %1, %2 : tensor<2x3xf32>
  %4 = tensor.exp %3 : tensor<2x3xf32>
  %5 = tensor.add %3, %4 : tensor<2x3xf32>
  %6 = tensor.exp %5 : tensor<2x3xf32>
  %7 = tensor.add %5, %6 : tensor<2x3xf32>
  func.return %7 : tensor<2x3xf32>
}
// two contractions are two kernels: what is shared stays shared
func.func private @two(%x: tensor<2x3xf32>, %w: tensor<3x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = func.call @layer(%x, %w, %b) : (tensor<2x3xf32>, tensor<3x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = func.call @layer(%0, %w, %b) : (tensor<2x3xf32>, tensor<3x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
func.func @entry(%x: tensor<2x3xf32>, %w: tensor<3x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = func.call @two(%x, %w, %b) : (tensor<2x3xf32>, tensor<3x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = func.call @two(%0, %w, %b) : (tensor<2x3xf32>, tensor<3x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// CHECK-NOT: @layer
// CHECK: func.func private @two
// CHECK: tensor.dot_general
// CHECK: tensor.dot_general
// CHECK: func.func @entry
// CHECK: func.call @two
// CHECK: func.call @two
