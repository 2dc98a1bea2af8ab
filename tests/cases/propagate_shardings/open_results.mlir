// test: pass propagate-shardings,partition

// a gradient that may be divided further is scattered to where the state of an optimiser lies
func.func @gradient(%x: tensor<4x6xf32>, %m: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) attributes {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [["d"]]>], result_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [["d"]]>], open_results = [0]} {
  %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<4x6xf32>) -> tensor<6xf32>
  %1 = tensor.add %m, %0 : tensor<6xf32>
  func.return %0, %1 : tensor<6xf32>, tensor<6xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @gradient(%x: tensor<2x6xf32>, %m: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) attributes {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}"d"], []]>, #shard.sharding<dims = {{\[\[}}"d"]]>], result_shardings = [#shard.sharding<dims = {{\[\[}}"d"]]>, #shard.sharding<dims = {{\[\[}}"d"]]>], partitioned = true} {
// CHECK-NEXT:     %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<2x6xf32>) -> tensor<6xf32>
// CHECK-NEXT:     %1 = shard.reduce_scatter %0 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} : (tensor<6xf32>) -> tensor<3xf32>
// CHECK-NEXT:     %2 = tensor.add %m, %1 : tensor<3xf32>
// CHECK-NEXT:     func.return %1, %2 : tensor<3xf32>, tensor<3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
