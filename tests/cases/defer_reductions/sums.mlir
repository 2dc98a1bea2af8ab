// test: pass defer-reductions

// the gradients of three microbatches are combined once
func.func @microbatches(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]]>], result_shardings = [#shard.sharding<dims = [[]]>]} {
  %a = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
  %b = shard.all_reduce %y {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
  %c = tensor.add %a, %b : tensor<4xf32>
  %d = shard.all_reduce %z {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
  %e = tensor.add %c, %d : tensor<4xf32>
  func.return %e : tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @microbatches(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]]>], result_shardings = [#shard.sharding<dims = {{\[\[}}]]>]} {
// CHECK-NEXT:     %0 = tensor.add %x, %y : tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.add %0, %z : tensor<4xf32>
// CHECK-NEXT:     %e = shard.all_reduce %1 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
// CHECK-NEXT:     func.return %e : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// those that are scattered, too
func.func @scattered(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<2xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]]>], result_shardings = [#shard.sharding<dims = [["d"]]>]} {
  %a = shard.reduce_scatter %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<4xf32>) -> tensor<2xf32>
  %b = shard.reduce_scatter %y {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<4xf32>) -> tensor<2xf32>
  %c = tensor.add %a, %b : tensor<2xf32>
  func.return %c : tensor<2xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @scattered(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<2xf32> attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]]>], result_shardings = [#shard.sharding<dims = {{\[\[}}"d"]]>]} {
// CHECK-NEXT:     %0 = tensor.add %x, %y : tensor<4xf32>
// CHECK-NEXT:     %c = shard.reduce_scatter %0 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<4xf32>) -> tensor<2xf32>
// CHECK-NEXT:     func.return %c : tensor<2xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// not what is used besides, maxima, and sums over other ranks; twice the same is no sum of two
func.func @others(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]]>], result_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]]>]} {
  %a = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
  %b = shard.all_reduce %y {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
  %c = tensor.add %a, %b : tensor<4xf32>
  %d = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], kind = "max"} : tensor<4xf32>
  %e = shard.all_reduce %z {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], kind = "max"} : tensor<4xf32>
  %f = tensor.add %d, %e : tensor<4xf32>
  %g = shard.all_reduce %y {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["m"]} : tensor<4xf32>
  %h = shard.all_reduce %z {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
  %i = tensor.add %g, %h : tensor<4xf32>
  %j = shard.all_reduce %z {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d", "m"]} : tensor<4xf32>
  %k = tensor.add %j, %j : tensor<4xf32>
  func.return %a, %c, %f, %i, %k : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @others(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]]>], result_shardings = [#shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]]>, #shard.sharding<dims = {{\[\[}}]]>]} {
// CHECK-NEXT:     %a = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
// CHECK-NEXT:     %b = shard.all_reduce %y {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
// CHECK-NEXT:     %c = tensor.add %a, %b : tensor<4xf32>
// CHECK-NEXT:     %d = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], kind = "max"} : tensor<4xf32>
// CHECK-NEXT:     %e = shard.all_reduce %z {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], kind = "max"} : tensor<4xf32>
// CHECK-NEXT:     %f = tensor.add %d, %e : tensor<4xf32>
// CHECK-NEXT:     %g = shard.all_reduce %y {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["m"]} : tensor<4xf32>
// CHECK-NEXT:     %h = shard.all_reduce %z {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf32>
// CHECK-NEXT:     %i = tensor.add %g, %h : tensor<4xf32>
// CHECK-NEXT:     %j = shard.all_reduce %z {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d", "m"]} : tensor<4xf32>
// CHECK-NEXT:     %k = tensor.add %j, %j : tensor<4xf32>
// CHECK-NEXT:     func.return %a, %c, %f, %i, %k : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// nor sums of float16, which overflow on a rank where that of all ranks does not
func.func @halves(%x: tensor<4xf16>, %y: tensor<4xf16>) -> (tensor<4xf16>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]]>], result_shardings = [#shard.sharding<dims = [[]]>]} {
  %a = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf16>
  %b = shard.all_reduce %y {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4xf16>
  %c = tensor.add %a, %b : tensor<4xf16>
  func.return %c : tensor<4xf16>
}
// CHECK: shard.all_reduce %x
// CHECK: shard.all_reduce %y
// CHECK: tensor.add
