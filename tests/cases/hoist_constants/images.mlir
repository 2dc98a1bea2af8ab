// test: pass hoist_constants{panels=true}
// tolerance: bits

// an image of few points as a matrix of columns is multiplied as an image, whose channels may lie in vectors
func.func @main(%x: tensor<1x4x3x3xf32>, %w: tensor<16x4x1x1xf32>) -> tensor<1x16x3x3xf32> attributes {constants = [1]} {
  %0 = tensor.reshape %x : tensor<1x4x3x3xf32> to tensor<4x9xf32>
  %1 = tensor.reshape %w : tensor<16x4x1x1xf32> to tensor<16x4xf32>
  %2 = tensor.dot_general %1, %0 {batch = [], contract = [[1, 0]], order = "chain"} : (tensor<16x4xf32>, tensor<4x9xf32>) -> tensor<16x9xf32>
  %3 = tensor.reshape %2 : tensor<16x9xf32> to tensor<1x16x3x3xf32>
  func.return %3 : tensor<1x16x3x3xf32>
}
// CHECK: tensor.pack
// CHECK: @main_with_constants
// CHECK: tensor.unpack
// CHECK: tensor.dot_general {{.*}} -> tensor<16x3x3xf32>
// -----
// but not if its weights would not be packed
func.func @main(%x: tensor<1x4x3x3xf32>, %w: tensor<17x4xf32>) -> tensor<17x9xf32> attributes {constants = [1]} {
  %0 = tensor.reshape %x : tensor<1x4x3x3xf32> to tensor<4x9xf32>
  %1 = tensor.dot_general %w, %0 {batch = [], contract = [[1, 0]], order = "chain"} : (tensor<17x4xf32>, tensor<4x9xf32>) -> tensor<17x9xf32>
  func.return %1 : tensor<17x9xf32>
}
// CHECK: tensor.dot_general {{.*}} -> tensor<17x9xf32>
// -----
// weights of each channel are one panel of all channels, once for both products
func.func @main(%x: tensor<1x16x6xf32>, %w: tensor<16x1x3xf32>) -> (tensor<1x16x4xf32>, tensor<1x16x4xf32>) attributes {constants = [1]} {
  %0 = tensor.windows %x {axis = 2, size = 3} : (tensor<1x16x6xf32>) -> tensor<1x16x4x3xf32>
  %1 = tensor.reshape %w : tensor<16x1x3xf32> to tensor<1x16x1x3xf32>
  %2 = tensor.broadcast_to %1 : tensor<1x16x1x3xf32> to tensor<1x16x4x3xf32>
  %3 = tensor.reduce_fma %0, %2 {axes = [3]} : (tensor<1x16x4x3xf32>, tensor<1x16x4x3xf32>) -> tensor<1x16x4xf32>
  %4 = tensor.neg %x : tensor<1x16x6xf32>
  %5 = tensor.windows %4 {axis = 2, size = 3} : (tensor<1x16x6xf32>) -> tensor<1x16x4x3xf32>
  %6 = tensor.reduce_fma %5, %2 {axes = [3]} : (tensor<1x16x4x3xf32>, tensor<1x16x4x3xf32>) -> tensor<1x16x4xf32>
  func.return %3, %6 : tensor<1x16x4xf32>, tensor<1x16x4xf32>
}
// CHECK: tensor.pack {{.*}} {axis = 0, width = 16}
// CHECK-NOT: tensor.pack
// CHECK: @main_with_constants
// CHECK: tensor.unpack
// CHECK: tensor.reduce_fma
// CHECK: tensor.unpack
// CHECK: tensor.reduce_fma
