// test: pass nccl-collectives

// along the last dimension
func.func @last(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>, %z: tensor<3x4xf32>) -> (tensor<2x6xf32>, tensor<2x2xf32>, tensor<6x2xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[], ["d"]]>, #shard.sharding<dims = [[], []]>, #shard.sharding<dims = [["d"], []]>], result_shardings = [#shard.sharding<dims = [[], []]>, #shard.sharding<dims = [[], ["d"]]>, #shard.sharding<dims = [[], ["d"]]>]} {
  %0 = shard.all_gather %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 1} : (tensor<2x3xf32>) -> tensor<2x6xf32>
  %1 = shard.reduce_scatter %y {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 1} : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %2 = shard.all_to_all %z {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], split = 1, concat = 0} : (tensor<3x4xf32>) -> tensor<6x2xf32>
  func.return %0, %1, %2 : tensor<2x6xf32>, tensor<2x2xf32>, tensor<6x2xf32>
}
// CHECK: shard.all_gather {{.*}}axis = 0} : (tensor<1x2x3xf32>) -> tensor<2x2x3xf32>
// CHECK-NEXT: tensor.transpose
// CHECK: tensor.transpose
// CHECK-NEXT: shard.reduce_scatter {{.*}}axis = 0} : (tensor<2x2x2xf32>) -> tensor<1x2x2xf32>
// CHECK: shard.all_to_all {{.*}}split = 0, concat = 0} : tensor<2x3x2xf32>
// CHECK-NEXT: tensor.reshape
// -----
// nothing to do: the first dimension, or the first one that is longer than 1
func.func @first(%x: tensor<1x3xf32>, %y: tensor<4x2xf32>, %z: tensor<1x4xf32>) -> (tensor<1x6xf32>, tensor<2x2xf32>, tensor<2x2xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[], ["d"]]>, #shard.sharding<dims = [[], []]>, #shard.sharding<dims = [["d"], []]>], result_shardings = [#shard.sharding<dims = [[], []]>, #shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [[], ["d"]]>]} {
  %0 = shard.all_gather %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 1} : (tensor<1x3xf32>) -> tensor<1x6xf32>
  %1 = shard.reduce_scatter %y {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} : (tensor<4x2xf32>) -> tensor<2x2xf32>
  %2 = shard.all_to_all %z {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], split = 1, concat = 0} : (tensor<1x4xf32>) -> tensor<2x2xf32>
  func.return %0, %1, %2 : tensor<1x6xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
// CHECK: func.func
// CHECK-NOT: tensor.
// -----
// three ranks, from a dimension in the middle to another one
func.func @middle(%x: tensor<2x6x5xf32>) -> tensor<2x2x15xf32> attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [3]>, arg_shardings = [#shard.sharding<dims = [[], [], ["d"]]>], result_shardings = [#shard.sharding<dims = [[], ["d"], []]>]} {
  %0 = shard.all_to_all %x {mesh = #shard.mesh<axes = ["d"], sizes = [3]>, axes = ["d"], split = 1, concat = 2} : (tensor<2x6x5xf32>) -> tensor<2x2x15xf32>
  func.return %0 : tensor<2x2x15xf32>
}
// CHECK: shard.all_to_all {{.*}}split = 0, concat = 0} : tensor<3x2x2x5xf32>
// CHECK-NEXT: tensor.transpose {{.*}}perm = [1, 2, 0, 3]
// -----
// extrema of floats, and integers of 16 bits: gathered, and combined in a segment; sums of floats stay
func.func @combined(%x: tensor<2xf32>, %y: tensor<3x4xi16>) -> (tensor<2xf32>, tensor<3x2xi16>, tensor<2xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[], []]>], result_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[], ["d"]]>, #shard.sharding<dims = [[]]>]} {
  %0 = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], kind = "max"} : tensor<2xf32>
  %1 = shard.reduce_scatter %y {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 1} : (tensor<3x4xi16>) -> tensor<3x2xi16>
  %2 = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : tensor<2xf32>
  func.return %0, %1, %2 : tensor<2xf32>, tensor<3x2xi16>, tensor<2xf32>
}
// CHECK: shard.all_gather {{.*}}axis = 0} : (tensor<1x2xf32>) -> tensor<2x2xf32>
// CHECK-NEXT: tensor.reduce_max {{.*}}axes = [0]}
// CHECK: shard.all_to_all {{.*}}split = 0, concat = 0} : tensor<2x3x2xi16>
// CHECK-NEXT: tensor.reduce_sum {{.*}}axes = [0]}
// CHECK-NEXT: shard.all_reduce
