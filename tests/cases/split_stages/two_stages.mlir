// test: pass split-stages

// a gradient of what two stages use is added at the first of them; numbers are sent to where the rest is
func.func @norm(%x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]], stage = 0>], result_shardings = [#shard.sharding<dims = [[]], stage = 0>, #shard.sharding<dims = [[]], stage = 1>], partitioned = true} {
  %one = tensor.full 1.0 : tensor<4xf32>
  %0 = shard.stage %x {stage = 0} : tensor<4xf32>
  %1 = tensor.mul %0, %w : tensor<4xf32>
  %2 = shard.stage %1 {stage = 1} : tensor<4xf32>
  %3 = tensor.mul %2, %w : tensor<4xf32>
  %l = shard.microbatch %3 {number = 0} : tensor<4xf32>
  %4 = shard.stage_like %one, %l : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = tensor.mul %4, %2 : tensor<4xf32>
  %6 = tensor.mul %4, %w : tensor<4xf32>
  %7 = shard.stage_like %6, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %8 = tensor.mul %7, %0 : tensor<4xf32>
  %dw = tensor.add %8, %5 : tensor<4xf32>
  %n = tensor.reduce_sum %dw {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
  %scaled = tensor.mul %n, %5 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %dw, %scaled : tensor<4xf32>, tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func private @norm_forward_0(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.mul %x, %w : tensor<4xf32>
// CHECK-NEXT:     func.return %0 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @norm_backward_0(%arg0: tensor<4xf32>, %x: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %x : tensor<4xf32>
// CHECK-NEXT:     %dw = tensor.add %0, %arg1 : tensor<4xf32>
// CHECK-NEXT:     %n = tensor.reduce_sum %dw {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT:     func.return %dw, %n : tensor<4xf32>, tensor<f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @norm_position_0(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]], stage = 0>], result_shardings = [#shard.sharding<dims = {{\[\[}}]], stage = 0>, #shard.sharding<dims = {{\[\[}}]], stage = 1>], partitioned = true, position = 0, takes = [0, 1], gives = [0], results = 2} {
// CHECK-NEXT:     shard.send %w {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 0, destination = 1} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %0 = func.call @norm_forward_0(%x, %w) : tensor<4xf32>
// CHECK-NEXT:     shard.send %0 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 1, destination = 1} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %1 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 2, source = 1} : () -> tensor<4xf32>
// CHECK-NEXT:     %2 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 3, source = 1} : () -> tensor<4xf32>
// CHECK-NEXT:     %3:2 = func.call @norm_backward_0(%2, %x, %1) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>)
// CHECK-NEXT:     shard.send %3#1 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 4, destination = 1} : (tensor<f32>) -> ()
// CHECK-NEXT:     func.return %3#0 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @norm_backward_1(%arg0: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:     %one = tensor.full 1.0 : tensor<4xf32>
// CHECK-NEXT:     %0 = tensor.mul %one, %arg0 : tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.mul %one, %w : tensor<4xf32>
// CHECK-NEXT:     func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @norm_end_1(%n: tensor<f32>, %arg0: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %scaled = tensor.mul %n, %arg0 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     func.return %scaled : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @norm_position_1() -> tensor<4xf32> attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]], stage = 0>], result_shardings = [#shard.sharding<dims = {{\[\[}}]], stage = 0>, #shard.sharding<dims = {{\[\[}}]], stage = 1>], partitioned = true, position = 1, takes = [], gives = [1], results = 2} {
// CHECK-NEXT:     %0 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 0, source = 0} : () -> tensor<4xf32>
// CHECK-NEXT:     %1 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 1, source = 0} : () -> tensor<4xf32>
// CHECK-NEXT:     %2:2 = func.call @norm_backward_1(%1, %0) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:     shard.send %2#0 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 2, destination = 0} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     shard.send %2#1 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 3, destination = 0} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %3 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 4, source = 0} : () -> tensor<f32>
// CHECK-NEXT:     %4 = func.call @norm_end_1(%3, %2#0) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     func.return %4 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
