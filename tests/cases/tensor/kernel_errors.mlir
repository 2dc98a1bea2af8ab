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
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 1, stores = [0], last_reads = [0], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> { // error: error[MLC0144]: tensor.kernel: result 0 is stored in stage 0, but is available in stage 1 of 1
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
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
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
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
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x4xf32>) -> tensor<4xf32> // error: error[MLC0143]: tensor.reduce_sum: is read at (-d0 + 3), but the kernel computes it at (d0)
    %2 = tensor.reverse %1 {axes = [0]} : tensor<4xf32>
    tensor.yield %2 : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}
// -----
// iterator types are those of the operations with loops of their own
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "scan"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 2, stores = [1], last_reads = [1], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32> // error: error[MLC0143]: tensor.reduce_sum: iterates over the domain [4, 5] as parallel, reduction, its kernel over [4, 5] as parallel, scan
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// and so is the domain: no slice has more points than what is reduced
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 9], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> (d0, d1)>], stages = 2, stores = [1], last_reads = [1], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32> // error: error[MLC0143]: tensor.reduce_sum: iterates over the domain [4, 5] as parallel, reduction, its kernel over [4, 9]
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// every stage but the last reduces
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 1000000000, stores = [1], last_reads = [1], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> { // error: error[MLC0144]: tensor.kernel: stages = 1000000000: there is one, and another after each that reduces
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// there is a stage
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 0, stores = [1], last_reads = [1], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32> // error: error[MLC0144]: tensor.reduce_sum: is in stage 0, but its operands are available in stage 0 of 0
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// where stores are left out, all results are stored in stage 0
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 2, stores = [], last_reads = [], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> { // error: error[MLC0144]: tensor.kernel: result 0 is stored in stage 0, but is available in stage 1 of 2
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// after the last stage there are no points
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 2, stores = [2], last_reads = [2], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> { // error: error[MLC0144]: tensor.kernel: result 0 has an element for each point, and no points are visited after the last stage
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// a stage is a number
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 2, stores = [1], last_reads = [1], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = "x"} : (tensor<4x5xf32>) -> tensor<4xf32> // error: error[MLC0144]: tensor.reduce_sum: stage = x must be an integer, on a reduction or a materialized value
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// a stage is not for what is computed where it is read
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 2, stores = [1], last_reads = [1], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 {stage = 0} : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32> // error: error[MLC0144]: tensor.sub: stage = 0 must be an integer, on a reduction
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// a reduction is not materialized
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 2, stores = [1], last_reads = [1], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0, materialize = "scratch"} : (tensor<4x5xf32>) -> tensor<4xf32> // error: error[MLC0144]: tensor.reduce_sum: a materialized value must have a stage and an element for each point
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// the result in whose buffer a value is materialized
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 2, stores = [1], last_reads = [1], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 {stage = 1, materialize = 5} : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32> // error: error[MLC0144]: tensor.sub: materialize = 5 is neither "scratch" nor one of 1 results
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// what nobody reads later is not materialized
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 2, stores = [1], last_reads = [1], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.sub %a, %2 {stage = 1, materialize = "scratch"} : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32> // error: error[MLC0144]: tensor.sub: cannot be materialized in stage 1: it is not read in a later stage
    tensor.yield %3 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
// a buffer of another type holds nothing else
func.func @f(%x: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4xf32>) {
  %0:2 = tensor.kernel %x {label = "shares", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], stages = 3, stores = [2, 3], last_reads = [2], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.div %a, %2 {stage = 1, materialize = 1} : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32> // error: error[MLC0144]: tensor.div: cannot be materialized in stage 1: it does not have the type of result 1, or the latter has no element for each point
    %4 = tensor.reduce_sum %3 {axes = [1], order = "chain", stage = 1} : (tensor<4x5xf32>) -> tensor<4xf32>
    %5 = tensor.reshape %4 : tensor<4xf32> to tensor<4x1xf32>
    %6 = tensor.mul %3, %5 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %6, %4 : tensor<4x5xf32>, tensor<4xf32>
  }
  func.return %0#0, %0#1 : tensor<4x5xf32>, tensor<4xf32>
}
// -----
// one kernel adds in one order
func.func @f(%x: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4xf32>) {
  %0:2 = tensor.kernel %x {label = "shares", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], stages = 3, stores = [2, 3], last_reads = [2], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4xf32>) { // error: error[MLC0144]: tensor.kernel: reduces in several orders: chain, lanes<4>
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.div %a, %2  : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    %4 = tensor.reduce_sum %3 {axes = [1], order = "lanes<4>", stage = 1} : (tensor<4x5xf32>) -> tensor<4xf32>
    %5 = tensor.reshape %4 : tensor<4xf32> to tensor<4x1xf32>
    %6 = tensor.mul %3, %5 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %6, %4 : tensor<4x5xf32>, tensor<4xf32>
  }
  func.return %0#0, %0#1 : tensor<4x5xf32>, tensor<4xf32>
}
// -----
// a result that is stored before a value in its buffer is read back
func.func @f(%x: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>) {
  %0:2 = tensor.kernel %x {label = "shares", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 3, stores = [2, 1], last_reads = [1], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>) {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
    %2 = tensor.reshape %1 : tensor<4xf32> to tensor<4x1xf32>
    %3 = tensor.div %a, %2 {stage = 1, materialize = 1} : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32> // error: error[MLC0144]: tensor.div: cannot be materialized in stage 1: it is read in stage 2, when the buffer of result 1 holds another value
    %4 = tensor.reduce_sum %3 {axes = [1], order = "chain", stage = 1} : (tensor<4x5xf32>) -> tensor<4xf32>
    %5 = tensor.reshape %4 : tensor<4xf32> to tensor<4x1xf32>
    %6 = tensor.mul %3, %5 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    %7 = tensor.neg %3 : tensor<4x5xf32>
    tensor.yield %6, %7 : tensor<4x5xf32>, tensor<4x5xf32>
  }
  func.return %0#0, %0#1 : tensor<4x5xf32>, tensor<4x5xf32>
}
// -----
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.kernel %x {label = "copy", domain = [4], iterator_types = ["reduction"], indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4xf32>) -> tensor<4xf32> { // error: error[MLC0143]: tensor.kernel: without an operation that reduces, scans or scatters all dimensions are parallel
  ^bb0(%a: tensor<4xf32>):
    tensor.yield %a : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}
// -----
// a result is written over an operand only where that is not read elsewhere
func.func @f(%x: memref<4x4xf32>) {
  tensor.kernel %x, %x {label = "turn", domain = [4, 4], iterator_types = ["parallel", "parallel"], indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], operandSegmentSizes = [1, 1, 0, 0]} : (memref<4x4xf32>, memref<4x4xf32>) -> () { // error: error[MLC0153]: tensor.kernel: result 0 is written over another result, or over an operand that is read elsewhere or later
  ^bb0(%a: tensor<4x4xf32>):
    %1 = tensor.transpose %a {perm = [1, 0]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    tensor.yield %1 : tensor<4x4xf32>
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>, %i: memref<2xi64>, %y: memref<2xf32>) {
  tensor.kernel %x, %i, %y {label = "take", domain = [2], iterator_types = ["parallel"], indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], operandSegmentSizes = [2, 1, 0, 0]} : (memref<4xf32>, memref<2xi64>, memref<2xf32>) -> () { // error: error[MLC0153]: tensor.kernel: tensor.take checks an operand, but there is no error record
  ^bb0(%a: tensor<4xf32>, %b: tensor<2xi64>):
    %1 = tensor.take %a, %b {axis = 0} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
    tensor.yield %1 : tensor<2xf32>
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
  tensor.kernel %x, %y {label = "copy", domain = [4], iterator_types = ["parallel"], indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], symbols = ["B"], operandSegmentSizes = [1, 1, 0, 0]} : (memref<4xf32>, memref<4xf32>) -> () { // error: error[MLC0153]: tensor.kernel: 0 sizes for the symbols ['B']
  ^bb0(%a: tensor<4xf32>):
    tensor.yield %a : tensor<4xf32>
  }
  func.return
}
// -----
// a value of another shape than the domain has no place in a buffer with an element for each point
func.func @f(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = tensor.kernel %x {label = "centre", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], stages = 2, stores = [1], last_reads = [1], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reshape %a {stage = 0, materialize = "scratch"} : tensor<4x5xf32> to tensor<1x1x4x5xf32> // error: error[MLC0144]: tensor.reshape: a materialized value must have a stage and an element for each point
    %2 = tensor.reshape %1 : tensor<1x1x4x5xf32> to tensor<4x5xf32>
    %3 = tensor.reduce_sum %2 {axes = [1], order = "chain", stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32>
    %4 = tensor.reshape %3 : tensor<4xf32> to tensor<4x1xf32>
    %5 = tensor.sub %2, %4 : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32>
    tensor.yield %5 : tensor<4x5xf32>
  }
  func.return %0 : tensor<4x5xf32>
}
// -----
func.func @main(%x: tensor<4x5xf32>) -> tensor<4xf32> {
  %0 = tensor.kernel %x {label = "sum", domain = [4, 5], iterator_types = ["parallel", "reduction"], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], stages = 1, stores = [1], last_reads = [0], operandSegmentSizes = [1, 0, 0, 0]} : (tensor<4x5xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    %1 = tensor.reduce_sum %a {axes = [1], stage = 0} : (tensor<4x5xf32>) -> tensor<4xf32> // error: error[MLC0145]: tensor.reduce_sum: has no order
    tensor.yield %1 : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}
