// test: run interp
// test: roundtrip

// run: @windows([1, 2, 3, 4, 5]) == [[1, 3], [3, 5]]
func.func @windows(%x: tensor<Nxi32>) -> tensor<(((N - 3) floordiv 2) + 1)x2xi32> {
  %0 = tensor.windows %x {axis = 0, size = 2, stride = 2, dilation = 2} : (tensor<Nxi32>) -> tensor<(((N - 3) floordiv 2) + 1)x2xi32>
  func.return %0 : tensor<(((N - 3) floordiv 2) + 1)x2xi32>
}

// the last element is in no window
// run: @back([[1, 2], [3, 4]]) == ([[1, 0], [0, 2], [3, 0], [0, 4], [0, 0]], [[1, 2], [3, 4]], [1, 2, 3, 4, 0])
func.func @back(%x: tensor<2x2xi32>) -> (tensor<5x2xi32>, tensor<2x2xi32>, tensor<5xi32>) {
  %0 = tensor.place %x {axis = 0, size = 5, stride = 2} : (tensor<2x2xi32>) -> tensor<5x2xi32>
  %1 = tensor.pick %0 {axis = 0, stride = 2} : (tensor<5x2xi32>) -> tensor<2x2xi32>
  %2 = tensor.reduce_sum %0 {axes = [1]} : (tensor<5x2xi32>) -> tensor<5xi32>
  func.return %0, %1, %2 : tensor<5x2xi32>, tensor<2x2xi32>, tensor<5xi32>
}

// run: @convolution([[[1.0, 2.0, 4.0]]], [[[1.0, 10.0]]]) == ([[[10.0, 21.0, 42.0, 4.0]]], [[[10.0, 1.0, 20.0, 2.0, 40.0, 4.0]]])
func.func @convolution(%x: tensor<1x1x3xf32>, %w: tensor<1x1x2xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x6xf32>) {
  %0 = tensor.convolution %x, %w {low = [1], high = [1]} : (tensor<1x1x3xf32>, tensor<1x1x2xf32>) -> tensor<1x1x4xf32>
  %1 = tensor.convolution %x, %w {low = [1], high = [1], spread = [2]} : (tensor<1x1x3xf32>, tensor<1x1x2xf32>) -> tensor<1x1x6xf32>
  func.return %0, %1 : tensor<1x1x4xf32>, tensor<1x1x6xf32>
}

// run: @pool([1.0, 3.0, nan, 2.0, -5.0, -7.0]) == [1.0, nan, 2.0, -7.0]
func.func @pool(%x: tensor<6xf32>) -> tensor<4xf32> {
  %0 = tensor.max_pool %x {size = [2], stride = [2], low = [1], high = [1]} : (tensor<6xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// run: @running([3, 1, 4, 1]) == ([3, 4, 8, 9], [12, 4, 4, 1], [3, 3, 4, 4], [1, 1, 1, 1])
func.func @running(%x: tensor<4xi8>) -> (tensor<4xi8>, tensor<4xi8>, tensor<4xi8>, tensor<4xi8>) {
  %0 = tensor.cumulative %x {kind = "add", axis = 0} : tensor<4xi8>
  %1 = tensor.cumulative %x {kind = "mul", axis = 0, reverse = true} : tensor<4xi8>
  %2 = tensor.cumulative %x {kind = "max", axis = 0} : tensor<4xi8>
  %3 = tensor.cumulative %x {kind = "min", axis = 0, reverse = true} : tensor<4xi8>
  func.return %0, %1, %2, %3 : tensor<4xi8>, tensor<4xi8>, tensor<4xi8>, tensor<4xi8>
}

// the sums of 16-bit floats are rounded, not the parts they are made of
// run: @narrow([2048.0, 1.0, 1.0, 1.0]) == [2048.0, 2048.0, 2050.0, 2052.0]
func.func @narrow(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = tensor.cumulative %x {kind = "add", axis = 0, order = "chain"} : tensor<4xf16>
  func.return %0 : tensor<4xf16>
}

// of several updates of one place the last counts
// run: @scatter([0, 0, 0], [2, 0, 2], [5, 6, 7]) == ([6, 0, 7], [6, 0, 12], [7, 0, 7])
func.func @scatter(%x: tensor<3xi32>, %i: tensor<3xi64>, %u: tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) {
  %0 = tensor.scatter %x, %i, %u {axis = 0, kind = "set"} : (tensor<3xi32>, tensor<3xi64>, tensor<3xi32>) -> tensor<3xi32>
  %1 = tensor.scatter %x, %i, %u {axis = 0} : (tensor<3xi32>, tensor<3xi64>, tensor<3xi32>) -> tensor<3xi32>
  %2 = tensor.scatter_along %0, %i, %u {axis = 0, kind = "max"} : (tensor<3xi32>, tensor<3xi64>, tensor<3xi32>) -> tensor<3xi32>
  %3 = tensor.full 0 : tensor<i64>
  %4 = tensor.full 7 : tensor<i32>
  %5 = tensor.scatter %2, %3, %4 {axis = 0, kind = "set"} : (tensor<3xi32>, tensor<i64>, tensor<i32>) -> tensor<3xi32>
  func.return %0, %1, %5 : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>
}

// a piece that would stick out is moved
// run: @piece([1, 2, 3, 4], [8, 9], 1) == ([2, 3], [1, 8, 9, 4])
// run: @piece([1, 2, 3, 4], [8, 9], 7) == ([3, 4], [1, 2, 8, 9])
// run: @piece([1, 2, 3, 4], [8, 9], -7) == ([1, 2], [8, 9, 3, 4])
func.func @piece(%x: tensor<4xi32>, %u: tensor<2xi32>, %i: tensor<i8>) -> (tensor<2xi32>, tensor<4xi32>) {
  %0 = tensor.dynamic_slice %x, %i {shape = [2]} : (tensor<4xi32>, tensor<i8>) -> tensor<2xi32>
  %1 = tensor.dynamic_update_slice %x, %u, %i : (tensor<4xi32>, tensor<2xi32>, tensor<i8>) -> tensor<4xi32>
  func.return %0, %1 : tensor<2xi32>, tensor<4xi32>
}

// run: @one_element(2.5) == 2.5
func.func @one_element(%x: tensor<f32>) -> tensor<f32> {
  %0 = tensor.max_pool %x {size = []} : tensor<f32>
  func.return %0 : tensor<f32>
}
