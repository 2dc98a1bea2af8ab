// test: pass fix_numerics fuse{machine=scratch_elements:53248}
// tolerance: 2e-2

// A machine that has room for a long row keeps one, the exponentials, between the stages of a kernel.
func.func @softmax(%x: tensor<2x20000xbf16>) -> tensor<2x20000xbf16> {
  %0 = tensor.cast %x : tensor<2x20000xbf16> to tensor<2x20000xf32>
  %1 = tensor.exp %0 : tensor<2x20000xf32>
  %2 = tensor.reduce_sum %1 {axes = [1]} : (tensor<2x20000xf32>) -> tensor<2xf32>
  %3 = tensor.reshape %2 : tensor<2xf32> to tensor<2x1xf32>
  %4 = tensor.div %1, %3 : (tensor<2x20000xf32>, tensor<2x1xf32>) -> tensor<2x20000xf32>
  %5 = tensor.cast %4 : tensor<2x20000xf32> to tensor<2x20000xbf16>
  func.return %5 : tensor<2x20000xbf16>
}
// CHECK: tensor.map {{.*}}materialize = "scratch"
// -----
// Of two functions, it computes one again.
func.func @two(%x: tensor<2x20000xbf16>) -> tensor<2x20000xbf16> {
  %0 = tensor.cast %x : tensor<2x20000xbf16> to tensor<2x20000xf32>
  %1 = tensor.exp %0 : tensor<2x20000xf32>
  %2 = tensor.tanh %0 : tensor<2x20000xf32>
  %3 = tensor.mul %1, %2 : tensor<2x20000xf32>
  %4 = tensor.reduce_sum %3 {axes = [1]} : (tensor<2x20000xf32>) -> tensor<2xf32>
  %5 = tensor.reshape %4 : tensor<2xf32> to tensor<2x1xf32>
  %6 = tensor.sub %1, %5 : (tensor<2x20000xf32>, tensor<2x1xf32>) -> tensor<2x20000xf32>
  %7 = tensor.sub %2, %6 : tensor<2x20000xf32>
  %8 = tensor.cast %7 : tensor<2x20000xf32> to tensor<2x20000xbf16>
  func.return %8 : tensor<2x20000xbf16>
}
// CHECK: materialize = "scratch"
// CHECK-NOT: materialize
