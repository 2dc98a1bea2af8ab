// test: verify

func.func @f(%x: tensor<2x3xf32>, %y: tensor<4xf32>) {
  %0 = tensor.add %x, %y : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>  // error: error[MLC0111]: tensor.add: shapes [2, 3] and [4] do not broadcast
  func.return
}

// -----
func.func @f(%x: tensor<2x3xf32>) {
  %0 = tensor.exp %x : (tensor<2x3xf32>) -> tensor<3xf32>  // error: error[MLC0102]
  func.return
}

// -----
func.func @f(%x: tensor<2x3xf32>) {
  %0 = tensor.reshape %x : tensor<2x3xf32> to tensor<7xf32>  // error: error[MLC0115]: tensor.reshape: [2, 3] has 6 elements, [7] has 7
  func.return
}

// -----
func.func @f() {
  %0 = tensor.full 256 : tensor<ui8>  // error: error[MLC0116]: tensor.full: 256 is not a value of ui8
  func.return
}

// -----
func.func @f(%x: tensor<Bxf32>) {
  %0 = tensor.softmax %x {axis = 1} : tensor<Bxf32>  // error: error[MLC0114]: tensor.softmax: axis 1 is out of range for 1 dimensions
  func.return
}

// -----
func.func @f(%x: tensor<2xi64>) {
  %0 = tensor.item %x : (tensor<2xi64>) -> i64  // error: error[MLC0115]: tensor.item: x is tensor<2xi64>, not a tensor of one element
  func.return
}

// -----
func.func @f(%i: index) {
  %0 = tensor.from_scalar %i : index to tensor<i32>  // error: error[MLC0113]: tensor.from_scalar: index cannot become a tensor of i32
  func.return
}

// -----
func.func @f(%n: tensor<i64>) -> tensor<kx0xi1> {
  %0 = tensor.bind_size %n {bound = "k + 1", size = "k"} : (tensor<i64>) -> tensor<kx0xi1>  // error: error[MLC0116]: tensor.bind_size: the bound k + 1 of k depends on it
  func.return %0 : tensor<kx0xi1>
}

// -----
func.func private @windows(%x: tensor<Nxf32>) -> tensor<(N - 9)x10xf32> {
  %0 = tensor.windows %x {axis = 0, size = 10} : (tensor<Nxf32>) -> tensor<(N - 9)x10xf32>
  func.return %0 : tensor<(N - 9)x10xf32>
}
func.func @f(%x: tensor<7xf32>, %y: tensor<Nxf32>) -> tensor<Nxf32> {
  %0 = func.call @windows(%x) : (tensor<7xf32>) -> tensor<Nx10xf32>  // error: error[MLC0120]: func.call @windows: @windows returns tensor<(N - 9)x10xf32>, which would be tensor<-2x10xf32> here
  func.return %y : tensor<Nxf32>
}
// -----
// code for a product adds in one chain, in lanes of which all are full, or in blocks that are chains
func.func @f(%x: tensor<2x4xf32>, %y: tensor<4x3xf32>) -> tensor<2x3xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]], order = "lanes<8>"} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32> // error: error[MLC0116]: tensor.dot_general: lanes<8> adds whole blocks of lanes: not 4 terms
  func.return %0 : tensor<2x3xf32>
}
// -----
func.func @f(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  %0 = tensor.reduce_fma %x, %y {axes = [1]} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32> // error: error[MLC0111]: tensor.reduce_fma: x is a tensor<2x3xf32>, y a tensor<3xf32>
  func.return
}
// -----
func.func @f(%x: tensor<2x3xf32>) {
  %0 = tensor.reduce_fma %x, %x {axes = [1], order = "lanes<4>"} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32> // error: error[MLC0116]: tensor.reduce_fma: order 'lanes<4>' is not chain, the only one of fused multiply-adds
  func.return
}
// -----
func.func @f(%x: tensor<3xi1>) {
  %0 = tensor.reduce_fma %x, %x {axes = [0]} : (tensor<3xi1>, tensor<3xi1>) -> tensor<i1> // error: error[MLC0113]: tensor.reduce_fma: does not work on i1, only on int and float elements
  func.return
}
