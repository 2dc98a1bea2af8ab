// test: roundtrip

func.func @f(%x: tensor<4x6xf32>) -> tensor<i64> {
  %0 = shard.shard %x {dims = [["d"], ["m"]]} : tensor<4x6xf32>
  %1 = shard.all_reduce %0 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"]} : tensor<4x6xf32>
  %2 = shard.all_reduce %1 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d", "m"], kind = "max"} : tensor<4x6xf32>
  %3 = shard.reduce_scatter %2 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["m"], axis = 1} : (tensor<4x6xf32>) -> tensor<4x2xf32>
  %4 = shard.all_gather %3 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["m"], axis = 0} : (tensor<4x2xf32>) -> tensor<12x2xf32>
  %5 = shard.all_to_all %4 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], split = 0, concat = 1} : (tensor<12x2xf32>) -> tensor<6x4xf32>
  %6 = shard.all_slice %5 {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<6x4xf32>) -> tensor<3x4xf32>
  %7 = shard.process_index {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["m"]} : () -> tensor<i64>
  func.return %7 : tensor<i64>
}
// -----
func.func @pipeline(%x: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[], []], stage = 1>]} {
  %0 = shard.microbatch %x {number = 1, schedule = "gpipe"} : tensor<4x6xf32>
  %1 = shard.stage %0 {stage = 1} : tensor<4x6xf32>
  %2 = shard.stage_like %1, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  shard.send %2 {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 0, destination = 1} : (tensor<4x6xf32>) -> ()
  %3 = shard.recv {mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"], tag = 1, source = 0} : () -> tensor<4x6xf32>
  func.return %3 : tensor<4x6xf32>
}
// -----
func.func @requests(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<8x6xf32>, tensor<2x6xf32>, tensor<8x3xf32>) {
  %0 = shard.all_reduce_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], kind = "max"} : (tensor<4x6xf32>) -> !shard.request<tensor<4x6xf32>>
  %1 = shard.all_gather_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} : (tensor<4x6xf32>) -> !shard.request<tensor<8x6xf32>>
  %2 = shard.reduce_scatter_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} : (tensor<4x6xf32>) -> !shard.request<tensor<2x6xf32>>
  %3 = shard.all_to_all_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], split = 1, concat = 0} : (tensor<4x6xf32>) -> !shard.request<tensor<8x3xf32>>
  %4 = shard.wait %0 : (!shard.request<tensor<4x6xf32>>) -> tensor<4x6xf32>
  %5 = shard.wait %1 : (!shard.request<tensor<8x6xf32>>) -> tensor<8x6xf32>
  %6 = shard.wait %2 : (!shard.request<tensor<2x6xf32>>) -> tensor<2x6xf32>
  %7 = shard.wait %3 : (!shard.request<tensor<8x3xf32>>) -> tensor<8x3xf32>
  func.return %4, %5, %6, %7 : tensor<4x6xf32>, tensor<8x6xf32>, tensor<2x6xf32>, tensor<8x3xf32>
}
// -----
func.func @ring(%x: tensor<4x6xf32>, %y: tensor<2xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = shard.after %x, %y : (tensor<4x6xf32>, tensor<2xf32>) -> tensor<4x6xf32>
  %1 = shard.roll %0 {axis = 1, offset = -1} : tensor<4x6xf32>
  %2 = shard.shift %1 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], offset = 1} : tensor<4x6xf32>
  %3 = shard.shift_start %2 {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], offset = 1} : (tensor<4x6xf32>) -> !shard.request<tensor<4x6xf32>>
  %4 = shard.wait %3 : (!shard.request<tensor<4x6xf32>>) -> tensor<4x6xf32>
  func.return %2, %4 : tensor<4x6xf32>, tensor<4x6xf32>
}
