// test: pass constrain_sizes
// sizes: N=4 B=2 T=3 C=1
// An argument is in memory, so its sizes and their products are small; a size that would take more than 64 bits is
// refused by the call, even if no tensor of that size is in memory.
// CHECK-LABEL: @scaled
// CHECK-NEXT: tensor.constrain_size {size = "-1099511627776*N + 2305843009213693952", message = "tensor.broadcast_to: the size 1099511627776*N is beyond 64 bits"}
func.func @scaled(%x: tensor<Nxf32>) -> tensor<i64> {
  %0 = tensor.full 0.0 : tensor<f32>
  %1 = tensor.broadcast_to %0 : tensor<f32> to tensor<(1099511627776*N)xf32>
  %2 = tensor.size "N" : tensor<i64>
  func.return %2 : tensor<i64>
}
// CHECK-LABEL: @product
// CHECK-NEXT: tensor.constrain_size {size = "-B*T + 2305843009213693952"
func.func @product(%x: tensor<Bxf32>, %y: tensor<Txf32>) -> tensor<i64> {
  %0 = tensor.size "B*T" : tensor<i64>
  func.return %0 : tensor<i64>
}
// CHECK-LABEL: @of_one_argument
// CHECK-NOT: constrain_size
func.func @of_one_argument(%x: tensor<BxTx640xf32>) -> tensor<(B*T)x640xf32> {
  %0 = tensor.reshape %x : tensor<BxTx640xf32> to tensor<(B*T)x640xf32>
  func.return %0 : tensor<(B*T)x640xf32>
}
