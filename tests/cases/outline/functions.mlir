// test: pass fix_numerics fuse bufferize tensor_to_loop coalesce_dimensions vectorize outline
// tolerance: 1e-4
// sizes: B=5

// two equal layers are one function, called twice; views of the arena stay with the caller
func.func @layers(%x: tensor<Bx8xf32>, %w: tensor<8x8xf32>, %v: tensor<8x8xf32>) -> tensor<Bx8xf32> {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]} : (tensor<Bx8xf32>, tensor<8x8xf32>) -> tensor<Bx8xf32>
  %1 = tensor.dot_general %0, %v {batch = [], contract = [[1, 0]]} : (tensor<Bx8xf32>, tensor<8x8xf32>) -> tensor<Bx8xf32>
  func.return %1 : tensor<Bx8xf32>
}
// CHECK: memref.view
// CHECK: func.call @kernel_dot_general(%B, %x, %w, %[[T:\w+]])
// CHECK: func.call @kernel_dot_general(%B, %[[T]], %v, %out0)
// CHECK: func.func private @kernel_dot_general(
// CHECK: loop.kernel
// CHECK-NOT: loop.kernel
// -----
// equal names of different kernels; a constant of the program is an argument like any other
func.func @sums(%x: tensor<4xf32>, %y: tensor<9xf32>) -> (tensor<4xf32>, tensor<9xf32>) {
  %c = tensor.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = tensor.add %x, %c : tensor<4xf32>
  %1 = tensor.add %y, %y : tensor<9xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<9xf32>
}
// CHECK: func.call @kernel_add(%x, %[[C:\w+]], %out0)
// CHECK: func.call @kernel_add_1(%y, %out1)
// CHECK: func.func private @kernel_add(
// CHECK: func.func private @kernel_add_1(
