// test: verify

func.func @f(%x: tensor<4xf32>) {
  %0 = tensor.windows %x {axis = 1, size = 2} : (tensor<4xf32>) -> tensor<3x2xf32>  // error: error[MLC0114]: tensor.windows: axis 1 is out of range for 1 dimensions
  func.return
}

// -----
func.func @f(%x: tensor<4xf32>) {
  %0 = tensor.windows %x {axis = 0, size = 2, stride = 0} : (tensor<4xf32>) -> tensor<3x2xf32>  // error: error[MLC0116]: tensor.windows: the stride 0 is not positive
  func.return
}

// -----
func.func @f(%x: tensor<4xf32>) {
  %0 = tensor.windows %x {axis = 0, size = 2, stride = 9223372036854775808} : (tensor<4xf32>) -> tensor<1x2xf32>  // error: error[MLC0116]: tensor.windows: the stride 9223372036854775808 does not fit in 64 bits
  func.return
}

// -----
func.func @f(%x: tensor<4xf32>) {
  %0 = tensor.windows %x {axis = 0, size = 3, dilation = 3} : (tensor<4xf32>) -> tensor<0x3xf32>  // error: error[MLC0115]: tensor.windows: windows of 3 elements, 3 apart, do not fit in axis 0 of size 4
  func.return
}

// -----
func.func @f(%x: tensor<4xf32>) {
  %0 = tensor.place %x {axis = 0, size = 5} : (tensor<4xf32>) -> tensor<5xf32>  // error: error[MLC0114]: tensor.place: there is no axis after axis 0
  func.return
}

// -----
func.func @f(%x: tensor<4x2xf32>) {
  %0 = tensor.place %x {axis = 0, size = 6} : (tensor<4x2xf32>) -> tensor<6x2xf32>  // error: error[MLC0115]: tensor.place: 4 is not the number of windows of 2 elements in size 6
  func.return
}

// -----
func.func @f(%x: tensor<2x3x8xf32>, %w: tensor<4x2x3xf32>) {
  %0 = tensor.convolution %x, %w : (tensor<2x3x8xf32>, tensor<4x2x3xf32>) -> tensor<2x4x6xf32>  // error: error[MLC0115]: tensor.convolution: weights of shape [4, 2, 3] do not fit 3 channels in 1 groups
  func.return
}

// -----
func.func @f(%x: tensor<2x3x8xf32>, %w: tensor<4x3x10xf32>) {
  %0 = tensor.convolution %x, %w : (tensor<2x3x8xf32>, tensor<4x3x10xf32>) -> tensor<2x4x0xf32>  // error: error[MLC0115]: tensor.convolution: weights of size 10 do not fit in size 8
  func.return
}

// -----
func.func @f(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3xf32>) {
  %0 = tensor.convolution %x, %w {stride = [1, 1]} : (tensor<2x3x8xf32>, tensor<4x3x3xf32>) -> tensor<2x4x6xf32>  // error: error[MLC0117]: tensor.convolution: stride has 2 entries for 1 spatial axes
  func.return
}

// -----
func.func @f(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3x3xf32>) {
  %0 = tensor.convolution %x, %w : (tensor<2x3x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6xf32>  // error: error[MLC0117]: tensor.convolution: weights of shape [4, 3, 3, 3] do not fit [2, 3, 8]
  func.return
}

// -----
func.func @f(%x: tensor<4xf32>) {
  %0 = tensor.max_pool %x {size = [2], low = [-1]} : (tensor<4xf32>) -> tensor<2xf32>  // error: error[MLC0116]: tensor.max_pool: low [-1] has an entry less than 0
  func.return
}

// -----
func.func @f(%x: tensor<4xf32>) {
  %0 = tensor.cumulative %x {kind = "mean", axis = 0} : tensor<4xf32>  // error: error[MLC0116]: tensor.cumulative: mean is not one of add, mul, max, min
  func.return
}

// -----
func.func @f(%x: tensor<4xi1>) {
  %0 = tensor.cumulative %x {kind = "max", axis = 0} : tensor<4xi1>  // error: error[MLC0113]: tensor.cumulative: does not work on i1, only on int and float elements
  func.return
}

// -----
func.func @f(%x: tensor<4xf32>, %i: tensor<2xi64>, %u: tensor<3xf32>) {
  %0 = tensor.scatter %x, %i, %u {axis = 0} : (tensor<4xf32>, tensor<2xi64>, tensor<3xf32>) -> tensor<4xf32>  // error: error[MLC0115]: tensor.scatter: updates of shape [3] do not fit [2]
  func.return
}

// -----
func.func @f(%x: tensor<4x2xf32>, %i: tensor<2x3xi64>, %u: tensor<2x3xf32>) {
  %0 = tensor.scatter_along %x, %i, %u {axis = 0} : (tensor<4x2xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<4x2xf32>  // error: error[MLC0115]: tensor.scatter_along: indices of shape [2, 3] do not fit [4, 2] outside axis 0
  func.return
}

// -----
func.func @f(%x: tensor<4xi1>, %i: tensor<2xi64>, %u: tensor<2xi1>) {
  %0 = tensor.scatter %x, %i, %u {axis = 0} : (tensor<4xi1>, tensor<2xi64>, tensor<2xi1>) -> tensor<4xi1>  // error: error[MLC0113]: tensor.scatter: add does not work on i1, only on int and float elements
  func.return
}

// -----
func.func @f(%x: tensor<4xf32>, %i: tensor<f32>) {
  %0 = tensor.dynamic_slice %x, %i {shape = [2]} : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>  // error: error[MLC0113]: tensor.dynamic_slice: a start is tensor<f32>, not one integer
  func.return
}

// -----
func.func @f(%x: tensor<4xf32>, %i: tensor<i64>) {
  %0 = tensor.dynamic_slice %x, %i {shape = [5]} : (tensor<4xf32>, tensor<i64>) -> tensor<5xf32>  // error: error[MLC0115]: tensor.dynamic_slice: a piece of [5] does not fit in [4]
  func.return
}

// -----
func.func @f(%x: tensor<4xf32>, %u: tensor<2x2xf32>, %i: tensor<i64>) {
  %0 = tensor.dynamic_update_slice %x, %u, %i : (tensor<4xf32>, tensor<2x2xf32>, tensor<i64>) -> tensor<4xf32>  // error: error[MLC0117]: tensor.dynamic_update_slice: 1 dimensions need as many starts and sizes, found 1 and 2
  func.return
}
