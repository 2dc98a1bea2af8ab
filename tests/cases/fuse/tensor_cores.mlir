// test: pass fix_numerics{products=mma} fuse
// tolerance: 2e-2

// A factor is rounded by the kernel that computes it, once; the product reads it as it is, and widens it for free.
func.func @rounded(%x: tensor<64x32xf32>, %w: tensor<32x64xf32>) -> tensor<64x64xf32> {
  %0 = tensor.neg %x : tensor<64x32xf32>
  %1 = tensor.cast %0 : tensor<64x32xf32> to tensor<64x32xbf16>
  %2 = tensor.cast %w : tensor<32x64xf32> to tensor<32x64xbf16>
  %3 = tensor.dot_general %1, %2 {batch = [], contract = [[1, 0]]} : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xbf16>
  %4 = tensor.cast %3 : tensor<64x64xbf16> to tensor<64x64xf32>
  func.return %4 : tensor<64x64xf32>
}
// CHECK: tensor.kernel
// CHECK: tensor.neg
// CHECK: tensor.cast {{.*}} to tensor<64x32xbf16>
// CHECK: tensor.kernel
// CHECK: tensor.cast {{.*}} to tensor<32x64xbf16>
// CHECK: tensor.kernel
// CHECK: tensor.cast {{.*}} to tensor<64x32xf32>
// CHECK: tensor.dot_general
// -----
// Factors are padded once, too.
func.func @padded(%x: tensor<128x129xbf16>, %y: tensor<129x128xbf16>) -> tensor<128x128xbf16> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<128x129xbf16>, tensor<129x128xbf16>) -> tensor<128x128xbf16>
  func.return %0 : tensor<128x128xbf16>
}
// CHECK: tensor.kernel
// CHECK: tensor.pad
// CHECK: tensor.kernel
// CHECK: tensor.pad
// CHECK: tensor.kernel
// CHECK-NOT: tensor.pad
// CHECK: tensor.dot_general
// -----
// What only reductions widen is stored as it is.
func.func @bias(%x: tensor<2048x32xf32>) -> (tensor<2048x32xbf16>, tensor<32xf32>) {
  %0 = tensor.tanh %x : tensor<2048x32xf32>
  %1 = tensor.cast %0 : tensor<2048x32xf32> to tensor<2048x32xbf16>
  %2 = tensor.cast %1 : tensor<2048x32xbf16> to tensor<2048x32xf32>
  %3 = tensor.reduce_sum %2 {axes = [0]} : (tensor<2048x32xf32>) -> tensor<32xf32>
  func.return %1, %3 : tensor<2048x32xbf16>, tensor<32xf32>
}
// CHECK: tensor.kernel
// CHECK: tensor.map
// CHECK: tensor.cast {{.*}} to tensor<2048x32xbf16>
// CHECK-NOT: to tensor<2048x32xf32>
// CHECK: tensor.kernel
// CHECK: tensor.cast
// CHECK-NEXT: tensor.reduce_sum
