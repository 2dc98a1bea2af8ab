// test: pass fuse bufferize tensor_to_loop coalesce_dimensions vectorize loop_to_scf
// tolerance: bits
// sizes: B=23

// a sum in runs: a run of 2 starts from zero, and so does a run of 2 runs, and so on; the last, short vector is masked
func.func @fixed(%x: tensor<3x27xf32>) -> tensor<3xf32> {
  %0 = tensor.reduce_sum %x {axes = [1], order = "lanes<4, 2>"} : (tensor<3x27xf32>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
// CHECK: scf.for %{{\w+}} = %{{\w+}} to %{{\w+}} step %{{\w+}} iter_args(%{{\w+}} = [[Z:%\w+]]) -> (vector<4xf32>)
// CHECK: scf.for %{{\w+}} = %{{\w+}} to %{{\w+}} step %{{\w+}} iter_args(%{{\w+}} = [[Z]]) -> (vector<4xf32>)
// CHECK: vector.create_mask
// -----
// rows of any length: loops for all levels
func.func @symbolic(%x: tensor<2xBxf32>) -> tensor<2xf32> {
  %0 = tensor.reduce_sum %x {axes = [1], order = "lanes<4, 2>"} : (tensor<2xBxf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
// -----
// across memory, with a maximum on the way
func.func @across(%x: tensor<Bx9xf32>, %y: tensor<40x9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) {
  %0 = tensor.reduce_sum %x {axes = [0], order = "lanes<1, 2>"} : (tensor<Bx9xf32>) -> tensor<9xf32>
  %1 = tensor.reduce_max %x {axes = [0]} : (tensor<Bx9xf32>) -> tensor<9xf32>
  %2 = tensor.reduce_sum %y {axes = [0], order = "lanes<1, 3>"} : (tensor<40x9xf32>) -> tensor<9xf32>
  func.return %0, %1, %2 : tensor<9xf32>, tensor<9xf32>, tensor<9xf32>
}
