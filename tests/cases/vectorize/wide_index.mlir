// test: pass fuse bufferize tensor_to_loop coalesce_dimensions vectorize
// tolerance: bits

// where the slice begins is a number of 64 bits; vectors are of the 32 bits that are multiplied and added
func.func @main(%h: tensor<16x64xf32>, %w: tensor<64x96xf32>, %x: tensor<8x16x96xf32>, %i: tensor<i64>) -> tensor<16x96xf32> {
  %z = tensor.full 0 : tensor<i64>
  %0 = tensor.dot_general %h, %w {batch = [], contract = [[1, 0]], order = "chain"} : (tensor<16x64xf32>, tensor<64x96xf32>) -> tensor<16x96xf32>
  %1 = tensor.dynamic_slice %x, %i, %z, %z {shape = [1, 16, 96]} : (tensor<8x16x96xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x16x96xf32>
  %2 = tensor.reshape %1 : tensor<1x16x96xf32> to tensor<16x96xf32>
  %3 = tensor.add %0, %2 : tensor<16x96xf32>
  func.return %3 : tensor<16x96xf32>
}
// CHECK: loop.kernel
// CHECK-SAME: lanes = 16
// CHECK: loop.contract
