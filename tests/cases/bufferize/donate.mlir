// test: pass fix_numerics fuse bufferize
// tolerance: 1e-4

// a donated argument whose last reader writes the result element by element gives its buffer
func.func @taken(%w: tensor<4x8xf32>, %g: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {donate = [0]} {
  %0 = tensor.sub %w, %g : tensor<4x8xf32>
  func.return %0 : tensor<4x8xf32>
}
// CHECK: func.func @taken(%w: memref<4x8xf32>, %g: memref<4x8xf32>, %arena: memref<?xi8>, %errors: memref<1xi64>) {{.*}}aliases = [0]
// -----
// an argument that is not donated keeps its numbers
func.func @kept(%w: tensor<4x8xf32>, %g: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tensor.sub %w, %g : tensor<4x8xf32>
  func.return %0 : tensor<4x8xf32>
}
// CHECK: aliases = [-1]
// -----
// read again later: the result needs a buffer of its own
func.func @later(%w: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) attributes {donate = [0]} {
  %0 = tensor.sqrt %w : tensor<4x8xf32>
  %1 = tensor.reduce_sum %w {axes = [0]} : (tensor<4x8xf32>) -> tensor<8xf32>
  func.return %0, %1 : tensor<4x8xf32>, tensor<8xf32>
}
// CHECK: aliases = [-1, -1]
// -----
// read elsewhere than at the element written
func.func @transposed(%w: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {donate = [0]} {
  %0 = tensor.transpose %w {perm = [1, 0]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = tensor.add %w, %0 : tensor<4x4xf32>
  func.return %1 : tensor<4x4xf32>
}
// CHECK: aliases = [-1]
// -----
// seen under another shape by somebody
func.func @viewed(%w: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<32xf32>) attributes {donate = [0]} {
  %0 = tensor.reshape %w : tensor<4x8xf32> to tensor<32xf32>
  %1 = tensor.sqrt %0 : tensor<32xf32>
  %2 = tensor.abs %w : tensor<4x8xf32>
  func.return %2, %1 : tensor<4x8xf32>, tensor<32xf32>
}
// CHECK: aliases = [-1, -1]
// -----
// returned as it is: it stands for itself, once; the second result is a copy
func.func @itself(%w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {donate = [0]} {
  func.return %w, %w : tensor<4xf32>, tensor<4xf32>
}
// CHECK: aliases = [-1, 0]
// -----
// a buffer serves results of its own element type only, for the caller gets the array back as it came
func.func @other_type(%w: tensor<4xf32>, %i: tensor<4xi8>) -> (tensor<4xi32>, tensor<4xi1>) attributes {donate = [0, 1]} {
  %0 = tensor.cast %w : tensor<4xf32> to tensor<4xi32>
  %1 = tensor.cast %i : tensor<4xi8> to tensor<4xi1>
  func.return %0, %1 : tensor<4xi32>, tensor<4xi1>
}
// CHECK: aliases = [-1, -1]
// -----
// two donated arguments that change places: each result lies where its own number came from
func.func @swapped(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {donate = [0, 1]} {
  func.return %b, %a : tensor<4xf32>, tensor<4xf32>
}
// CHECK: aliases = [1, 0]
// -----
// an argument that is dead before gives its buffer to any result
func.func @dead(%w: tensor<4x8xf32>, %x: tensor<3x8xf32>) -> tensor<4x8xf32> attributes {donate = [0]} {
  %0 = tensor.reduce_sum %w {axes = [1]} : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = tensor.reshape %0 : tensor<4xf32> to tensor<4x1xf32>
  %2 = tensor.reduce_sum %x {axes = [0]} : (tensor<3x8xf32>) -> tensor<8xf32>
  %3 = tensor.mul %1, %2 : (tensor<4x1xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  func.return %3 : tensor<4x8xf32>
}
// CHECK: aliases = [0]
// -----
// one buffer serves one result, though each of the two could have it
func.func @once(%w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {donate = [0]} {
  %0 = tensor.neg %w : tensor<4xf32>
  %1 = tensor.abs %0 : tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK: aliases = [0, -1]
