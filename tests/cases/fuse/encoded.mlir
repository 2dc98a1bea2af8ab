// test: pass decompose fix_numerics fuse

// blocks of bytes are read as they lie in memory: a view of them, or what computes them, has a kernel of its own
func.func @view(%w: tensor<3x4x34xui8>, %y: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %0 = tensor.slice %w {starts = [1, 0, 0], stops = [2, 4, 34], steps = [1, 1, 1]} : (tensor<3x4x34xui8>) -> tensor<1x4x34xui8>
  %1 = tensor.reshape %0 : tensor<1x4x34xui8> to tensor<4x34xui8>
  %2 = tensor.dequantize %1 {encoding = "q8_0"} : (tensor<4x34xui8>) -> tensor<4x32xf32>
  %3 = tensor.add %2, %y : tensor<4x32xf32>
  func.return %3 : tensor<4x32xf32>
}
// CHECK: @view
// CHECK: [[W:%\w+]] = tensor.kernel %w
// CHECK: tensor.kernel [[W]], %y
// CHECK-NOT: tensor.slice
// CHECK: tensor.dequantize
// -----
func.func @product(%w: tensor<1x4x34xui8>, %x: tensor<2x32xf32>) -> tensor<2x4xf32> {
  %0 = tensor.reshape %w : tensor<1x4x34xui8> to tensor<4x34xui8>
  %1 = tensor.quantized_dot %x, %0 {encoding = "q8_0"} : (tensor<2x32xf32>, tensor<4x34xui8>) -> tensor<2x4xf32>
  func.return %1 : tensor<2x4xf32>
}
// CHECK: tensor.kernel %w
// CHECK: tensor.dot_groups
// -----
// what is added in lanes are numbers: a function of them, or of what they are multiplied with, has a kernel of its own
func.func @gate(%x: tensor<2x64xf32>, %g: tensor<40x64xf16>, %u: tensor<40x64xf16>) -> tensor<2x40xf32> {
  %0 = tensor.cast %g : tensor<40x64xf16> to tensor<40x64xf32>
  %1 = tensor.dot_general %x, %0 {batch = [], contract = [[1, 1]]} : (tensor<2x64xf32>, tensor<40x64xf32>) -> tensor<2x40xf32>
  %2 = tensor.tanh %1 : tensor<2x40xf32>
  %3 = tensor.cast %u : tensor<40x64xf16> to tensor<40x64xf32>
  %4 = tensor.dot_general %x, %3 {batch = [], contract = [[1, 1]]} : (tensor<2x64xf32>, tensor<40x64xf32>) -> tensor<2x40xf32>
  %5 = tensor.mul %2, %4 : tensor<2x40xf32>
  func.return %5 : tensor<2x40xf32>
}
// CHECK: [[G:%\w+]] = tensor.kernel
// CHECK: tensor.dot_general
// CHECK: [[T:%\w+]] = tensor.kernel [[G]]
// CHECK: tensor.map
// CHECK: tensor.kernel {{.*}}[[T]]
// CHECK: tensor.dot_general
// CHECK: tensor.mul
