// test: pass fuse bufferize tensor_to_loop coalesce_dimensions
// tolerance: bits

// loops nest in the order in which the result lies in memory, if that is the order of most accesses
func.func @channels_last(%x: tensor<2x5x6x7xf32>, %b: tensor<7xf32>) -> tensor<2x5x6x7xf32> {
  %0 = tensor.transpose %x {perm = [0, 3, 1, 2]} : (tensor<2x5x6x7xf32>) -> tensor<2x7x5x6xf32>
  %1 = tensor.reshape %b : tensor<7xf32> to tensor<7x1x1xf32>
  %2 = tensor.add %0, %1 : (tensor<2x7x5x6xf32>, tensor<7x1x1xf32>) -> tensor<2x7x5x6xf32>
  %3 = tensor.transpose %2 {perm = [0, 2, 3, 1]} : (tensor<2x7x5x6xf32>) -> tensor<2x5x6x7xf32>
  func.return %3 : tensor<2x5x6x7xf32>
}
// CHECK: domain = [60, 7]
