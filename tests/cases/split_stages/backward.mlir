// test: pass split-stages

// forward of both microbatches, then backward of both
func.func @step(%x: tensor<2x4xf32>, %u: tensor<4xf32>, %v: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>) attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[], []]>, #shard.sharding<dims = [[]], stage = 0>, #shard.sharding<dims = [[]], stage = 1>], result_shardings = [#shard.sharding<dims = []>, #shard.sharding<dims = [[]], stage = 0>, #shard.sharding<dims = [[]], stage = 1>], partitioned = true} {
  %one = tensor.full 1.0 : tensor<f32>
  %0_0 = tensor.slice %x {starts = [0, 0], stops = [1, 4], steps = [1, 1]} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %0_1 = tensor.reshape %0_0 : tensor<1x4xf32> to tensor<4xf32>
  %0_2 = shard.microbatch %0_1 {number = 0, schedule = "gpipe"} : tensor<4xf32>
  %0_3 = shard.stage %0_2 {stage = 0} : tensor<4xf32>
  %0_4 = tensor.mul %0_3, %u : tensor<4xf32>
  %0_5 = shard.stage %0_4 {stage = 1} : tensor<4xf32>
  %0_6 = tensor.mul %0_5, %v : tensor<4xf32>
  %0_7 = tensor.reduce_sum %0_6 {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
  %0_l = shard.microbatch %0_7 {number = 0, schedule = "gpipe"} : tensor<f32>
  %0_8 = shard.stage_like %one, %0_l : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %0_9 = tensor.mul %0_8, %0_5 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %0_10 = tensor.mul %0_8, %v : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %0_11 = shard.stage_like %0_10, %0_4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0_12 = tensor.mul %0_11, %0_3 : tensor<4xf32>
  %1_0 = tensor.slice %x {starts = [1, 0], stops = [2, 4], steps = [1, 1]} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %1_1 = tensor.reshape %1_0 : tensor<1x4xf32> to tensor<4xf32>
  %1_2 = shard.microbatch %1_1 {number = 1, schedule = "gpipe"} : tensor<4xf32>
  %1_3 = shard.stage %1_2 {stage = 0} : tensor<4xf32>
  %1_4 = tensor.mul %1_3, %u : tensor<4xf32>
  %1_5 = shard.stage %1_4 {stage = 1} : tensor<4xf32>
  %1_6 = tensor.mul %1_5, %v : tensor<4xf32>
  %1_7 = tensor.reduce_sum %1_6 {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
  %1_l = shard.microbatch %1_7 {number = 1, schedule = "gpipe"} : tensor<f32>
  %1_8 = shard.stage_like %one, %1_l : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1_9 = tensor.mul %1_8, %1_5 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %1_10 = tensor.mul %1_8, %v : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %1_11 = shard.stage_like %1_10, %1_4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1_12 = tensor.mul %1_11, %1_3 : tensor<4xf32>
  %l = tensor.add %0_l, %1_l : tensor<f32>
  %du = tensor.add %0_12, %1_12 : tensor<4xf32>
  %dv = tensor.add %0_9, %1_9 : tensor<4xf32>
  %u1 = tensor.sub %u, %du : tensor<4xf32>
  %v1 = tensor.sub %v, %dv : tensor<4xf32>
  func.return %l, %u1, %v1 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func private @step_start_0(%x: tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:     %0 = tensor.slice %x {starts = [0, 0], stops = [1, 4], steps = [1, 1]} : (tensor<2x4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT:     %1 = tensor.reshape %0 : tensor<1x4xf32> to tensor<4xf32>
// CHECK-NEXT:     %2 = tensor.slice %x {starts = [1, 0], stops = [2, 4], steps = [1, 1]} : (tensor<2x4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT:     %3 = tensor.reshape %2 : tensor<1x4xf32> to tensor<4xf32>
// CHECK-NEXT:     func.return %1, %3 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_forward_0(%arg0: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %u : tensor<4xf32>
// CHECK-NEXT:     func.return %0 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_backward_0(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %arg1 : tensor<4xf32>
// CHECK-NEXT:     func.return %0 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_backward_0_0(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %arg1 : tensor<4xf32>
// CHECK-NEXT:     %du = tensor.add %arg2, %0 : tensor<4xf32>
// CHECK-NEXT:     func.return %du : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_end_0(%u: tensor<4xf32>, %du: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %u1 = tensor.sub %u, %du : tensor<4xf32>
// CHECK-NEXT:     func.return %u1 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @step_position_0(%x: tensor<2x4xf32>, %u: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}]], stage = 0>, #shard.sharding<dims = {{\[\[}}]], stage = 1>], result_shardings = [#shard.sharding<dims = []>, #shard.sharding<dims = {{\[\[}}]], stage = 0>, #shard.sharding<dims = {{\[\[}}]], stage = 1>], partitioned = true, position = 0, takes = [0, 1], gives = [0, 1], results = 3} {
// CHECK-NEXT:     %0:2 = func.call @step_start_0(%x) : (tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:     %1 = func.call @step_forward_0(%0#0, %u) : tensor<4xf32>
// CHECK-NEXT:     shard.send %1 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 0, destination = 1} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %2 = func.call @step_forward_0(%0#1, %u) : tensor<4xf32>
// CHECK-NEXT:     shard.send %2 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 2, destination = 1} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %3 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 1, source = 1} : () -> tensor<4xf32>
// CHECK-NEXT:     %4 = func.call @step_backward_0(%3, %0#0) : tensor<4xf32>
// CHECK-NEXT:     %5 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 3, source = 1} : () -> tensor<4xf32>
// CHECK-NEXT:     %6 = func.call @step_backward_0_0(%5, %0#1, %4) : tensor<4xf32>
// CHECK-NEXT:     %7 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 4, source = 1} : () -> tensor<f32>
// CHECK-NEXT:     %8 = func.call @step_end_0(%u, %6) : tensor<4xf32>
// CHECK-NEXT:     func.return %7, %8 : tensor<f32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_forward_1(%arg0: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<f32> {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %v : tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT:     func.return %1 : tensor<f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_forward_1_0(%arg0: tensor<4xf32>, %v: tensor<4xf32>, %arg1: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %v : tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT:     %l = tensor.add %arg1, %1 : tensor<f32>
// CHECK-NEXT:     func.return %l : tensor<f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_backward_1(%arg0: tensor<4xf32>, %v: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:     %one = tensor.full 1.0 : tensor<f32>
// CHECK-NEXT:     %0 = tensor.mul %one, %arg0 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.mul %one, %v : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_backward_1_0(%arg0: tensor<4xf32>, %v: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:     %one = tensor.full 1.0 : tensor<f32>
// CHECK-NEXT:     %0 = tensor.mul %one, %arg0 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.mul %one, %v : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     %dv = tensor.add %arg1, %0 : tensor<4xf32>
// CHECK-NEXT:     func.return %1, %dv : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_end_1(%v: tensor<4xf32>, %dv: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %v1 = tensor.sub %v, %dv : tensor<4xf32>
// CHECK-NEXT:     func.return %v1 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @step_position_1(%v: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}]], stage = 0>, #shard.sharding<dims = {{\[\[}}]], stage = 1>], result_shardings = [#shard.sharding<dims = []>, #shard.sharding<dims = {{\[\[}}]], stage = 0>, #shard.sharding<dims = {{\[\[}}]], stage = 1>], partitioned = true, position = 1, takes = [2], gives = [0, 2], results = 3} {
// CHECK-NEXT:     %0 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 0, source = 0} : () -> tensor<4xf32>
// CHECK-NEXT:     %1 = func.call @step_forward_1(%0, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT:     %2 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 2, source = 0} : () -> tensor<4xf32>
// CHECK-NEXT:     %3 = func.call @step_forward_1_0(%2, %v, %1) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:     shard.send %3 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 4, destination = 0} : (tensor<f32>) -> ()
// CHECK-NEXT:     %4:2 = func.call @step_backward_1(%0, %v) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:     shard.send %4#1 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 1, destination = 0} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %5:2 = func.call @step_backward_1_0(%2, %v, %4#0) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:     shard.send %5#0 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 3, destination = 0} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %6 = func.call @step_end_1(%v, %5#1) : tensor<4xf32>
// CHECK-NEXT:     func.return %3, %6 : tensor<f32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// a backward as soon as it can begin: the last stage has one after each forward
func.func @step(%x: tensor<2x4xf32>, %u: tensor<4xf32>, %v: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>) attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[], []]>, #shard.sharding<dims = [[]], stage = 0>, #shard.sharding<dims = [[]], stage = 1>], result_shardings = [#shard.sharding<dims = []>, #shard.sharding<dims = [[]], stage = 0>, #shard.sharding<dims = [[]], stage = 1>], partitioned = true} {
  %one = tensor.full 1.0 : tensor<f32>
  %0_0 = tensor.slice %x {starts = [0, 0], stops = [1, 4], steps = [1, 1]} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %0_1 = tensor.reshape %0_0 : tensor<1x4xf32> to tensor<4xf32>
  %0_2 = shard.microbatch %0_1 {number = 0, schedule = "1f1b"} : tensor<4xf32>
  %0_3 = shard.stage %0_2 {stage = 0} : tensor<4xf32>
  %0_4 = tensor.mul %0_3, %u : tensor<4xf32>
  %0_5 = shard.stage %0_4 {stage = 1} : tensor<4xf32>
  %0_6 = tensor.mul %0_5, %v : tensor<4xf32>
  %0_7 = tensor.reduce_sum %0_6 {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
  %0_l = shard.microbatch %0_7 {number = 0, schedule = "1f1b"} : tensor<f32>
  %0_8 = shard.stage_like %one, %0_l : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %0_9 = tensor.mul %0_8, %0_5 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %0_10 = tensor.mul %0_8, %v : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %0_11 = shard.stage_like %0_10, %0_4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0_12 = tensor.mul %0_11, %0_3 : tensor<4xf32>
  %1_0 = tensor.slice %x {starts = [1, 0], stops = [2, 4], steps = [1, 1]} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %1_1 = tensor.reshape %1_0 : tensor<1x4xf32> to tensor<4xf32>
  %1_2 = shard.microbatch %1_1 {number = 1, schedule = "1f1b"} : tensor<4xf32>
  %1_3 = shard.stage %1_2 {stage = 0} : tensor<4xf32>
  %1_4 = tensor.mul %1_3, %u : tensor<4xf32>
  %1_5 = shard.stage %1_4 {stage = 1} : tensor<4xf32>
  %1_6 = tensor.mul %1_5, %v : tensor<4xf32>
  %1_7 = tensor.reduce_sum %1_6 {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
  %1_l = shard.microbatch %1_7 {number = 1, schedule = "1f1b"} : tensor<f32>
  %1_8 = shard.stage_like %one, %1_l : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1_9 = tensor.mul %1_8, %1_5 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %1_10 = tensor.mul %1_8, %v : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %1_11 = shard.stage_like %1_10, %1_4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1_12 = tensor.mul %1_11, %1_3 : tensor<4xf32>
  %l = tensor.add %0_l, %1_l : tensor<f32>
  %du = tensor.add %0_12, %1_12 : tensor<4xf32>
  %dv = tensor.add %0_9, %1_9 : tensor<4xf32>
  %u1 = tensor.sub %u, %du : tensor<4xf32>
  %v1 = tensor.sub %v, %dv : tensor<4xf32>
  func.return %l, %u1, %v1 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func private @step_start_0(%x: tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:     %0 = tensor.slice %x {starts = [0, 0], stops = [1, 4], steps = [1, 1]} : (tensor<2x4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT:     %1 = tensor.reshape %0 : tensor<1x4xf32> to tensor<4xf32>
// CHECK-NEXT:     %2 = tensor.slice %x {starts = [1, 0], stops = [2, 4], steps = [1, 1]} : (tensor<2x4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT:     %3 = tensor.reshape %2 : tensor<1x4xf32> to tensor<4xf32>
// CHECK-NEXT:     func.return %1, %3 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_forward_0(%arg0: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %u : tensor<4xf32>
// CHECK-NEXT:     func.return %0 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_backward_0(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %arg1 : tensor<4xf32>
// CHECK-NEXT:     func.return %0 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_backward_0_0(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %arg1 : tensor<4xf32>
// CHECK-NEXT:     %du = tensor.add %arg2, %0 : tensor<4xf32>
// CHECK-NEXT:     func.return %du : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_end_0(%u: tensor<4xf32>, %du: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %u1 = tensor.sub %u, %du : tensor<4xf32>
// CHECK-NEXT:     func.return %u1 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @step_position_0(%x: tensor<2x4xf32>, %u: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}]], stage = 0>, #shard.sharding<dims = {{\[\[}}]], stage = 1>], result_shardings = [#shard.sharding<dims = []>, #shard.sharding<dims = {{\[\[}}]], stage = 0>, #shard.sharding<dims = {{\[\[}}]], stage = 1>], partitioned = true, position = 0, takes = [0, 1], gives = [0, 1], results = 3} {
// CHECK-NEXT:     %0:2 = func.call @step_start_0(%x) : (tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:     %1 = func.call @step_forward_0(%0#0, %u) : tensor<4xf32>
// CHECK-NEXT:     shard.send %1 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 0, destination = 1} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %2 = func.call @step_forward_0(%0#1, %u) : tensor<4xf32>
// CHECK-NEXT:     shard.send %2 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 2, destination = 1} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %3 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 1, source = 1} : () -> tensor<4xf32>
// CHECK-NEXT:     %4 = func.call @step_backward_0(%3, %0#0) : tensor<4xf32>
// CHECK-NEXT:     %5 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 3, source = 1} : () -> tensor<4xf32>
// CHECK-NEXT:     %6 = func.call @step_backward_0_0(%5, %0#1, %4) : tensor<4xf32>
// CHECK-NEXT:     %7 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 4, source = 1} : () -> tensor<f32>
// CHECK-NEXT:     %8 = func.call @step_end_0(%u, %6) : tensor<4xf32>
// CHECK-NEXT:     func.return %7, %8 : tensor<f32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_forward_1(%arg0: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<f32> {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %v : tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT:     func.return %1 : tensor<f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_backward_1(%arg0: tensor<4xf32>, %v: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:     %one = tensor.full 1.0 : tensor<f32>
// CHECK-NEXT:     %0 = tensor.mul %one, %arg0 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.mul %one, %v : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_forward_1_0(%arg0: tensor<4xf32>, %v: tensor<4xf32>, %arg1: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT:     %0 = tensor.mul %arg0, %v : tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT:     %l = tensor.add %arg1, %1 : tensor<f32>
// CHECK-NEXT:     func.return %l : tensor<f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_backward_1_0(%arg0: tensor<4xf32>, %v: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:     %one = tensor.full 1.0 : tensor<f32>
// CHECK-NEXT:     %0 = tensor.mul %one, %arg0 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.mul %one, %v : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     %dv = tensor.add %arg1, %0 : tensor<4xf32>
// CHECK-NEXT:     func.return %1, %dv : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step_end_1(%v: tensor<4xf32>, %dv: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %v1 = tensor.sub %v, %dv : tensor<4xf32>
// CHECK-NEXT:     func.return %v1 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @step_position_1(%v: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}]], stage = 0>, #shard.sharding<dims = {{\[\[}}]], stage = 1>], result_shardings = [#shard.sharding<dims = []>, #shard.sharding<dims = {{\[\[}}]], stage = 0>, #shard.sharding<dims = {{\[\[}}]], stage = 1>], partitioned = true, position = 1, takes = [2], gives = [0, 2], results = 3} {
// CHECK-NEXT:     %0 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 0, source = 0} : () -> tensor<4xf32>
// CHECK-NEXT:     %1 = func.call @step_forward_1(%0, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT:     %2:2 = func.call @step_backward_1(%0, %v) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:     shard.send %2#1 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 1, destination = 0} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %3 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 2, source = 0} : () -> tensor<4xf32>
// CHECK-NEXT:     %4 = func.call @step_forward_1_0(%3, %v, %1) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:     shard.send %4 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 4, destination = 0} : (tensor<f32>) -> ()
// CHECK-NEXT:     %5:2 = func.call @step_backward_1_0(%3, %v, %2#0) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:     shard.send %5#0 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 3, destination = 0} : (tensor<4xf32>) -> ()
// CHECK-NEXT:     %6 = func.call @step_end_1(%v, %5#1) : tensor<4xf32>
// CHECK-NEXT:     func.return %4, %6 : tensor<f32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
