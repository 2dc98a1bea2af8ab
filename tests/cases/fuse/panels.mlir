// test: pass fuse
// meaning: none, random positions are out of range

// a product whose other factor is in panels reads its elements once for each: rows are taken from a table before it
func.func @main(%table: tensor<9x4xf32>, %i: tensor<3x2xi64>, %w: tensor<2x4x16xf32>) -> tensor<2x3x32xf32> {
  %0 = tensor.take %table, %i {axis = 0} : (tensor<9x4xf32>, tensor<3x2xi64>) -> tensor<3x2x4xf32>
  %1 = tensor.transpose %0 {perm = [1, 0, 2]} : (tensor<3x2x4xf32>) -> tensor<2x3x4xf32>
  %2 = tensor.unpack %w {axis = 0, size = 32} : (tensor<2x4x16xf32>) -> tensor<32x4xf32>
  %3 = tensor.dot_general %1, %2 {batch = [], contract = [[2, 1]], order = "chain"} : (tensor<2x3x4xf32>, tensor<32x4xf32>) -> tensor<2x3x32xf32>
  func.return %3 : tensor<2x3x32xf32>
}
// CHECK: label = "take"
// CHECK: label = "unpack_transpose_dot_general"
// -----
// panels that are made in each call are made once, before the product that reads them
func.func @main(%x: tensor<9x4xf32>, %w: tensor<32x4xf32>) -> tensor<9x32xf32> {
  %0 = tensor.pack %w {axis = 0, width = 16} : (tensor<32x4xf32>) -> tensor<2x4x16xf32>
  %1 = tensor.unpack %0 {axis = 0, size = 32} : (tensor<2x4x16xf32>) -> tensor<32x4xf32>
  %2 = tensor.dot_general %x, %1 {batch = [], contract = [[1, 1]], order = "chain"} : (tensor<9x4xf32>, tensor<32x4xf32>) -> tensor<9x32xf32>
  func.return %2 : tensor<9x32xf32>
}
// CHECK: label = "pack"
// CHECK: label = "unpack_dot_general"
