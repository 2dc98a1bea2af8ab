// test: verify

// the maps of operands are those that the body has
func.func @f(%x: tensor<4x5xf32>) -> tensor<5x4xf32> {
  %0 = tensor.kernel %x {label = "turn", domain = [5, 4], iterator_types = ["parallel", "parallel"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<5x4xf32> { // error: error[MLC0143]: tensor.kernel: operand 0 is read by affine_map<(d0, d1) -> (d1, d0)>, but its indexing map is affine_map<(d0, d1) -> (d0, d1)>
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.transpose %a {perm = [1, 0]} : (tensor<4x5xf32>) -> tensor<5x4xf32>
    tensor.yield %1 : tensor<5x4xf32>
  }
  func.return %0 : tensor<5x4xf32>
}
// -----
// a result's axis is a dimension of its size
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "copy", domain = [4, 5], iterator_types = ["parallel", "parallel"], indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d1, d0)>], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> { // error: error[MLC0143]: tensor.kernel: result 0 of shape [4, 5] is not (d1, d0) over the domain [4, 5]: each axis is one dimension of that size, or 0
  ^bb0(%a: tensor<4x5xf32>):
    tensor.yield %a : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// every element is written at one point
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.kernel %x {label = "copy", domain = [4, 5], iterator_types = ["parallel", "parallel"], indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4xf32>) -> tensor<4xf32> { // error: error[MLC0143]: tensor.kernel: several points of the domain [4, 5] compute the same element of result 0
  ^bb0(%a: tensor<4xf32>):
    tensor.yield %a : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}
// -----
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.kernel %x {label = "copy", domain = [4], iterator_types = ["window"], indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4xf32>) -> tensor<4xf32> { // error: error[MLC0143]: tensor.kernel: iterator_types ['window'] are not one of parallel, reduction, scan, scatter for each dimension of the domain [4]
  ^bb0(%a: tensor<4xf32>):
    tensor.yield %a : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}
// -----
// a sum is known after the stage that it runs in
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 1, stores = [0], last_reads = [0], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> { // error: error[MLC0144]: tensor.kernel: result 0 is stored in stage 0, but is known in stage 1 of 1
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// until which stage an operand is read decides what may be written over it
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 2, stores = [1], last_reads = [0], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> { // error: error[MLC0144]: tensor.kernel: operand 0 is read for the last time in stage 1, not 0
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// a slice is reduced where it is: a result at another point cannot use it
func.func @f(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  %0 = tensor.kernel %x {label = "sums", domain = [4, 4], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], stores = [1], last_reads = [0], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], stage = 0} : (tensor<4x4xf32>) -> tensor<4xf32> // error: error[MLC0143]: tensor.reduce_sum: is read at (-d0 + 3), but the kernel computes it at (d0)
    %2 = tensor.reverse %1 {axes = [0]} : tensor<4xf32>
    tensor.yield %2 : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}
