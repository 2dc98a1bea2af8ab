// test: pass bufferize tensor_to_loop
// tolerance: bits

// the indexing maps say how the domain is gone through: along the rows of what is written
func.func @rows(%x: tensor<4x5xf32>) -> tensor<5x4xf32> {
  %0 = tensor.kernel %x {label = "turn", domain = [5, 4], iterator_types = ["parallel", "parallel"], indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<5x4xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.transpose %a {perm = [1, 0]} : (tensor<4x5xf32>) -> tensor<5x4xf32>
    tensor.yield %1 : tensor<5x4xf32>
  }
  func.return %0 : tensor<5x4xf32>
}
// CHECK: domain = [5, 4]
// CHECK: loop.load %x {map = affine_map<(d0, d1) -> (d1, d0)>
// CHECK: loop.store %{{\d+}}, %out0 {map = affine_map<(d0, d1) -> (d0, d1)>
// -----
// or, with other maps of the same kernel, along those of what is read
func.func @columns(%x: tensor<4x5xf32>) -> tensor<5x4xf32> {
  %0 = tensor.kernel %x {label = "turn", domain = [4, 5], iterator_types = ["parallel", "parallel"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<5x4xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.transpose %a {perm = [1, 0]} : (tensor<4x5xf32>) -> tensor<5x4xf32>
    tensor.yield %1 : tensor<5x4xf32>
  }
  func.return %0 : tensor<5x4xf32>
}
// CHECK: domain = [4, 5]
// CHECK: loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: loop.store %{{\d+}}, %out0 {map = affine_map<(d0, d1) -> (d1, d0)>
