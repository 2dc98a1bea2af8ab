// test: pass propagate-shardings
// tolerance: bits

// a batch that is divided: the products of its rows are, and the weights stay whole; the sum over rows is partial
func.func @batch(%x: tensor<4x6xf32>, %w: tensor<6x9xf32>) -> tensor<9xf32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [[], []]>]} {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]} : (tensor<4x6xf32>, tensor<6x9xf32>) -> tensor<4x9xf32>
  %1 = tensor.tanh %0 : tensor<4x9xf32>
  %2 = tensor.reduce_sum %1 {axes = [0]} : (tensor<4x9xf32>) -> tensor<9xf32>
  func.return %2 : tensor<9xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @batch(%x: tensor<4x6xf32>, %w: tensor<6x9xf32>) -> tensor<9xf32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}"d"], []]>, #shard.sharding<dims = {{\[\[}}], []]>]} {
// CHECK-NEXT:     %0 = tensor.dot_general %x, %w {batch = [], contract = {{\[\[}}1, 0]], factors = {{\[\[}}"d"], [], []], shardings = [#shard.sharding<dims = {{\[\[}}"d"], []]>]} : (tensor<4x6xf32>, tensor<6x9xf32>) -> tensor<4x9xf32>
// CHECK-NEXT:     %1 = tensor.tanh %0 {factors = {{\[\[}}"d"], []], shardings = [#shard.sharding<dims = {{\[\[}}"d"], []]>]} : tensor<4x9xf32>
// CHECK-NEXT:     %2 = tensor.reduce_sum %1 {axes = [0], factors = {{\[\[}}"d"], []], shardings = [#shard.sharding<dims = {{\[\[}}]]>]} : (tensor<4x9xf32>) -> tensor<9xf32>
// CHECK-NEXT:     func.return %2 : tensor<9xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// weights that are divided along their columns: so are the results, next to the batch
func.func @columns(%x: tensor<4x6xf32>, %w: tensor<6x9xf32>) -> tensor<4x9xf32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [[], ["m"]]>]} {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]} : (tensor<4x6xf32>, tensor<6x9xf32>) -> tensor<4x9xf32>
  func.return %0 : tensor<4x9xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @columns(%x: tensor<4x6xf32>, %w: tensor<6x9xf32>) -> tensor<4x9xf32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}"d"], []]>, #shard.sharding<dims = {{\[\[}}], ["m"]]>]} {
// CHECK-NEXT:     %0 = tensor.dot_general %x, %w {batch = [], contract = {{\[\[}}1, 0]], factors = {{\[\[}}"d"], [], ["m"]], shardings = [#shard.sharding<dims = {{\[\[}}"d"], ["m"]]>]} : (tensor<4x6xf32>, tensor<6x9xf32>) -> tensor<4x9xf32>
// CHECK-NEXT:     func.return %0 : tensor<4x9xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// what is specified further down propagates to operands; a constant has as many rows as they
func.func @backwards(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [[], []]>]} {
  %0 = tensor.full 2.0 : tensor<4x6xf32>
  %1 = tensor.mul %x, %0 : tensor<4x6xf32>
  %2 = shard.shard %1 {dims = [["d"], ["m"]]} : tensor<4x6xf32>
  func.return %2 : tensor<4x6xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @backwards(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}], []]>]} {
// CHECK-NEXT:     %0 = tensor.full {factors = {{\[\[}}"d"], ["m"]], shardings = [#shard.sharding<dims = {{\[\[}}"d"], ["m"]]>]} 2.0 : tensor<4x6xf32>
// CHECK-NEXT:     %1 = tensor.mul %x, %0 {factors = {{\[\[}}"d"], ["m"]], shardings = [#shard.sharding<dims = {{\[\[}}"d"], ["m"]]>]} : tensor<4x6xf32>
// CHECK-NEXT:     %2 = shard.shard %1 {dims = {{\[\[}}"d"], ["m"]], shardings = [#shard.sharding<dims = {{\[\[}}"d"], ["m"]]>]} : tensor<4x6xf32>
// CHECK-NEXT:     func.return %2 : tensor<4x6xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// an axis that divides two factors goes to the one that moves fewer bytes: here the large operand stays
func.func @conflict(%x: tensor<2x6xf32>, %w: tensor<6x90xf32>) -> tensor<2x90xf32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = [["d"], []]>, #shard.sharding<dims = [["d"], []]>]} {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]} : (tensor<2x6xf32>, tensor<6x90xf32>) -> tensor<2x90xf32>
  func.return %0 : tensor<2x90xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @conflict(%x: tensor<2x6xf32>, %w: tensor<6x90xf32>) -> tensor<2x90xf32> attributes {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, arg_shardings = [#shard.sharding<dims = {{\[\[}}"d"], []]>, #shard.sharding<dims = {{\[\[}}"d"], []]>]} {
// CHECK-NEXT:     %0 = tensor.dot_general %x, %w {batch = [], contract = {{\[\[}}1, 0]], factors = {{\[\[}}], ["d"], []], shardings = [#shard.sharding<dims = {{\[\[}}], []]>]} : (tensor<2x6xf32>, tensor<6x90xf32>) -> tensor<2x90xf32>
// CHECK-NEXT:     func.return %0 : tensor<2x90xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
