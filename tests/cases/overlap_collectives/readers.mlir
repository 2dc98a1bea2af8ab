// test: pass overlap-collectives{flops=1000000,call=1000,memory=1000000}

// the sum of each row is computed where the rows are, though no collective needs it: they would be written for it
func.func @rows(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>) -> (tensor<16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[], []]>, #shard.sharding<dims = [[], []]>], result_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[], []]>, #shard.sharding<dims = [[], []]>]} {
  %0 = tensor.exp %x : tensor<16x16xf32>
  %1 = tensor.dot_general %0, %y {batch = [], contract = [[1, 0]]} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = shard.all_reduce %1 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : tensor<16x16xf32>
  %3 = tensor.dot_general %y, %y {batch = [], contract = [[1, 0]]} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %4 = tensor.reduce_sum %0 {axes = [1]} : (tensor<16x16xf32>) -> tensor<16xf32>
  func.return %4, %2, %3 : tensor<16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @rows(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>) -> (tensor<16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}], []]>], result_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}], []]>]} {
// CHECK-NEXT:     %0 = tensor.exp %x : tensor<16x16xf32>
// CHECK-NEXT:     %1 = tensor.dot_general %0, %y {batch = [], contract = {{\[\[}}1, 0]]} : tensor<16x16xf32>
// CHECK-NEXT:     %2 = tensor.reduce_sum %0 {axes = [1]} : (tensor<16x16xf32>) -> tensor<16xf32>
// CHECK-NEXT:     %3 = shard.all_reduce_start %1 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], kind = "add"} : (tensor<16x16xf32>) -> !shard.request<tensor<16x16xf32>>
// CHECK-NEXT:     %4 = tensor.dot_general %y, %y {batch = [], contract = {{\[\[}}1, 0]]} : tensor<16x16xf32>
// CHECK-NEXT:     %5 = shard.wait %3 : (!shard.request<tensor<16x16xf32>>) -> tensor<16x16xf32>
// CHECK-NEXT:     func.return %2, %5, %4 : tensor<16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
