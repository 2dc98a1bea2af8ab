// test: pass decompose
// Zeros are positive, whatever the order of the sums.
// run: @of_zeros([[-0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [0.0, -0.0]]) == [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
func.func @of_zeros(%x: tensor<4x2xf64>) -> tensor<4x2xf64> {
  %0 = tensor.dft %x {axis = 0, inverse = true} : tensor<4x2xf64>
  func.return %0 : tensor<4x2xf64>
}
// run: @of_a_prime_length() == [inf, inf]
func.func @of_a_prime_length() -> tensor<2xf64> {
  %0 = tensor.full -0.0 : tensor<37x2xf64>
  %1 = tensor.dft %0 {axis = 0} : tensor<37x2xf64>
  %2 = tensor.full 1.0 : tensor<37x2xf64>
  %3 = tensor.div %2, %1 : tensor<37x2xf64>
  %4 = tensor.reduce_min %3 {axes = [0]} : (tensor<37x2xf64>) -> tensor<2xf64>
  func.return %4 : tensor<2xf64>
}
