// test: pass fuse
// tolerance: bits

// a scan has no result per slice: a value of that shape which is returned, too, is computed before it
func.func @main(%p: tensor<2x3x4xf64>) -> (tensor<2x3x1xi1>, tensor<2x3x4xf64>, tensor<2x3x4xf64>) {
  %0 = tensor.full 0.0 : tensor<2x3x1xf64>
  %1 = tensor.full 1 : tensor<2x3x1xi1>
  %4 = tensor.reverse %p {axes = [1]} : tensor<2x3x4xf64>
  %5 = tensor.select %1, %4, %0 : (tensor<2x3x1xi1>, tensor<2x3x4xf64>, tensor<2x3x1xf64>) -> tensor<2x3x4xf64>
  %6 = tensor.cumulative %4 {kind = "min", axis = 2, order = "chain"} : tensor<2x3x4xf64>
  func.return %1, %5, %6 : tensor<2x3x1xi1>, tensor<2x3x4xf64>, tensor<2x3x4xf64>
}
// CHECK: tensor.kernel
// CHECK: tensor.kernel
// CHECK-NOT: tensor.kernel
