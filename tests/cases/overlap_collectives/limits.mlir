// test: pass overlap-collectives{flops=1000000,call=1000,ahead=2000}

// of three gathered weights one is on its way at a time, as more would not fit; a segment is between them
func.func @gathered(%x: tensor<16x16xf32>, %u: tensor<8x16xf32>, %v: tensor<8x16xf32>, %w: tensor<8x16xf32>) -> tensor<16x16xf32> attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[], []]>, #shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [["d"], []]>], result_shardings = [#shard.sharding<dims = [[], []]>]} {
  %0 = shard.all_gather %u {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} : (tensor<8x16xf32>) -> tensor<16x16xf32>
  %1 = shard.all_gather %v {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} : (tensor<8x16xf32>) -> tensor<16x16xf32>
  %2 = shard.all_gather %w {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} : (tensor<8x16xf32>) -> tensor<16x16xf32>
  %3 = tensor.dot_general %x, %0 {batch = [], contract = [[1, 0]]} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %4 = tensor.dot_general %3, %1 {batch = [], contract = [[1, 0]]} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %5 = tensor.dot_general %4, %2 {batch = [], contract = [[1, 0]]} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  func.return %5 : tensor<16x16xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @gathered(%x: tensor<16x16xf32>, %u: tensor<8x16xf32>, %v: tensor<8x16xf32>, %w: tensor<8x16xf32>) -> tensor<16x16xf32> attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}"d"], []]>, #shard.sharding<dims = {{\[\[}}"d"], []]>, #shard.sharding<dims = {{\[\[}}"d"], []]>], result_shardings = [#shard.sharding<dims = {{\[\[}}], []]>]} {
// CHECK-NEXT:     %0 = shard.all_gather %u {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} : (tensor<8x16xf32>) -> tensor<16x16xf32>
// CHECK-NEXT:     %1 = shard.all_gather_start %v {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} : (tensor<8x16xf32>) -> !shard.request<tensor<16x16xf32>>
// CHECK-NEXT:     %2 = tensor.dot_general %x, %0 {batch = [], contract = {{\[\[}}1, 0]]} : tensor<16x16xf32>
// CHECK-NEXT:     %3 = shard.all_gather_start %w {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} : (tensor<8x16xf32>) -> !shard.request<tensor<16x16xf32>>
// CHECK-NEXT:     %4 = shard.wait %1 : (!shard.request<tensor<16x16xf32>>) -> tensor<16x16xf32>
// CHECK-NEXT:     %5 = tensor.dot_general %2, %4 {batch = [], contract = {{\[\[}}1, 0]]} : tensor<16x16xf32>
// CHECK-NEXT:     %6 = shard.wait %3 : (!shard.request<tensor<16x16xf32>>) -> tensor<16x16xf32>
// CHECK-NEXT:     %7 = tensor.dot_general %5, %6 {batch = [], contract = {{\[\[}}1, 0]]} : tensor<16x16xf32>
// CHECK-NEXT:     func.return %7 : tensor<16x16xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// an exchange and a scattered sum are on their way at once
func.func @kinds(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<32x8xf32>, tensor<16x16xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[], []]>, #shard.sharding<dims = [[], []]>], result_shardings = [#shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [[], ["d"]]>, #shard.sharding<dims = [[], []]>]} {
  %0 = shard.reduce_scatter %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} : (tensor<16x16xf32>) -> tensor<8x16xf32>
  %1 = shard.all_to_all %y {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], split = 1, concat = 0} : (tensor<16x16xf32>) -> tensor<32x8xf32>
  %2 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  func.return %0, %1, %2 : tensor<8x16xf32>, tensor<32x8xf32>, tensor<16x16xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @kinds(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<32x8xf32>, tensor<16x16xf32>) attributes {partitioned = true, mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}], []]>, #shard.sharding<dims = {{\[\[}}], []]>], result_shardings = [#shard.sharding<dims = {{\[\[}}"d"], []]>, #shard.sharding<dims = {{\[\[}}], ["d"]]>, #shard.sharding<dims = {{\[\[}}], []]>]} {
// CHECK-NEXT:     %0 = shard.reduce_scatter_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0, kind = "add"} : (tensor<16x16xf32>) -> !shard.request<tensor<8x16xf32>>
// CHECK-NEXT:     %1 = shard.all_to_all_start %y {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], split = 1, concat = 0} : (tensor<16x16xf32>) -> !shard.request<tensor<32x8xf32>>
// CHECK-NEXT:     %2 = tensor.dot_general %x, %y {batch = [], contract = {{\[\[}}1, 0]]} : tensor<16x16xf32>
// CHECK-NEXT:     %3 = shard.wait %0 : (!shard.request<tensor<8x16xf32>>) -> tensor<8x16xf32>
// CHECK-NEXT:     %4 = shard.wait %1 : (!shard.request<tensor<32x8xf32>>) -> tensor<32x8xf32>
// CHECK-NEXT:     func.return %3, %4, %2 : tensor<8x16xf32>, tensor<32x8xf32>, tensor<16x16xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
