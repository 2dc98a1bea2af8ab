// test: roundtrip
// test: pass grad
// test: run interp

// values that depend on nothing batched are shared; a shared weight is not repeated
func.func private @layer(%x: tensor<4xf32>, %w: tensor<4x3xf32>) -> (tensor<3xf32>, tensor<4x3xf32>) {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[0, 0]]} : (tensor<4xf32>, tensor<4x3xf32>) -> tensor<3xf32>
  %1 = tensor.neg %w : tensor<4x3xf32>
  func.return %0, %1 : tensor<3xf32>, tensor<4x3xf32>
}
func.func @common(%x: tensor<Bx4xf32>, %w: tensor<4x3xf32>) -> (tensor<Bx3xf32>, tensor<4x3xf32>) {
  %0:2 = autodiff.vmap @layer(%x, %w) batched [0] size "B" {common = [1]}
      : (tensor<Bx4xf32>, tensor<4x3xf32>) -> (tensor<Bx3xf32>, tensor<4x3xf32>)
  func.return %0#0, %0#1 : tensor<Bx3xf32>, tensor<4x3xf32>
}
func.func @repeated(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>) -> tensor<2x4x3xf32> {
  %0:2 = autodiff.vmap @layer(%x, %w) batched [0] size 2
      : (tensor<2x4xf32>, tensor<4x3xf32>) -> (tensor<2x3xf32>, tensor<2x4x3xf32>)
  func.return %0#1 : tensor<2x4x3xf32>
}
func.func @none(%w: tensor<4x3xf32>) -> (tensor<0x3xf32>, tensor<4x3xf32>) {
  %x = tensor.full 1.0 : tensor<0x4xf32>
  %0:2 = autodiff.vmap @layer(%x, %w) batched [0] size 0 {common = [1]}
      : (tensor<0x4xf32>, tensor<4x3xf32>) -> (tensor<0x3xf32>, tensor<4x3xf32>)
  func.return %0#0, %0#1 : tensor<0x3xf32>, tensor<4x3xf32>
}
// CHECK: func.func private @layer_vmap
// CHECK-NEXT: dot_general %x, %w {batch = [], contract = {{\[\[}}1, 0]]}
// CHECK-NEXT: tensor.neg %w : tensor<4x3xf32>
// CHECK: func.func @repeated
// CHECK: tensor.broadcast_to
// -----
// calls become calls of batched functions, one for each way they are called
func.func private @inner(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = tensor.add %x, %y : tensor<f32>
  func.return %0, %y : tensor<f32>, tensor<f32>
}
func.func private @outer(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0:2 = func.call @inner(%x, %y) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %1:2 = func.call @inner(%0#0, %0#1) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %2:2 = func.call @inner(%0#1, %0#1) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %3 = tensor.mul %1#0, %2#0 : tensor<f32>
  func.return %3 : tensor<f32>
}
func.func @main(%x: tensor<3xf32>, %y: tensor<f32>) -> tensor<3xf32> {
  %0 = autodiff.vmap @outer(%x, %y) batched [0] size 3 : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
// run: @main([1, 2, 3], 2) == [20, 24, 28]
// CHECK: func.func private @inner_vmap(%x: tensor<3xf32>, %y: tensor<f32>) -> (tensor<3xf32>, tensor<f32>)
// CHECK-NOT: @inner_vmap_
// CHECK: func.func private @outer_vmap
// CHECK-NEXT: func.call @inner_vmap(%x, %y)
// CHECK-NEXT: func.call @inner_vmap
// CHECK-NEXT: func.call @inner(
// -----
// derivatives inside and vmap inside: callees are expanded first
func.func private @square(%x: tensor<f32>) -> tensor<f32> {
  %0 = tensor.mul %x, %x : tensor<f32>
  func.return %0 : tensor<f32>
}
func.func private @slope(%x: tensor<f32>) -> tensor<f32> {
  %0:2 = autodiff.grad @square(%x) wrt [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  func.return %0#1 : tensor<f32>
}
func.func private @total(%x: tensor<Nxf32>) -> tensor<f32> {
  %0 = autodiff.vmap @slope(%x) batched [0] size "N" : tensor<Nxf32>
  %1 = tensor.mul %0, %x : tensor<Nxf32>
  %2 = tensor.reduce_sum %1 {axes = [0]} : (tensor<Nxf32>) -> tensor<f32>
  func.return %2 : tensor<f32>
}
func.func @main(%x: tensor<Nxf32>) -> tensor<Nxf32> {
  %0:2 = autodiff.grad @total(%x) wrt [0] : (tensor<Nxf32>) -> (tensor<f32>, tensor<Nxf32>)
  func.return %0#1 : tensor<Nxf32>
}
func.func @rows(%x: tensor<MxNxf32>) -> tensor<Mxf32> {
  %0 = autodiff.vmap @total(%x) batched [0] size "M" : (tensor<MxNxf32>) -> tensor<Mxf32>
  func.return %0 : tensor<Mxf32>
}
// run: @main([1, 2, 3]) == [4, 8, 12]
// run: @rows([[1, 2], [0, 3]]) == [10, 18]
// CHECK-NOT: autodiff
