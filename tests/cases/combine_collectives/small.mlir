// test: pass combine-collectives

// two sums of one group become one; that of another group, and one that needs them, stay
func.func @sums(%x: tensor<4xf32>, %y: tensor<2x3xf32>) -> (tensor<4xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[], []]>], result_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[], []]>, #shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]]>]} {
  %0 = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
  %1 = tensor.neg %0 : tensor<4xf32>
  %2 = shard.all_reduce %y {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<2x3xf32>
  %3 = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["m"]} : tensor<4xf32>
  %4 = shard.all_reduce %1 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
  func.return %0, %2, %3, %4 : tensor<4xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @sums(%x: tensor<4xf32>, %y: tensor<2x3xf32>) -> (tensor<4xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}], []]>], result_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]]>]} {
// CHECK-NEXT:     %0 = tensor.reshape %x : tensor<4xf32> to tensor<1x4xf32>
// CHECK-NEXT:     %1 = tensor.reshape %y : tensor<2x3xf32> to tensor<1x6xf32>
// CHECK-NEXT:     %2 = tensor.concat %0, %1 {axis = 1} : (tensor<1x4xf32>, tensor<1x6xf32>) -> tensor<1x10xf32>
// CHECK-NEXT:     %3 = shard.all_reduce %2 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<1x10xf32>
// CHECK-NEXT:     %4 = tensor.slice %3 {starts = [0, 0], stops = [1, 4], steps = [1, 1]} : (tensor<1x10xf32>) -> tensor<1x4xf32>
// CHECK-NEXT:     %5 = tensor.reshape %4 : tensor<1x4xf32> to tensor<4xf32>
// CHECK-NEXT:     %6 = tensor.neg %5 : tensor<4xf32>
// CHECK-NEXT:     %7 = tensor.slice %3 {starts = [0, 4], stops = [1, 10], steps = [1, 1]} : (tensor<1x10xf32>) -> tensor<1x6xf32>
// CHECK-NEXT:     %8 = tensor.reshape %7 : tensor<1x6xf32> to tensor<2x3xf32>
// CHECK-NEXT:     %9 = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["m"]} : tensor<4xf32>
// CHECK-NEXT:     %10 = shard.all_reduce %6 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
// CHECK-NEXT:     func.return %5, %8, %9, %10 : tensor<4xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// blocks of rows that are gathered, and sums whose blocks of rows are scattered
func.func @rows(%x: tensor<2xf32>, %y: tensor<1x3xf32>, %u: tensor<4x3xf32>, %v: tensor<2xf32>) -> (tensor<4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<1xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [["d"]]>, #shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [[], []]>, #shard.sharding<dims = [[]]>], result_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[], []]>, #shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [["d"]]>]} {
  %0 = shard.all_gather %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<2xf32>) -> tensor<4xf32>
  %1 = shard.all_gather %y {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<1x3xf32>) -> tensor<2x3xf32>
  %2 = shard.reduce_scatter %u {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %3 = shard.reduce_scatter %v {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<2xf32>) -> tensor<1xf32>
  func.return %0, %1, %2, %3 : tensor<4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<1xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @rows(%x: tensor<2xf32>, %y: tensor<1x3xf32>, %u: tensor<4x3xf32>, %v: tensor<2xf32>) -> (tensor<4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<1xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}"d"]]>, #shard.sharding<dims = {{\[\[}}"d"], []]>, #shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}]]>], result_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}"d"], []]>, #shard.sharding<dims = {{\[\[}}"d"]]>]} {
// CHECK-NEXT:     %0 = tensor.reshape %x : tensor<2xf32> to tensor<1x2xf32>
// CHECK-NEXT:     %1 = tensor.concat %0, %y {axis = 1} : (tensor<1x2xf32>, tensor<1x3xf32>) -> tensor<1x5xf32>
// CHECK-NEXT:     %2 = shard.all_gather %1 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<1x5xf32>) -> tensor<2x5xf32>
// CHECK-NEXT:     %3 = tensor.slice %2 {starts = [0, 0], stops = [2, 2], steps = [1, 1]} : (tensor<2x5xf32>) -> tensor<2x2xf32>
// CHECK-NEXT:     %4 = tensor.reshape %3 : tensor<2x2xf32> to tensor<4xf32>
// CHECK-NEXT:     %5 = tensor.slice %2 {starts = [0, 2], stops = [2, 5], steps = [1, 1]} : (tensor<2x5xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:     %6 = tensor.reshape %u : tensor<4x3xf32> to tensor<2x6xf32>
// CHECK-NEXT:     %7 = tensor.reshape %v : tensor<2xf32> to tensor<2x1xf32>
// CHECK-NEXT:     %8 = tensor.concat %6, %7 {axis = 1} : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x7xf32>
// CHECK-NEXT:     %9 = shard.reduce_scatter %8 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<2x7xf32>) -> tensor<1x7xf32>
// CHECK-NEXT:     %10 = tensor.slice %9 {starts = [0, 0], stops = [1, 6], steps = [1, 1]} : (tensor<1x7xf32>) -> tensor<1x6xf32>
// CHECK-NEXT:     %11 = tensor.reshape %10 : tensor<1x6xf32> to tensor<2x3xf32>
// CHECK-NEXT:     %12 = tensor.slice %9 {starts = [0, 6], stops = [1, 7], steps = [1, 1]} : (tensor<1x7xf32>) -> tensor<1x1xf32>
// CHECK-NEXT:     %13 = tensor.reshape %12 : tensor<1x1xf32> to tensor<1xf32>
// CHECK-NEXT:     func.return %4, %5, %11, %13 : tensor<4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<1xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
