// test: verify

func.func @f(%x: tensor<2x3xf32>) {
  %0 = tensor.cholesky %x : tensor<2x3xf32>  // error: error[MLC0115]: tensor.cholesky: the matrix has 2 rows and 3 columns, which must be equal
  func.return
}

// -----
func.func @f(%x: tensor<3x3xf16>) {
  %0 = tensor.cholesky %x : tensor<3x3xf16>  // error: error[MLC0113]: tensor.cholesky: does not work on f16, only on f32 and f64 elements
  func.return
}

// -----
func.func @f(%x: tensor<3xf32>) {
  %0:2 = tensor.qr %x : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)  // error: error[MLC0117]: tensor.qr: operand 0 has shape [3], which is not a matrix
  func.return
}

// -----
func.func @f(%x: tensor<BxCxf32>) {
  %0:3 = tensor.svd %x : (tensor<BxCxf32>) -> (tensor<BxCxf32>, tensor<Cxf32>, tensor<CxCxf32>)  // error: error[MLC0688]: tensor.svd: it is not known statically whether B rows or C columns are fewer
  func.return
}

// -----
func.func @f(%a: tensor<3x3xf32>, %b: tensor<2x3xf32>) {
  %0 = tensor.triangular_solve %a, %b : (tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>  // error: error[MLC0115]: tensor.triangular_solve: right-hand sides of shape [2, 3] do not fit [3, 3]
  func.return
}

// -----
func.func @f(%a: tensor<3x3xf32>, %b: tensor<2x3xf32>) {
  %0 = tensor.solve %a, %b : (tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>  // error: error[MLC0115]: tensor.solve: right-hand sides of shape [2, 3] do not fit [3, 3]
  func.return
}

// -----
func.func @f(%x: tensor<8x3xf32>) {
  %0 = tensor.dft %x {axis = 0} : tensor<8x3xf32>  // error: error[MLC0115]: tensor.dft: the last axis of [8, 3] must have size 2
  func.return
}

// -----
func.func @f(%x: tensor<Bx2xf32>) {
  %0 = tensor.dft %x {axis = 0} : tensor<Bx2xf32>  // error: error[MLC0688]: tensor.dft: size B of axis 0 is not static
  func.return
}

// -----
func.func @f(%x: tensor<8x2xf32>) {
  %0 = tensor.dft %x {axis = 1} : tensor<8x2xf32>  // error: error[MLC0114]: tensor.dft: axis 1 is out of range for 1 dimensions
  func.return
}

// -----
func.func @f(%x: tensor<8xf32>) {
  %0 = tensor.argsort %x {axis = 1} : (tensor<8xf32>) -> tensor<8xi64>  // error: error[MLC0114]: tensor.argsort: axis 1 is out of range for 1 dimensions
  func.return
}

// -----
func.func @f(%s: tensor<2x5xf32>, %v: tensor<3x5xf32>) {
  %0 = tensor.search_sorted %s, %v : (tensor<2x5xf32>, tensor<3x5xf32>) -> tensor<3x5xi64>  // error: error[MLC0115]: tensor.search_sorted: values of shape [3, 5] do not fit a sorted tensor of shape [2, 5]
  func.return
}

// -----
func.func @f(%s: tensor<5xf32>, %v: tensor<3xf64>) {
  %0 = tensor.search_sorted %s, %v : (tensor<5xf32>, tensor<3xf64>) -> tensor<3xi64>  // error: error[MLC0112]: tensor.search_sorted: element types differ: f32 and f64
  func.return
}

// -----
func.func @f(%k: tensor<3xui32>) {
  %0 = tensor.random_bits %k : tensor<3xui32> to tensor<4xui32>  // error: error[MLC0117]: tensor.random_bits: the key is tensor<3xui32>, not tensor<2xui32>
  func.return
}

// -----
func.func @f(%k: tensor<2xui32>) {
  %0 = tensor.random_bits %k : tensor<2xui32> to tensor<4xi32>  // error: error[MLC0113]: tensor.random_bits: gives unsigned integers, not i32
  func.return
}

// -----
func.func @f(%x: tensor<3xi32>) {
  %0 = tensor.erfinv %x : tensor<3xi32>  // error: error[MLC0113]: tensor.erfinv: does not work on i32, only on float elements
  func.return
}

// -----
func.func @f(%q: tensor<f32>, %k: tensor<3x4xf32>) {
  %0 = tensor.attention %q, %k, %k {scale = 0.5} : (tensor<f32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>  // error: error[MLC0115]: tensor.attention: takes matrices, found tensor<f32>
  func.return
}

// -----
func.func @f(%q: tensor<2x4xbf16>, %v: tensor<bf16>) {
  %0 = tensor.flash_attention %q, %q, %v {scale = 0.5} : (tensor<2x4xbf16>, tensor<2x4xbf16>, tensor<bf16>) -> tensor<2x4xbf16>  // error: error[MLC0113]: tensor.flash_attention: takes matrices of bf16 or f16, not tensor<2x4xbf16>, tensor<2x4xbf16> and tensor<bf16>
  func.return
}
