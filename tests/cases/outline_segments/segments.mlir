// test: pass outline-segments

// two segments with a sum in between; the slice at the rank's position belongs to the first
func.func @main(%x: tensor<6x2xf32>) -> (tensor<3xf32>, tensor<2xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [[], []]>], result_shardings = [#shard.sharding<dims = [["d"]]>, #shard.sharding<dims = [[]]>]} {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<6x2xf32>) -> tensor<6xf32>
  %1 = shard.all_slice %0 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<6xf32>) -> tensor<3xf32>
  %2 = tensor.reduce_sum %x {axes = [0]} : (tensor<6x2xf32>) -> tensor<2xf32>
  %3 = shard.all_reduce %2 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["m"]} : tensor<2xf32>
  %4 = tensor.neg %3 : tensor<2xf32>
  func.return %1, %4 : tensor<3xf32>, tensor<2xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @main_segment_0(%x: tensor<6x2xf32>, %arg0: tensor<i64>) -> (tensor<3xf32>, tensor<2xf32>) {
// CHECK-NEXT:     %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<6x2xf32>) -> tensor<6xf32>
// CHECK-NEXT:     %1 = tensor.full 3 : tensor<i64>
// CHECK-NEXT:     %2 = tensor.mul %arg0, %1 : tensor<i64>
// CHECK-NEXT:     %3 = tensor.full 0 : tensor<i64>
// CHECK-NEXT:     %4 = tensor.dynamic_slice %0, %2 {shape = [3]} : (tensor<6xf32>, tensor<i64>) -> tensor<3xf32>
// CHECK-NEXT:     %5 = tensor.reduce_sum %x {axes = [0]} : (tensor<6x2xf32>) -> tensor<2xf32>
// CHECK-NEXT:     func.return %4, %5 : tensor<3xf32>, tensor<2xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @main_segment_1(%arg0: tensor<2xf32>) -> tensor<2xf32> {
// CHECK-NEXT:     %0 = tensor.neg %arg0 : tensor<2xf32>
// CHECK-NEXT:     func.return %0 : tensor<2xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @main(%x: tensor<6x2xf32>) -> (tensor<3xf32>, tensor<2xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}], []]>], result_shardings = [#shard.sharding<dims = {{\[\[}}"d"]]>, #shard.sharding<dims = {{\[\[}}]]>]} {
// CHECK-NEXT:     %0 = shard.process_index {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : () -> tensor<i64>
// CHECK-NEXT:     %1:2 = func.call @main_segment_0(%x, %0) : (tensor<6x2xf32>, tensor<i64>) -> (tensor<3xf32>, tensor<2xf32>)
// CHECK-NEXT:     %2 = shard.all_reduce %1#1 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["m"]} : tensor<2xf32>
// CHECK-NEXT:     %3 = func.call @main_segment_1(%2) : tensor<2xf32>
// CHECK-NEXT:     func.return %1#0, %3 : tensor<3xf32>, tensor<2xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// operations are in order where a collective is on its way: they run between its start and where it is waited for, and
// each segment has constants of its own
func.func @ordered(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[]]>], result_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]]>]} {
  %0 = tensor.full 3.0 : tensor<f32>
  %1 = tensor.mul %x, %0 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = shard.all_reduce_start %1 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : (tensor<2xf32>) -> !shard.request<tensor<2xf32>>
  %3 = tensor.exp %x : tensor<2xf32>
  %4 = shard.wait %2 : (!shard.request<tensor<2xf32>>) -> tensor<2xf32>
  %5 = tensor.add %4, %0 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  func.return %3, %5 : tensor<2xf32>, tensor<2xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @ordered_segment_0(%x: tensor<2xf32>) -> tensor<2xf32> {
// CHECK-NEXT:     %0 = tensor.full 3.0 : tensor<f32>
// CHECK-NEXT:     %1 = tensor.mul %x, %0 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
// CHECK-NEXT:     func.return %1 : tensor<2xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @ordered_segment_1(%x: tensor<2xf32>) -> tensor<2xf32> {
// CHECK-NEXT:     %0 = tensor.exp %x : tensor<2xf32>
// CHECK-NEXT:     func.return %0 : tensor<2xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @ordered_segment_2(%arg0: tensor<2xf32>) -> tensor<2xf32> {
// CHECK-NEXT:     %0 = tensor.full 3.0 : tensor<f32>
// CHECK-NEXT:     %1 = tensor.add %arg0, %0 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
// CHECK-NEXT:     func.return %1 : tensor<2xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @ordered(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}]]>], result_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]]>]} {
// CHECK-NEXT:     %0 = func.call @ordered_segment_0(%x) : tensor<2xf32>
// CHECK-NEXT:     %1 = shard.all_reduce_start %0 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : (tensor<2xf32>) -> !shard.request<tensor<2xf32>>
// CHECK-NEXT:     %2 = func.call @ordered_segment_1(%x) : tensor<2xf32>
// CHECK-NEXT:     %3 = shard.wait %1 : (!shard.request<tensor<2xf32>>) -> tensor<2xf32>
// CHECK-NEXT:     %4 = func.call @ordered_segment_2(%3) : tensor<2xf32>
// CHECK-NEXT:     func.return %2, %4 : tensor<2xf32>, tensor<2xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
