// test: pass fix_numerics fuse bufferize tensor_to_loop

// over axes of which the first has size 1, a position takes no remainder: its quotient is within bounds
func.func @sums(%x: tensor<1x4x3x5xf32>) -> tensor<4xf32> {
  %0 = tensor.reduce_sum %x {axes = [0, 2, 3]} : (tensor<1x4x3x5xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK: loop.load %x {map = affine_map<(d0, d1) -> (0, d0, d1 floordiv 5, d1 mod 5)>
