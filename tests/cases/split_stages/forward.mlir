// test: pass split-stages

// without microbatches: each rank sends what the next one takes; a result is on every rank, unless it is at a stage
func.func @forward(%x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {mesh = #shard.mesh<axes = ["stage", "d"], sizes = [2, 2]>, arg_shardings = [#shard.sharding<dims = [["d"]]>, #shard.sharding<dims = [["d"]], stage = 1>], result_shardings = [#shard.sharding<dims = [["d"]]>, #shard.sharding<dims = [["d"]], stage = 1>], partitioned = true} {
  %0 = shard.stage %x {stage = 0} : tensor<4xf32>
  %1 = tensor.exp %0 : tensor<4xf32>
  %2 = shard.stage %1 {stage = 1} : tensor<4xf32>
  %3 = tensor.mul %2, %w : tensor<4xf32>
  %4 = tensor.neg %3 : tensor<4xf32>
  func.return %3, %4 : tensor<4xf32>, tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func private @forward_forward_0(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.exp %x : tensor<4xf32>
// CHECK-NEXT:     func.return %0 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @forward_position_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {mesh = #shard.mesh<axes = ["stage", "d"], sizes = [2, 2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}"d"]]>, #shard.sharding<dims = {{\[\[}}"d"]], stage = 1>], result_shardings = [#shard.sharding<dims = {{\[\[}}"d"]]>, #shard.sharding<dims = {{\[\[}}"d"]], stage = 1>], partitioned = true, position = 0, takes = [0], gives = [0], results = 2} {
// CHECK-NEXT:     %0 = func.call @forward_forward_0(%x) : tensor<4xf32>
// CHECK-NEXT:     shard.send %0 {mesh = #shard.mesh<axes = ["stage", "d"], sizes = [2, 2]>, axes = ["stage"], tag = 0, destination = 1} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %1 = shard.recv {mesh = #shard.mesh<axes = ["stage", "d"], sizes = [2, 2]>, axes = ["stage"], tag = 1, source = 1} : () -> tensor<4xf32>
// CHECK-NEXT:     func.return %1 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @forward_forward_1(%arg0: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %w : tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.neg %0 : tensor<4xf32>
// CHECK-NEXT:     func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @forward_position_1(%w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {mesh = #shard.mesh<axes = ["stage", "d"], sizes = [2, 2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}"d"]]>, #shard.sharding<dims = {{\[\[}}"d"]], stage = 1>], result_shardings = [#shard.sharding<dims = {{\[\[}}"d"]]>, #shard.sharding<dims = {{\[\[}}"d"]], stage = 1>], partitioned = true, position = 1, takes = [1], gives = [0, 1], results = 2} {
// CHECK-NEXT:     %0 = shard.recv {mesh = #shard.mesh<axes = ["stage", "d"], sizes = [2, 2]>, axes = ["stage"], tag = 0, source = 0} : () -> tensor<4xf32>
// CHECK-NEXT:     %1:2 = func.call @forward_forward_1(%0, %w) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:     shard.send %1#0 {mesh = #shard.mesh<axes = ["stage", "d"], sizes = [2, 2]>, axes = ["stage"], tag = 1, destination = 0} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     func.return %1#0, %1#1 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// what follows from arguments alone is computed where it is used; one that is held elsewhere is sent
func.func @shared(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]], stage = 0>], result_shardings = [#shard.sharding<dims = [[]], stage = 0>], partitioned = true} {
  %c = tensor.full 2.0 : tensor<f32>
  %v = tensor.mul %c, %w : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = shard.stage %x {stage = 0} : tensor<4xf32>
  %1 = tensor.add %0, %v : tensor<4xf32>
  %2 = shard.stage %1 {stage = 1} : tensor<4xf32>
  %3 = tensor.mul %2, %v : tensor<4xf32>
  func.return %3 : tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func private @shared_start_0(%w: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %c = tensor.full 2.0 : tensor<f32>
// CHECK-NEXT:     %v = tensor.mul %c, %w : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     func.return %v : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @shared_forward_0(%x: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.add %x, %v : tensor<4xf32>
// CHECK-NEXT:     func.return %0 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @shared_position_0(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]], stage = 0>], result_shardings = [#shard.sharding<dims = {{\[\[}}]], stage = 0>], partitioned = true, position = 0, takes = [0, 1], gives = [0], results = 1} {
// CHECK-NEXT:     shard.send %w {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 0, destination = 1} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %0 = func.call @shared_start_0(%w) : tensor<4xf32>
// CHECK-NEXT:     %1 = func.call @shared_forward_0(%x, %0) : tensor<4xf32>
// CHECK-NEXT:     shard.send %1 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 1, destination = 1} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %2 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 2, source = 1} : () -> tensor<4xf32>
// CHECK-NEXT:     func.return %2 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @shared_start_1(%w: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %c = tensor.full 2.0 : tensor<f32>
// CHECK-NEXT:     %v = tensor.mul %c, %w : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     func.return %v : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @shared_forward_1(%arg0: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %v : tensor<4xf32>
// CHECK-NEXT:     func.return %0 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @shared_position_1() attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]], stage = 0>], result_shardings = [#shard.sharding<dims = {{\[\[}}]], stage = 0>], partitioned = true, position = 1, takes = [], gives = [], results = 1} {
// CHECK-NEXT:     %0 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 0, source = 0} : () -> tensor<4xf32>
// CHECK-NEXT:     %1 = func.call @shared_start_1(%0) : tensor<4xf32>
// CHECK-NEXT:     %2 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 1, source = 0} : () -> tensor<4xf32>
// CHECK-NEXT:     %3 = func.call @shared_forward_1(%2, %1) : tensor<4xf32>
// CHECK-NEXT:     shard.send %3 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 2, destination = 0} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// an argument at a stage, in a function without a pipeline
func.func @update(%w: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[]], stage = 1>, #shard.sharding<dims = [[]], stage = 1>], result_shardings = [#shard.sharding<dims = [[]], stage = 1>, #shard.sharding<dims = []>], partitioned = true} {
  %0 = tensor.sub %w, %g : tensor<4xf32>
  %1 = tensor.reduce_sum %g {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
  func.return %0, %1 : tensor<4xf32>, tensor<f32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func private @update_end_0(%g: tensor<4xf32>) -> tensor<f32> {
// CHECK-NEXT:     %0 = tensor.reduce_sum %g {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT:     func.return %0 : tensor<f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @update_position_0() -> tensor<f32> attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}]], stage = 1>, #shard.sharding<dims = {{\[\[}}]], stage = 1>], result_shardings = [#shard.sharding<dims = {{\[\[}}]], stage = 1>, #shard.sharding<dims = []>], partitioned = true, position = 0, takes = [], gives = [1], results = 2} {
// CHECK-NEXT:     %0 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 0, source = 1} : () -> tensor<4xf32>
// CHECK-NEXT:     %1 = func.call @update_end_0(%0) : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT:     func.return %1 : tensor<f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @update_end_1(%w: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
// CHECK-NEXT:     %0 = tensor.sub %w, %g : tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.reduce_sum %g {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT:     func.return %0, %1 : tensor<4xf32>, tensor<f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @update_position_1(%w: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}]], stage = 1>, #shard.sharding<dims = {{\[\[}}]], stage = 1>], result_shardings = [#shard.sharding<dims = {{\[\[}}]], stage = 1>, #shard.sharding<dims = []>], partitioned = true, position = 1, takes = [0, 1], gives = [0, 1], results = 2} {
// CHECK-NEXT:     shard.send %g {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 0, destination = 0} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %0:2 = func.call @update_end_1(%w, %g) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>)
// CHECK-NEXT:     func.return %0#0, %0#1 : tensor<4xf32>, tensor<f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
