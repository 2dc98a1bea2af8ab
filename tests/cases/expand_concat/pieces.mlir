// test: pass expand_concat{operands=2}
// tolerance: bits

// each operand is put into its place
func.func @columns(%x: tensor<600x1xf32>, %y: tensor<600x2xf32>, %z: tensor<600x1xf32>) -> tensor<600x4xf32> {
  %0 = tensor.concat %x, %y, %z {axis = 1} : (tensor<600x1xf32>, tensor<600x2xf32>, tensor<600x1xf32>) -> tensor<600x4xf32>
  func.return %0 : tensor<600x4xf32>
}
// CHECK: @columns
// CHECK: [[A:%\w+]] = tensor.dynamic_update_slice {{.*}}, %x,
// CHECK: [[B:%\w+]] = tensor.dynamic_update_slice [[A]], %y,
// CHECK: tensor.dynamic_update_slice [[B]], %z,
// -----
// so are operands of sizes that the call decides
func.func @sizes(%x: tensor<Axi1>, %y: tensor<Bxi1>, %z: tensor<Axi1>) -> tensor<(2*A + B)xi1> {
  %0 = tensor.concat %x, %y, %z {axis = 0} : (tensor<Axi1>, tensor<Bxi1>, tensor<Axi1>) -> tensor<(2*A + B)xi1>
  func.return %0 : tensor<(2*A + B)xi1>
}
// CHECK: @sizes
// CHECK: tensor.dynamic_update_slice
// CHECK: tensor.dynamic_update_slice
// CHECK: tensor.dynamic_update_slice
// -----
// few operands, and those of small results, are evaluated where they are used
func.func @few(%x: tensor<600x1xf32>, %y: tensor<4x2xf32>) -> (tensor<600x2xf32>, tensor<12x2xf32>) {
  %0 = tensor.concat %x, %x {axis = 1} : (tensor<600x1xf32>, tensor<600x1xf32>) -> tensor<600x2xf32>
  %1 = tensor.concat %y, %y, %y {axis = 0} : (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<12x2xf32>
  func.return %0, %1 : tensor<600x2xf32>, tensor<12x2xf32>
}
// CHECK: @few
// CHECK-NOT: tensor.dynamic_update_slice
