// test: pass fix_numerics hoist_constants{panels=true,quads=true}
// tolerance: bits

// weights of bytes are packed as such, and extended where they are read
func.func @main(%x: tensor<8x5xui8>, %w: tensor<16x5xi8>) -> tensor<8x16xi32> attributes {constants = [1]} {
  %0 = tensor.cast %x : tensor<8x5xui8> to tensor<8x5xi32>
  %1 = tensor.cast %w : tensor<16x5xi8> to tensor<16x5xi32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 1]]} : (tensor<8x5xi32>, tensor<16x5xi32>) -> tensor<8x16xi32>
  func.return %2 : tensor<8x16xi32>
}
// CHECK: tensor.pack {{.*}} -> tensor<1x5x16xi8>
// CHECK: @main_with_constants
// CHECK: [[W:%\w+]] = tensor.unpack {{.*}} -> tensor<16x5xi8>
// CHECK-NEXT: [[WIDE:%\w+]] = tensor.cast [[W]] : tensor<16x5xi8> to tensor<16x5xi32>
// CHECK: tensor.dot_general %{{\w+}}, [[WIDE]]
// -----
// sums of weights of bytes are computed once, though the bytes are widened for them
func.func @main(%x: tensor<16xi32>, %w: tensor<16x5xi8>) -> tensor<16xi32> attributes {constants = [1]} {
  %0 = tensor.cast %w : tensor<16x5xi8> to tensor<16x5xi32>
  %1 = tensor.reduce_sum %0 {axes = [1], order = "chain"} : (tensor<16x5xi32>) -> tensor<16xi32>
  %2 = tensor.add %x, %1 : tensor<16xi32>
  func.return %2 : tensor<16xi32>
}
// CHECK: @main_constants
// CHECK: tensor.reduce_sum
// CHECK: @main_with_constants
// CHECK-NOT: tensor.reduce_sum
