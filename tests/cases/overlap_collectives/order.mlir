// test: pass overlap-collectives{flops=1000000,call=1000}

// the gradient of the second product is on its way while the first is differentiated, though it came later
func.func @backward(%x: tensor<8x16xf32>, %h: tensor<8x16xf32>, %w: tensor<16x16xf32>, %g: tensor<8x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [[], []]>, #shard.sharding<dims = [["d"], []]>], result_shardings = [#shard.sharding<dims = [[], []]>, #shard.sharding<dims = [[], []]>]} {
  %0 = tensor.dot_general %h, %g {batch = [], contract = [[0, 0]]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  %1 = tensor.dot_general %g, %w {batch = [], contract = [[1, 1]]} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %2 = tensor.dot_general %x, %1 {batch = [], contract = [[0, 0]]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  %3 = shard.all_reduce %0 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : tensor<16x16xf32>
  %4 = shard.all_reduce %2 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : tensor<16x16xf32>
  func.return %3, %4 : tensor<16x16xf32>, tensor<16x16xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @backward(%x: tensor<8x16xf32>, %h: tensor<8x16xf32>, %w: tensor<16x16xf32>, %g: tensor<8x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}"d"], []]>, #shard.sharding<dims = {{\[\[}}"d"], []]>, #shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}"d"], []]>], result_shardings = [#shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}], []]>]} {
// CHECK-NEXT:     %0 = tensor.dot_general %h, %g {batch = [], contract = {{\[\[}}0, 0]]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
// CHECK-NEXT:     %1 = shard.all_reduce_start %0 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], kind = "add"} : (tensor<16x16xf32>) -> !shard.request<tensor<16x16xf32>>
// CHECK-NEXT:     %2 = tensor.dot_general %g, %w {batch = [], contract = {{\[\[}}1, 1]]} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
// CHECK-NEXT:     %3 = tensor.dot_general %x, %2 {batch = [], contract = {{\[\[}}0, 0]]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
// CHECK-NEXT:     %4 = shard.all_reduce %3 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : tensor<16x16xf32>
// CHECK-NEXT:     %5 = shard.wait %1 : (!shard.request<tensor<16x16xf32>>) -> tensor<16x16xf32>
// CHECK-NEXT:     func.return %5, %4 : tensor<16x16xf32>, tensor<16x16xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// what does not need the sum is computed while it is awaited
func.func @filled(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[], []]>, #shard.sharding<dims = [[], []]>], result_shardings = [#shard.sharding<dims = [[], []]>, #shard.sharding<dims = [[], []]>]} {
  %0 = tensor.dot_general %y, %y {batch = [], contract = [[1, 0]]} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : tensor<16x16xf32>
  %2 = tensor.add %1, %x : tensor<16x16xf32>
  func.return %2, %0 : tensor<16x16xf32>, tensor<16x16xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @filled(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}], []]>], result_shardings = [#shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}], []]>]} {
// CHECK-NEXT:     %0 = shard.all_reduce_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], kind = "add"} : (tensor<16x16xf32>) -> !shard.request<tensor<16x16xf32>>
// CHECK-NEXT:     %1 = tensor.dot_general %y, %y {batch = [], contract = {{\[\[}}1, 0]]} : tensor<16x16xf32>
// CHECK-NEXT:     %2 = shard.wait %0 : (!shard.request<tensor<16x16xf32>>) -> tensor<16x16xf32>
// CHECK-NEXT:     %3 = tensor.add %2, %x : tensor<16x16xf32>
// CHECK-NEXT:     func.return %3, %1 : tensor<16x16xf32>, tensor<16x16xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// nothing can be computed in the meantime: it stays one operation
func.func @chain(%x: tensor<4xf32>) -> tensor<4xf32> attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[]]>], result_shardings = [#shard.sharding<dims = [[]]>]} {
  %0 = tensor.exp %x : tensor<4xf32>
  %1 = shard.all_reduce %0 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : tensor<4xf32>
  %2 = tensor.neg %1 : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @chain(%x: tensor<4xf32>) -> tensor<4xf32> attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}]]>], result_shardings = [#shard.sharding<dims = {{\[\[}}]]>]} {
// CHECK-NEXT:     %0 = tensor.exp %x : tensor<4xf32>
// CHECK-NEXT:     %1 = shard.all_reduce %0 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : tensor<4xf32>
// CHECK-NEXT:     %2 = tensor.neg %1 : tensor<4xf32>
// CHECK-NEXT:     func.return %2 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
