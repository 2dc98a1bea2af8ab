// test: pass decompose
// test: run
// the logarithm of a number just below 1 is a negative zero
func.func @f(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = tensor.log_sigmoid %x : tensor<4xf16>
  %one = tensor.full 1.0 : tensor<4xf16>
  %1 = tensor.div %one, %0 : tensor<4xf16>
  func.return %1 : tensor<4xf16>
}
// run: @f([20, 200, 65504, inf]) == [-inf, -inf, -inf, -inf]
