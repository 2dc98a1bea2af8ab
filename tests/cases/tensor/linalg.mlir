// test: run interp

// run: @cholesky([[4.0, 2.0], [2.0, 5.0]]) == [[2.0, 0.0], [1.0, 2.0]]
func.func @cholesky(%x: tensor<2x2xf64>) -> tensor<2x2xf64> {
  %0 = tensor.cholesky %x : tensor<2x2xf64>
  func.return %0 : tensor<2x2xf64>
}

// run: @upper([[2.0, 1.0], [7.0, 4.0]], [[4.0], [8.0]]) == [[1.0], [2.0]]
func.func @upper(%a: tensor<2x2xf64>, %b: tensor<2x1xf64>) -> tensor<2x1xf64> {
  %0 = tensor.triangular_solve %a, %b {upper = true} : (tensor<2x2xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
  func.return %0 : tensor<2x1xf64>
}

// run: @lu([[1.0, 2.0], [4.0, 4.0]]) == ([[4.0, 4.0], [0.25, 1.0]], [1, 1], [1, 0])
func.func @lu(%x: tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2xi64>, tensor<2xi64>) {
  %0:3 = tensor.lu %x : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2xi64>, tensor<2xi64>)
  func.return %0#0, %0#1, %0#2 : tensor<2x2xf64>, tensor<2xi64>, tensor<2xi64>
}

// run: @eigh([[2.0, 0.0], [0.0, -3.0]]) == ([-3.0, 2.0], [[0.0, 1.0], [1.0, 0.0]])
func.func @eigh(%x: tensor<2x2xf64>) -> (tensor<2xf64>, tensor<2x2xf64>) {
  %0:2 = tensor.eigh %x : (tensor<2x2xf64>) -> (tensor<2xf64>, tensor<2x2xf64>)
  func.return %0#0, %0#1 : tensor<2xf64>, tensor<2x2xf64>
}

// run: @dft_of_one_point_keeps_the_signs_of_zeros([[-0.0, -0.0]]) == [[-0.0, -0.0]]
func.func @dft_of_one_point_keeps_the_signs_of_zeros(%x: tensor<1x2xf64>) -> tensor<1x2xf64> {
  %0 = tensor.dft %x {axis = 0, inverse = true} : tensor<1x2xf64>
  func.return %0 : tensor<1x2xf64>
}

// run: @dft([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]) == [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
func.func @dft(%x: tensor<4x2xf64>) -> tensor<4x2xf64> {
  %0 = tensor.dft %x {axis = 0} : tensor<4x2xf64>
  func.return %0 : tensor<4x2xf64>
}

// run: @order([3.0, 1.0, 2.0, 1.0]) == ([1, 3, 2, 0], [0, 2, 1, 3])
func.func @order(%x: tensor<Bxf64>) -> (tensor<Bxi64>, tensor<Bxi64>) {
  %0 = tensor.argsort %x {axis = 0} : (tensor<Bxf64>) -> tensor<Bxi64>
  %1 = tensor.argsort %x {axis = 0, descending = true} : (tensor<Bxf64>) -> tensor<Bxi64>
  func.return %0, %1 : tensor<Bxi64>, tensor<Bxi64>
}

// run: @places([1.0, 2.0, 2.0, 5.0], [2.0, 0.0, 9.0]) == ([1, 0, 4], [3, 0, 4])
func.func @places(%s: tensor<4xf64>, %v: tensor<3xf64>) -> (tensor<3xi64>, tensor<3xi64>) {
  %0 = tensor.search_sorted %s, %v : (tensor<4xf64>, tensor<3xf64>) -> tensor<3xi64>
  %1 = tensor.search_sorted %s, %v {right = true} : (tensor<4xf64>, tensor<3xf64>) -> tensor<3xi64>
  func.return %0, %1 : tensor<3xi64>, tensor<3xi64>
}

// The known answer of Threefry-2x32-20 for a key and counter of zeros, 6b200159 and 99ba4efe.
// run: @bits([0, 0]) == ([4070199207], [7719171245655871230])
func.func @bits(%k: tensor<2xui32>) -> (tensor<1xui32>, tensor<1xui64>) {
  %0 = tensor.random_bits %k : tensor<2xui32> to tensor<1xui32>
  %1 = tensor.random_bits %k : tensor<2xui32> to tensor<1xui64>
  func.return %0, %1 : tensor<1xui32>, tensor<1xui64>
}

// What is not finite has no factors.
// run: @not_finite([[1.0, inf], [4.0, 4.0]], [[1.0], [2.0]]) == ([[nan, nan], [nan, nan]], [0, 1], [0, 1], [[nan, nan], [nan, nan]], [[nan, nan], [0.0, nan]], [[nan], [nan]])
func.func @not_finite(%x: tensor<2x2xf64>, %b: tensor<2x1xf64>) -> (tensor<2x2xf64>, tensor<2xi64>, tensor<2xi64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x1xf64>) {
  %0:3 = tensor.lu %x : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2xi64>, tensor<2xi64>)
  %1:2 = tensor.qr %x : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2x2xf64>)
  %2 = tensor.solve %x, %b : (tensor<2x2xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
  func.return %0#0, %0#1, %0#2, %1#0, %1#1, %2 : tensor<2x2xf64>, tensor<2xi64>, tensor<2xi64>, tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x1xf64>
}
