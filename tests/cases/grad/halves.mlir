// test: pass grad

// one forward and one backward half for both calls; the constant is computed again rather than saved
func.func private @layer(%x: tensor<Bxf32>) -> tensor<Bxf32> {
  %c = tensor.full 0.5 : tensor<f32>
  %0 = tensor.exp %x : tensor<Bxf32>
  %1 = tensor.mul %0, %c : (tensor<Bxf32>, tensor<f32>) -> tensor<Bxf32>
  func.return %1 : tensor<Bxf32>
}
func.func private @loss(%x: tensor<Bxf32>) -> tensor<f32> {
  %0 = func.call @layer(%x) : (tensor<Bxf32>) -> tensor<Bxf32>
  %1 = func.call @layer(%0) : (tensor<Bxf32>) -> tensor<Bxf32>
  %2 = tensor.reduce_sum %1 {axes = [0]} : (tensor<Bxf32>) -> tensor<f32>
  func.return %2 : tensor<f32>
}
func.func @main(%x: tensor<Bxf32>) -> tensor<Bxf32> {
  %0:2 = autodiff.grad @loss(%x) wrt [0] : (tensor<Bxf32>) -> (tensor<f32>, tensor<Bxf32>)
  func.return %0#1 : tensor<Bxf32>
}
// CHECK-NOT: autodiff
// CHECK: func.func private @layer_backward(%arg0: tensor<Bxf32>, %arg1: tensor<Bxf32>) -> tensor<Bxf32>
// CHECK-NEXT: [[C:%\w+]] = tensor.full 0.5
// CHECK-NEXT: [[G:%\w+]] = tensor.mul %arg0, [[C]]
// CHECK-NEXT: [[D:%\w+]] = tensor.mul [[G]], %arg1
// CHECK-NEXT: func.return [[D]]
// CHECK: func.func private @layer_forward(%x: tensor<Bxf32>) -> (tensor<Bxf32>, tensor<Bxf32>)
// CHECK-NOT: @layer_forward_
// CHECK: func.func private @loss_backward
// CHECK: func.call @layer_backward
// CHECK-NEXT: func.call @layer_backward
// CHECK: func.func private @loss_forward
// CHECK-NEXT: func.call @layer_forward
// CHECK-NEXT: func.call @layer_forward
// CHECK: func.func @main
// CHECK-NEXT: func.call @loss_forward
// CHECK-NEXT: tensor.full 1.0 : tensor<f32>
// CHECK-NEXT: func.call @loss_backward
