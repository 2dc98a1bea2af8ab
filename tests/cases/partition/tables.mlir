// test: pass propagate-shardings,partition

// rows of a table that is divided: each rank picks those of its block, and adds zeros for the others
func.func @rows(%table: tensor<4x3xf32>) -> tensor<5x3xf32> attributes {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [["d"], []]>]} {
  %i = tensor.constant dense<[3, 0, 2, 1, 3]> : tensor<5xi32>
  %0 = tensor.take %table, %i {axis = 0} : (tensor<4x3xf32>, tensor<5xi32>) -> tensor<5x3xf32>
  func.return %0 : tensor<5x3xf32>
}
// CHECK: tensor.take {{.*}} : (tensor<2x3xf32>, tensor<5xi64>) -> tensor<5x3xf32>
// CHECK-NOT: all_gather
// CHECK: shard.all_reduce {{.*}} : tensor<5x3xf32>
// -----
// more rows are picked than the table has: it is gathered
func.func @many(%table: tensor<4x3xf32>, %x: tensor<50xf32>) -> tensor<50x3xf32> attributes {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [["d"]]>]} {
  %zero = tensor.full 0.0 : tensor<50xf32>
  %up = tensor.compare gt, %x, %zero : (tensor<50xf32>, tensor<50xf32>) -> tensor<50xi1>
  %i = tensor.cast %up : tensor<50xi1> to tensor<50xi32>
  %0 = tensor.take %table, %i {axis = 0} : (tensor<4x3xf32>, tensor<50xi32>) -> tensor<50x3xf32>
  func.return %0 : tensor<50x3xf32>
}
// CHECK: shard.all_gather {{.*}} : (tensor<2x3xf32>) -> tensor<4x3xf32>
// CHECK: tensor.take {{.*}} : (tensor<4x3xf32>, tensor<25xi32>) -> tensor<25x3xf32>
// -----
// one element of each row, and what that adds to zeros: its derivative
func.func @scores(%x: tensor<3x4xf32>, %u: tensor<3x1xf32>) -> (tensor<3x1xf32>, tensor<3x4xf32>) attributes {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[], ["d"]]>, #shard.sharding<dims = [[], []]>], result_shardings = [#shard.sharding<dims = [[], []]>, #shard.sharding<dims = [[], ["d"]]>]} {
  %i = tensor.constant dense<[[3], [0], [2]]> : tensor<3x1xi64>
  %0 = tensor.take_along %x, %i {axis = 1} : (tensor<3x4xf32>, tensor<3x1xi64>) -> tensor<3x1xf32>
  %1 = tensor.full 0.0 : tensor<3x4xf32>
  %2 = tensor.scatter_along %1, %i, %u {axis = 1, kind = "add"} : (tensor<3x4xf32>, tensor<3x1xi64>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %0, %2 : tensor<3x1xf32>, tensor<3x4xf32>
}
// CHECK: tensor.take_along {{.*}} : (tensor<3x2xf32>, tensor<3x1xi64>) -> tensor<3x1xf32>
// CHECK: shard.all_reduce {{.*}} : tensor<3x1xf32>
// CHECK: tensor.scatter_along {{.*}} : (tensor<3x2xf32>, tensor<3x1xi64>, tensor<3x1xf32>) -> tensor<3x2xf32>
// CHECK-NOT: all_gather
// -----
// the derivative of a table
func.func @gradient(%u: tensor<5x3xf32>) -> tensor<4x3xf32> attributes {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[], []]>], result_shardings = [#shard.sharding<dims = [["d"], []]>]} {
  %i = tensor.constant dense<[3, 0, 2, 1, 3]> : tensor<5xi32>
  %0 = tensor.full 0.0 : tensor<4x3xf32>
  %1 = tensor.scatter %0, %i, %u {axis = 0, kind = "add"} : (tensor<4x3xf32>, tensor<5xi32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  func.return %1 : tensor<4x3xf32>
}
// CHECK: tensor.scatter {{.*}} : (tensor<2x3xf32>, tensor<5xi64>, tensor<5x3xf32>) -> tensor<2x3xf32>
// CHECK-NOT: all_gather
