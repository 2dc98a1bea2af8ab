// test: pass decompose-complex
// test: run
// tolerance: 1e-5

// quotients and roots do not overflow where the result does not
func.func @scaled(%x: tensor<complex<f32>>, %y: tensor<complex<f32>>) -> (tensor<complex<f32>>, tensor<f32>, tensor<complex<f32>>) {
  %0 = tensor.div %x, %y : tensor<complex<f32>>
  %1 = tensor.abs %x : (tensor<complex<f32>>) -> tensor<f32>
  %2 = tensor.sqrt %y : tensor<complex<f32>>
  func.return %0, %1, %2 : tensor<complex<f32>>, tensor<f32>, tensor<complex<f32>>
}
// run: @scaled(2e30 + 2e30j, 1e30 - 1e30j) ~= (2j, 2.8284271e30, 1.0986841e15 - 4.5508986e14j)
// run: @scaled(2e-30, 4e-30) ~= (0.5, 2e-30, 2e-15)
// run: @scaled(1, -4) ~= (-0.25, 1, 2j)
// -----
func.func @elementary(%x: tensor<4xcomplex<f64>>) -> (tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>) {
  %0 = tensor.exp %x : tensor<4xcomplex<f64>>
  %1 = tensor.log %x : tensor<4xcomplex<f64>>
  %2 = tensor.tanh %x : tensor<4xcomplex<f64>>
  func.return %0, %1, %2 : tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>
}
func.func @inverse(%x: tensor<4xcomplex<f64>>) -> (tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>) {
  %0 = tensor.asin %x : tensor<4xcomplex<f64>>
  %1 = tensor.acosh %x : tensor<4xcomplex<f64>>
  %2 = tensor.atan %x : tensor<4xcomplex<f64>>
  func.return %0, %1, %2 : tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>
}
func.func @power(%x: tensor<4xcomplex<f64>>, %y: tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>> {
  %0 = tensor.pow %x, %y : tensor<4xcomplex<f64>>
  func.return %0 : tensor<4xcomplex<f64>>
}
// run: @power([0, 0, 1j, 2], [0, 2, 2, 1j]) ~= [1, 0, -1, 0.76923890 + 0.63896128j]
// -----
func.func @reductions(%x: tensor<3x5xcomplex<f64>>) -> (tensor<3xcomplex<f64>>, tensor<3xcomplex<f64>>, tensor<3xf64>, tensor<3x5xcomplex<f64>>) {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<3x5xcomplex<f64>>) -> tensor<3xcomplex<f64>>
  %1 = tensor.reduce_prod %x {axes = [1]} : (tensor<3x5xcomplex<f64>>) -> tensor<3xcomplex<f64>>
  %2 = tensor.var %x {axes = [1]} : (tensor<3x5xcomplex<f64>>) -> tensor<3xf64>
  %3 = tensor.cumulative %x {kind = "mul", axis = 1} : tensor<3x5xcomplex<f64>>
  func.return %0, %1, %2, %3 : tensor<3xcomplex<f64>>, tensor<3xcomplex<f64>>, tensor<3xf64>, tensor<3x5xcomplex<f64>>
}
// -----
func.func @products(%x: tensor<2x3xcomplex<f32>>, %y: tensor<3x2xcomplex<f32>>) -> (tensor<2x2xcomplex<f32>>, tensor<2x2xi1>) {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<2x3xcomplex<f32>>, tensor<3x2xcomplex<f32>>) -> tensor<2x2xcomplex<f32>>
  %1 = tensor.compare eq, %0, %0 : (tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>) -> tensor<2x2xi1>
  func.return %0, %1 : tensor<2x2xcomplex<f32>>, tensor<2x2xi1>
}
// run: @products([[1j, 0, 0], [0, 1, 1j]], [[1j, 2], [3, 4], [5, 1j]]) ~= ([[-1, 2j], [3 + 5j, 3]], [[True, True], [True, True]])
// -----
// The parts of a product are sums of rounded products, so that this has no real part.
func.func @square(%x: tensor<3xf64>) -> tensor<3x2xf64> {
  %0 = tensor.complex %x, %x : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xcomplex<f64>>
  %1 = tensor.mul %0, %0 : tensor<3xcomplex<f64>>
  %2 = tensor.view_as_real %1 : (tensor<3xcomplex<f64>>) -> tensor<3x2xf64>
  %3 = tensor.rsqrt %2 : tensor<3x2xf64>
  func.return %3 : tensor<3x2xf64>
}
// run: @square([0.3, 1.7, -5.1]) ~= [[inf, 2.35702260], [inf, 0.41594517], [inf, 0.13864839]]
