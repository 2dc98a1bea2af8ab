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
// A long epilogue, with a function that divides, is a kernel of its own; it reads the sums when they have 16 bits.
func.func @activated(%x: tensor<1024x16xbf16>, %w: tensor<16x512xbf16>) -> tensor<1024x512xbf16> {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]} : (tensor<1024x16xbf16>, tensor<16x512xbf16>) -> tensor<1024x512xbf16>
  %1 = tensor.tanh %0 : tensor<1024x512xbf16>
  %2 = tensor.mul %1, %0 : tensor<1024x512xbf16>
  %3 = tensor.sigmoid %2 : tensor<1024x512xbf16>
  func.return %3 : tensor<1024x512xbf16>
}
// CHECK: tensor.kernel
// CHECK: tensor.dot_general
// CHECK-NEXT: tensor.cast {{.*}} to tensor<1024x512xbf16>
// CHECK: tensor.kernel
// CHECK: tensor.map
// CHECK-NOT: tensor.kernel
// -----
// A short one is not, and neither is one of few points.
func.func @scaled(%x: tensor<1024x16xbf16>, %w: tensor<16x512xbf16>, %y: tensor<64x16xbf16>) -> (tensor<1024x512xf32>, tensor<64x512xf32>) {
  %0 = tensor.cast %x : tensor<1024x16xbf16> to tensor<1024x16xf32>
  %1 = tensor.cast %w : tensor<16x512xbf16> to tensor<16x512xf32>
  %2 = tensor.cast %y : tensor<64x16xbf16> to tensor<64x16xf32>
  %3 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 0]]} : (tensor<1024x16xf32>, tensor<16x512xf32>) -> tensor<1024x512xf32>
  %4 = tensor.exp %3 : tensor<1024x512xf32>
  %5 = tensor.dot_general %2, %1 {batch = [], contract = [[1, 0]]} : (tensor<64x16xf32>, tensor<16x512xf32>) -> tensor<64x512xf32>
  %6 = tensor.tanh %5 : tensor<64x512xf32>
  %7 = tensor.sigmoid %6 : tensor<64x512xf32>
  func.return %4, %7 : tensor<1024x512xf32>, tensor<64x512xf32>
}
// CHECK: tensor.kernel
// CHECK: tensor.dot_general
// CHECK-NEXT: tensor.map
// CHECK: tensor.kernel
// CHECK: tensor.dot_general
// CHECK-NEXT: tensor.map
// CHECK: tensor.map
// CHECK-NOT: tensor.kernel
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
// -----
// What two of them read is widened once, where it is computed.
func.func @biases(%x: tensor<1030x1030x2xf32>) -> (tensor<1030x1030x2xbf16>, tensor<1030x2xf32>, tensor<1030x2xf32>) {
  %0 = tensor.mul %x, %x : tensor<1030x1030x2xf32>
  %1 = tensor.cast %0 : tensor<1030x1030x2xf32> to tensor<1030x1030x2xbf16>
  %2 = tensor.cast %1 : tensor<1030x1030x2xbf16> to tensor<1030x1030x2xf32>
  %3 = tensor.reduce_sum %2 {axes = [0]} : (tensor<1030x1030x2xf32>) -> tensor<1030x2xf32>
  %4 = tensor.reduce_sum %2 {axes = [1]} : (tensor<1030x1030x2xf32>) -> tensor<1030x2xf32>
  func.return %1, %3, %4 : tensor<1030x1030x2xbf16>, tensor<1030x2xf32>, tensor<1030x2xf32>
}
// CHECK: tensor.kernel {{.*}}label = "mul_cast_cast"
