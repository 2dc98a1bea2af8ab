// test: parse-error

func.func @axis(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["z"]} : tensor<4xf32> // error: the mesh has no axis 'z'
  func.return %0 : tensor<4xf32>
}
// -----
func.func @uneven(%x: tensor<5xf32>) -> tensor<2xf32> {
  %0 = shard.reduce_scatter %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d"], axis = 0} : (tensor<5xf32>) -> tensor<2xf32> // error: dimension 0, of size 5, is no multiple of 2
  func.return %0 : tensor<2xf32>
}
// -----
func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d", "m"], sizes = [2, 3]>, axes = ["d", "d"]} : tensor<4xf32> // error: axes ['d', 'd'] are not distinct
  func.return %0 : tensor<4xf32>
}
// -----
func.func @dimensions(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.shard %x {dims = [["d"], []]} : tensor<4xf32> // error: 2 dimensions are specified, and x has 1
  func.return %0 : tensor<4xf32>
}
// -----
func.func @stage(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.stage %x {stage = -1} : tensor<4xf32> // error: there is no stage -1
  func.return %0 : tensor<4xf32>
}
// -----
func.func @microbatch(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.microbatch %x {number = -1} : tensor<4xf32> // error: there is no microbatch -1
  func.return %0 : tensor<4xf32>
}
// -----
func.func @no_request(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.wait %x : (tensor<4xf32>) -> tensor<4xf32> // error: tensor<4xf32> is no request
  func.return %0 : tensor<4xf32>
}
// -----
func.func @no_tensor(%q: !shard.request<f32>) { // error: a request is for a tensor, not for f32
  func.return
}
