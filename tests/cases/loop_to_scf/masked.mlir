// test: pass fix_numerics fuse bufferize tensor_to_loop coalesce_dimensions vectorize{machine=vector_bits:128;vector_registers:16;l2_bytes:128} loop_to_scf canonicalize cse
// tolerance: 1e-4

// where the last columns of a panel are masked, all columns have the same code
func.func @panels(%x: tensor<30x3xf32>, %y: tensor<3x19xf32>) -> tensor<30x19xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<30x3xf32>, tensor<3x19xf32>) -> tensor<30x19xf32>
  func.return %0 : tensor<30x19xf32>
}
// CHECK: scf.for %{{\w+}} = {{.*}} {
// CHECK: vector.create_mask
// CHECK: vector.maskedload %y
// CHECK: math.fma
// CHECK: vector.maskedstore %out0
// CHECK-NOT: vector.create_mask
// -----
// parts of a concatenation that fill vectors are told apart once for each vector, not for each lane; others are not
func.func @parts(%x: tensor<5x64xf32>, %y: tensor<5x64xf32>) -> tensor<5x128xf32> {
  %0 = tensor.concat %x, %y {axis = 1} : (tensor<5x64xf32>, tensor<5x64xf32>) -> tensor<5x128xf32>
  func.return %0 : tensor<5x128xf32>
}
// CHECK-NOT: vector.step
// CHECK: vector.maskedload %y
// -----
func.func @short_parts(%x: tensor<5x50xf32>, %y: tensor<5x14xf32>) -> tensor<5x64xf32> {
  %0 = tensor.concat %x, %y {axis = 1} : (tensor<5x50xf32>, tensor<5x14xf32>) -> tensor<5x64xf32>
  func.return %0 : tensor<5x64xf32>
}
// CHECK: vector.step
// CHECK: vector.maskedload %y
