// test: pass fix_numerics fuse bufferize
// sizes: B=3 N=2

// arrays of the program are globals; a reshape is a view of a buffer, and a bool a byte
func.func @constants(%x: tensor<2x3xi1>) -> tensor<3x2xi1> {
  %0 = tensor.constant dense<[[true, false, true], [false, true, true]]> : tensor<2x3xi1>
  %1 = tensor.and %0, %x : tensor<2x3xi1>
  %2 = tensor.reshape %1 : tensor<2x3xi1> to tensor<3x2xi1>
  func.return %2 : tensor<3x2xi1>
}
// CHECK: memref.global "private" constant @constant_0 : memref<2x3xi8> = dense<{{\[\[1, 0, 1\], \[0, 1, 1\]\]}}>
// CHECK: func.func @constants(%x: memref<2x3xi8>, %out0: memref<3x2xi8>
// CHECK: memref.get_global @constant_0
// CHECK: memref.reinterpret_cast
// -----
// kernels that index get the error record, and the function says which place each number of it stands for
func.func @indexed(%x: tensor<Bx3xf32>, %i: tensor<Nxi64>) -> tensor<NxBx3xf32> {
  %n = tensor.size "B" : tensor<i64>
  %0 = tensor.rem %i, %n : (tensor<Nxi64>, tensor<i64>) -> tensor<Nxi64>
  %1 = tensor.take %x, %0 {axis = 0} : (tensor<Bx3xf32>, tensor<Nxi64>) -> tensor<Nx3xf32>
  %2 = tensor.reshape %1 : tensor<Nx3xf32> to tensor<Nx1x3xf32>
  %3 = tensor.add %2, %x : (tensor<Nx1x3xf32>, tensor<Bx3xf32>) -> tensor<NxBx3xf32>
  func.return %3 : tensor<NxBx3xf32>
}
// CHECK: func.func @indexed(%B: index, %N: index
// CHECK-SAME: interface = "(tensor<Bx3xf32>, tensor<Nxi64>) -> tensor<NxBx3xf32>"
// CHECK-SAME: symbols = ["B", "N"]
// CHECK-SAME: error_sites = ["tests/cases/bufferize/functions.mlir:{{\d+}}:{{\d+}}: an index of take is out of range for axis 0 of size B"]
// CHECK: tensor.kernel {{.*}}%errors {
// -----
// updates of one tensor are done in place, in the buffer of the result
func.func @pieces(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<6xf32> {
  %z = tensor.full 0.0 : tensor<6xf32>
  %i = tensor.full 0 : tensor<i64>
  %j = tensor.full 3 : tensor<i64>
  %0 = tensor.dynamic_update_slice %z, %x, %i : (tensor<6xf32>, tensor<3xf32>, tensor<i64>) -> tensor<6xf32>
  %1 = tensor.dynamic_update_slice %0, %y, %j : (tensor<6xf32>, tensor<3xf32>, tensor<i64>) -> tensor<6xf32>
  func.return %1 : tensor<6xf32>
}
// CHECK: func.func @pieces
// CHECK: tensor.kernel %x, %out0 {
// CHECK: tensor.kernel %out0, %y, %out0 {
// -----
// an update is not done in the buffer of the result while that has a tensor that is read later
func.func @kept(%x: tensor<2x4xf32>) -> (tensor<4x4xf32>, tensor<2x4x4xf32>) {
  %i = tensor.full 0 : tensor<i64>
  %j = tensor.full 2 : tensor<i64>
  %k = tensor.full 1 : tensor<i64>
  %z = tensor.full 0.0 : tensor<4x4xf32>
  %0 = tensor.dynamic_update_slice %z, %x, %i, %i : (tensor<4x4xf32>, tensor<2x4xf32>, tensor<i64>, tensor<i64>) -> tensor<4x4xf32>
  %1 = tensor.dynamic_update_slice %0, %x, %j, %i : (tensor<4x4xf32>, tensor<2x4xf32>, tensor<i64>, tensor<i64>) -> tensor<4x4xf32>
  %2 = tensor.dynamic_update_slice %1, %x, %k, %i : (tensor<4x4xf32>, tensor<2x4xf32>, tensor<i64>, tensor<i64>) -> tensor<4x4xf32>
  %3 = tensor.dynamic_update_slice %2, %x, %i, %i : (tensor<4x4xf32>, tensor<2x4xf32>, tensor<i64>, tensor<i64>) -> tensor<4x4xf32>
  %4 = tensor.reshape %1 : tensor<4x4xf32> to tensor<1x4x4xf32>
  %w = tensor.full 0.0 : tensor<2x4x4xf32>
  %5 = tensor.dynamic_update_slice %w, %4, %i, %i, %i : (tensor<2x4x4xf32>, tensor<1x4x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x4x4xf32>
  %6 = tensor.dynamic_update_slice %5, %4, %k, %i, %i : (tensor<2x4x4xf32>, tensor<1x4x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x4x4xf32>
  func.return %3, %6 : tensor<4x4xf32>, tensor<2x4x4xf32>
}
// CHECK: func.func @kept
// -----
// a result that is updated in place is in its buffer before the update, while the argument is still read
func.func private @later(%x: tensor<8xf32>, %u: tensor<2xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = tensor.cumulative %x {kind = "add", axis = 0} : tensor<8xf32>
  %1 = tensor.reverse %x {axes = [0]} : tensor<8xf32>
  %2 = tensor.constant dense<[3, 0]> : tensor<2xi64>
  %3 = tensor.scatter_along %0, %2, %u {axis = 0} : (tensor<8xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<8xf32>
  func.return %3, %1 : tensor<8xf32>, tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>, %u: tensor<2xf32>) -> tensor<8xf32> {
  %0 = tensor.abs %x : tensor<8xf32>
  %1:2 = func.call @later(%0, %u) : (tensor<8xf32>, tensor<2xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %2 = tensor.add %1#0, %1#1 : tensor<8xf32>
  func.return %2 : tensor<8xf32>
}
// CHECK: tensor.kernel %x, %out0 {label = "cumulative"
// CHECK: tensor.kernel %x, %out1 {label = "reverse"
// CHECK: @main
// -----
// nor may it be in the buffer of a donated argument that is still read
func.func @donated(%x: tensor<8xf32>, %u: tensor<2xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {donate = [0]} {
  %0 = tensor.cumulative %x {kind = "add", axis = 0} : tensor<8xf32>
  %1 = tensor.reverse %x {axes = [0]} : tensor<8xf32>
  %2 = tensor.constant dense<[3, 0]> : tensor<2xi64>
  %3 = tensor.scatter_along %0, %2, %u {axis = 0} : (tensor<8xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<8xf32>
  func.return %3, %1 : tensor<8xf32>, tensor<8xf32>
}
// CHECK: aliases = [-1, -1]
