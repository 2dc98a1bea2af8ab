// test: verify

func.func @never(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.all_reduce_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : (tensor<4xf32>) -> !shard.request<tensor<4xf32>> // error: its request is never waited for
  func.return %x : tensor<4xf32>
}
// -----
func.func @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = shard.all_reduce_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : (tensor<4xf32>) -> !shard.request<tensor<4xf32>> // error: its request is not waited for once
  %1 = shard.wait %0 : (!shard.request<tensor<4xf32>>) -> tensor<4xf32>
  %2 = shard.wait %0 : (!shard.request<tensor<4xf32>>) -> tensor<4xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<4xf32>
}
