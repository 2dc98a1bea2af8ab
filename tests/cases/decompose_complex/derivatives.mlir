// test: pass decompose-complex grad
// tolerance: 1e-6

// the cotangent of |x|^2 is 2x, as a complex number
func.func private @size(%x: tensor<3xcomplex<f32>>) -> tensor<f32> {
  %0 = tensor.real %x : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  %1 = tensor.imag %x : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  %2 = tensor.mul %0, %0 : tensor<3xf32>
  %3 = tensor.mul %1, %1 : tensor<3xf32>
  %4 = tensor.add %2, %3 : tensor<3xf32>
  %5 = tensor.reduce_sum %4 {axes = [0]} : (tensor<3xf32>) -> tensor<f32>
  func.return %5 : tensor<f32>
}
func.func @main(%x: tensor<3xcomplex<f32>>) -> (tensor<f32>, tensor<3xcomplex<f32>>) {
  %y, %dx = autodiff.grad @size(%x) wrt [0] : (tensor<3xcomplex<f32>>) -> (tensor<f32>, tensor<3xcomplex<f32>>)
  func.return %y, %dx : tensor<f32>, tensor<3xcomplex<f32>>
}
// run: @main([1, 1j, 1 - 2j]) ~= (7, [2, 2j, 2 - 4j])
// -----
// of a holomorphic function it is that of the result times the conjugate of the derivative
func.func private @square(%x: tensor<complex<f32>>) -> tensor<complex<f32>> {
  %0 = tensor.mul %x, %x : tensor<complex<f32>>
  func.return %0 : tensor<complex<f32>>
}
func.func @main(%x: tensor<complex<f32>>, %ct: tensor<complex<f32>>) -> tensor<complex<f32>> {
  %y, %dx = autodiff.vjp @square(%x, %ct) wrt [0] : (tensor<complex<f32>>, tensor<complex<f32>>) -> (tensor<complex<f32>>, tensor<complex<f32>>)
  func.return %dx : tensor<complex<f32>>
}
// run: @main(1 + 2j, 1) ~= 2 - 4j
// run: @main(1 + 2j, 1j) ~= 4 + 2j
