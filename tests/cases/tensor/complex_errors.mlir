// test: parse-error
func.func @f(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  %0 = tensor.floor %x : tensor<2xcomplex<f32>>  // error: error[MLC0785]: tensor.floor: is not defined on complex elements, complex<f32>
  func.return %0 : tensor<2xcomplex<f32>>
}
// -----
func.func @f(%x: tensor<2xcomplex<f32>>) -> tensor<complex<f32>> {
  %0 = tensor.reduce_max %x {axes = [0]} : (tensor<2xcomplex<f32>>) -> tensor<complex<f32>>  // error: is not defined on complex elements
  func.return %0 : tensor<complex<f32>>
}
// -----
func.func @f(%x: tensor<2xcomplex<f32>>) -> tensor<2xi1> {
  %0 = tensor.compare lt, %x, %x : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<2xi1>  // error: complex numbers have no order
  func.return %0 : tensor<2xi1>
}
// -----
func.func @f(%x: tensor<2xf16>) -> tensor<2xf16> {
  %0 = tensor.complex %x, %x : (tensor<2xf16>, tensor<2xf16>) -> tensor<2xcomplex<f16>>  // error: complex<f16> is no type
  func.return %x : tensor<2xf16>
}
// -----
func.func @f(%x: tensor<Nxcomplex<f32>>) -> tensor<complex<f32>> {
  %0 = tensor.reduce_prod %x {axes = [0]} : (tensor<Nxcomplex<f32>>) -> tensor<complex<f32>>  // error: size N of axis 0 is not static
  func.return %0 : tensor<complex<f32>>
}
