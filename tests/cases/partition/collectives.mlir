// test: pass propagate-shardings,partition

// partial sums are combined by all ranks of the axis that is summed over
func.func @sums(%x: tensor<4x6xf32>) -> tensor<f32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [["d"], ["m"]]>]} {
  %0 = tensor.reduce_sum %x {axes = [0, 1]} : (tensor<4x6xf32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @sums(%x: tensor<2x2xf32>) -> tensor<f32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}"d"], ["m"]]>], result_shardings = [#shard.sharding<dims = []>], partitioned = true} {
// CHECK-NEXT:     %0 = tensor.reduce_sum %x {axes = [0, 1]} : (tensor<2x2xf32>) -> tensor<f32>
// CHECK-NEXT:     %1 = shard.all_reduce %0 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d", "m"]} : tensor<f32>
// CHECK-NEXT:     func.return %1 : tensor<f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// a result that is divided along the axis that is summed over is scattered
func.func @scattered(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>) -> tensor<4x8xf32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [[], ["d"]]>, #shard.sharding<dims = [["d"], []]>], result_shardings = [#shard.sharding<dims = [["d"], []]>]} {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]} : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  func.return %0 : tensor<4x8xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @scattered(%x: tensor<4x3xf32>, %w: tensor<3x8xf32>) -> tensor<2x8xf32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}], ["d"]]>, #shard.sharding<dims = {{\[\[}}"d"], []]>], result_shardings = [#shard.sharding<dims = {{\[\[}}"d"], []]>], partitioned = true} {
// CHECK-NEXT:     %0 = tensor.dot_general %x, %w {batch = [], contract = {{\[\[}}1, 0]]} : (tensor<4x3xf32>, tensor<3x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:     %1 = shard.reduce_scatter %0 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<4x8xf32>) -> tensor<2x8xf32>
// CHECK-NEXT:     func.return %1 : tensor<2x8xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// from one dimension to another; gathered; sliced
func.func @moved(%x: tensor<6x6xf32>) -> (tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>) attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [["m"], []]>], result_shardings = [#shard.sharding<dims = [[], ["m"]]>, #shard.sharding<dims = [[], []]>, #shard.sharding<dims = [["m"], ["d"]]>]} {
  func.return %x, %x, %x : tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @moved(%x: tensor<2x6xf32>) -> (tensor<6x2xf32>, tensor<6x6xf32>, tensor<2x3xf32>) attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}"m"], []]>], result_shardings = [#shard.sharding<dims = {{\[\[}}], ["m"]]>, #shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}"m"], ["d"]]>], partitioned = true} {
// CHECK-NEXT:     %0 = shard.all_to_all %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["m"], split = 1, concat = 0} : (tensor<2x6xf32>) -> tensor<6x2xf32>
// CHECK-NEXT:     %1 = shard.all_gather %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["m"], axis = 0} : (tensor<2x6xf32>) -> tensor<6x6xf32>
// CHECK-NEXT:     %2 = shard.all_slice %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 1} : (tensor<2x6xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:     func.return %0, %1, %2 : tensor<6x2xf32>, tensor<6x6xf32>, tensor<2x3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// every rank runs a loop as a whole, on what is gathered for it
func.func @loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [["d"]]>, #shard.sharding<dims = []>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<4xf32>) {
    %1 = tensor.reverse %y {axes = [0]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = tensor.add %1, %x : tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @loop(%x: tensor<2xf32>, %n: index) -> tensor<4xf32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}"d"]]>, #shard.sharding<dims = []>], result_shardings = [#shard.sharding<dims = {{\[\[}}]]>], partitioned = true} {
// CHECK-NEXT:     %c0 = arith.constant 0 : index
// CHECK-NEXT:     %c1 = arith.constant 1 : index
// CHECK-NEXT:     %0 = shard.all_gather %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<2xf32>) -> tensor<4xf32>
// CHECK-NEXT:     %1 = scf.for %i = %c0 to %n step %c1 iter_args(%y = %0) -> (tensor<4xf32>) {
// CHECK-NEXT:       %2 = tensor.reverse %y {axes = [0]} : tensor<4xf32>
// CHECK-NEXT:       %3 = tensor.add %2, %0 : tensor<4xf32>
// CHECK-NEXT:       scf.yield %3 : tensor<4xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %1 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// of rows that go around, a rank sends those that others get
func.func @ring(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) attributes {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [["d"], []]>], result_shardings = [#shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [["d"], []]>]} {
  %0 = shard.roll %x {axis = 0, offset = 1} : tensor<4x6xf32>
  %1 = shard.after %x, %0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = shard.roll %1 {axis = 0, offset = 2} : tensor<4x6xf32>
  func.return %0, %2 : tensor<4x6xf32>, tensor<4x6xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @ring(%x: tensor<2x6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>) attributes {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}"d"], []]>], result_shardings = [#shard.sharding<dims = {{\[\[}}"d"], []]>, #shard.sharding<dims = {{\[\[}}"d"], []]>], partitioned = true} {
// CHECK-NEXT:     %0 = tensor.slice %x {starts = [1, 0], stops = [2, 6], steps = [1, 1]} : (tensor<2x6xf32>) -> tensor<1x6xf32>
// CHECK-NEXT:     %1 = shard.shift %0 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], offset = 1} : tensor<1x6xf32>
// CHECK-NEXT:     %2 = tensor.slice %x {starts = [0, 0], stops = [1, 6], steps = [1, 1]} : (tensor<2x6xf32>) -> tensor<1x6xf32>
// CHECK-NEXT:     %3 = tensor.concat %1, %2 {axis = 0} : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>
// CHECK-NEXT:     %4 = shard.all_gather %3 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} : (tensor<2x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT:     %5 = shard.after %x, %3 : tensor<2x6xf32>
// CHECK-NEXT:     %6 = shard.shift %5 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], offset = 1} : tensor<2x6xf32>
// CHECK-NEXT:     func.return %3, %6 : tensor<2x6xf32>, tensor<2x6xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
