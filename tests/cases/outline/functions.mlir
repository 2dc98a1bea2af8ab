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
// -----
// kernels that differ in constant indices are one, which takes these
func.func @rows(%x: tensor<3x40xf32>) -> (tensor<40xf32>, tensor<40xf32>) {
  %0 = tensor.slice %x {starts = [0, 0], stops = [1, 40], steps = [1, 1]} : (tensor<3x40xf32>) -> tensor<1x40xf32>
  %1 = tensor.slice %x {starts = [2, 0], stops = [3, 40], steps = [1, 1]} : (tensor<3x40xf32>) -> tensor<1x40xf32>
  %2 = tensor.reshape %0 : tensor<1x40xf32> to tensor<40xf32>
  %3 = tensor.reshape %1 : tensor<1x40xf32> to tensor<40xf32>
  %4 = tensor.exp %2 : tensor<40xf32>
  %5 = tensor.exp %3 : tensor<40xf32>
  func.return %4, %5 : tensor<40xf32>, tensor<40xf32>
}
// CHECK: [[A:%\w+]] = arith.constant 0 : index
// CHECK: func.call @kernel_slice_map(%x, %out0, [[A]])
// CHECK: [[B:%\w+]] = arith.constant 2 : index
// CHECK: func.call @kernel_slice_map(%x, %out1, [[B]])
// CHECK: func.func private @kernel_slice_map(%x: memref<3x40xf32>, %{{\w+}}: memref<40xf32>, %at0: index)
// CHECK: affine_map<(d0)[at0] -> (at0, d0)>
