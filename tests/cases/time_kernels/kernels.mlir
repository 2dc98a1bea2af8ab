// test: pass fix_numerics fuse bufferize tensor_to_loop coalesce_dimensions time_kernels outline
// tolerance: 1e-4
// sizes: B=5

// the clock is read around each kernel, and what it says is recorded in a slot of the kernel
func.func @two(%x: tensor<Bx8xf32>, %w: tensor<8x3xf32>) -> tensor<3x3xf32> {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]} : (tensor<Bx8xf32>, tensor<8x3xf32>) -> tensor<Bx3xf32>
  %1 = tensor.dot_general %0, %0 {batch = [], contract = [[0, 0]]} : (tensor<Bx3xf32>, tensor<Bx3xf32>) -> tensor<3x3xf32>
  func.return %1 : tensor<3x3xf32>
}
// CHECK: kernels = [
// CHECK: profile.clock : i64
// CHECK-NEXT: func.call @kernel_dot_general
// CHECK-NEXT: profile.clock : i64
// CHECK-NEXT: func.call @record_kernel
// CHECK: profile.clock : i64
// CHECK-NEXT: func.call @kernel_dot_general_1
// CHECK: func.func private @record_kernel
// -----
// a function that is called twice has slots of its own in each call
func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.sqrt %x : tensor<4xf32>
  %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
  %2 = tensor.mul %0, %1 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
func.func @layers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @layer(%0) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
// CHECK: %times: memref<?xi64>, %slot: index
// CHECK: func.call @layer({{.*}}%times
