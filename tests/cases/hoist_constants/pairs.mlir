// test: pass decompose fix_numerics hoist_constants{panels=true,pairs=true}
// tolerance: bits

// weights of bf16 are packed as such, and extended where they are read
func.func @main(%x: tensor<8x5xbf16>, %w: tensor<16x5xbf16>) -> tensor<8x16xbf16> attributes {constants = [1]} {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 1]]} : (tensor<8x5xbf16>, tensor<16x5xbf16>) -> tensor<8x16xbf16>
  func.return %0 : tensor<8x16xbf16>
}
// CHECK: tensor.pack {{.*}} -> tensor<1x5x16xbf16>
// CHECK: @main_with_constants
// CHECK: [[W:%\w+]] = tensor.unpack {{.*}} -> tensor<16x5xbf16>
// CHECK-NEXT: [[WIDE:%\w+]] = tensor.cast [[W]] : tensor<16x5xbf16> to tensor<16x5xf32>
// CHECK: tensor.dot_general %{{\w+}}, [[WIDE]]
// -----
// so are those of an image of few points, which is multiplied as an image
func.func @main(%x: tensor<1x4x3x3xbf16>, %w: tensor<16x4xbf16>) -> tensor<1x16x3x3xbf16> attributes {constants = [1]} {
  %0 = tensor.reshape %x : tensor<1x4x3x3xbf16> to tensor<4x9xbf16>
  %1 = tensor.dot_general %w, %0 {batch = [], contract = [[1, 0]]} : (tensor<16x4xbf16>, tensor<4x9xbf16>) -> tensor<16x9xbf16>
  %2 = tensor.reshape %1 : tensor<16x9xbf16> to tensor<1x16x3x3xbf16>
  func.return %2 : tensor<1x16x3x3xbf16>
}
// CHECK: tensor.pack {{.*}} -> tensor<1x4x16xbf16>
// CHECK: @main_with_constants
// CHECK: tensor.dot_general {{.*}} -> tensor<16x3x3xf32>
// -----
// weights of a depthwise convolution of 16 bits are one panel of all channels
func.func @main(%x: tensor<1x16x5xbf16>, %w: tensor<16x1x3xbf16>) -> tensor<1x16x3xbf16> attributes {constants = [1]} {
  %0 = tensor.convolution %x, %w {groups = 16} : (tensor<1x16x5xbf16>, tensor<16x1x3xbf16>) -> tensor<1x16x3xbf16>
  func.return %0 : tensor<1x16x3xbf16>
}
// CHECK: tensor.pack {{.*}} -> tensor<1x1x1x3x16xbf16>
// CHECK: @main_with_constants
// CHECK: tensor.reduce_fma
// -----
// terms that share words, which one instruction multiplies with those of many rows, lie side by side, the second one first
func.func @main(%x: tensor<32x6xbf16>, %w: tensor<16x6xbf16>) -> tensor<32x16xbf16> attributes {constants = [1]} {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 1]]} : (tensor<32x6xbf16>, tensor<16x6xbf16>) -> tensor<32x16xbf16>
  func.return %0 : tensor<32x16xbf16>
}
// CHECK: tensor.pack {{.*}} -> tensor<1x6x16xbf16>
// CHECK: tensor.pack {{.*}}reverse = true{{.*}} -> tensor<1x3x16x2xbf16>
// CHECK: @main_with_constants
// CHECK: tensor.unpack {{.*}}reverse = true{{.*}} -> tensor<1x6x16xbf16>
// CHECK: [[W:%\w+]] = tensor.unpack {{.*}} -> tensor<16x6xbf16>
// CHECK-NEXT: [[WIDE:%\w+]] = tensor.cast [[W]]
// CHECK: tensor.dot_general %{{\w+}}, [[WIDE]]
