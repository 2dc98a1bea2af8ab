// test: pass decompose canonicalize cse fix_numerics fuse bufferize tensor_to_loop

// the result has the buffer of x: only the piece is written, after its former elements are read
func.func @in_place(%x: tensor<5x4xf32>, %u: tensor<1x4xf32>, %i: tensor<i64>) -> tensor<5x4xf32> attributes {donate = [0]} {
  %0 = tensor.full 0 : tensor<i64>
  %1 = tensor.dynamic_slice %x, %i, %0 {shape = [1, 4]} : (tensor<5x4xf32>, tensor<i64>, tensor<i64>) -> tensor<1x4xf32>
  %2 = tensor.add %1, %u : tensor<1x4xf32>
  %3 = tensor.dynamic_update_slice %x, %2, %i, %0 : (tensor<5x4xf32>, tensor<1x4xf32>, tensor<i64>, tensor<i64>) -> tensor<5x4xf32>
  func.return %3 : tensor<5x4xf32>
}
// CHECK: loop.kernel {symbols = [], domain = [1, 4]
// CHECK: loop.load %x, %{{\d+}} {map = affine_map<(d0, d1, t0) -> (t0, d1)>
// CHECK: loop.store %{{\d+}}, %x, %{{\d+}} {map = affine_map<(d0, d1, t0) -> (t0, d1)>
// -----
// what the loop carries has one buffer
func.func @rows(%x: tensor<6xf32>) -> tensor<6x3xf32> {
  %0 = tensor.full 0.0 : tensor<6x3xf32>
  %1 = tensor.full 0 : tensor<i64>
  %2 = arith.constant 0 : index
  %3 = arith.constant 6 : index
  %4 = arith.constant 1 : index
  %5 = scf.for %i = %2 to %3 step %4 iter_args(%rows = %0) -> (tensor<6x3xf32>) {
    %6 = tensor.from_scalar %i : index to tensor<i64>
    %7 = tensor.dynamic_slice %x, %6 {shape = [1]} : (tensor<6xf32>, tensor<i64>) -> tensor<1xf32>
    %8 = tensor.reshape %7 : tensor<1xf32> to tensor<1x1xf32>
    %9 = tensor.broadcast_to %8 : tensor<1x1xf32> to tensor<1x3xf32>
    %10 = tensor.dynamic_update_slice %rows, %9, %6, %1 : (tensor<6x3xf32>, tensor<1x3xf32>, tensor<i64>, tensor<i64>) -> tensor<6x3xf32>
    scf.yield %10 : tensor<6x3xf32>
  }
  func.return %5 : tensor<6x3xf32>
}
// CHECK: scf.for
// CHECK: loop.kernel {symbols = [], domain = [1, 3]
// -----
// elements besides those of the piece are read: the result has a buffer of its own, all of which is written
func.func @shifted(%x: tensor<5x4xf32>, %i: tensor<i64>, %j: tensor<i64>) -> tensor<5x4xf32> attributes {donate = [0]} {
  %0 = tensor.full 0 : tensor<i64>
  %1 = tensor.dynamic_slice %x, %j, %0 {shape = [1, 4]} : (tensor<5x4xf32>, tensor<i64>, tensor<i64>) -> tensor<1x4xf32>
  %2 = tensor.neg %1 : tensor<1x4xf32>
  %3 = tensor.dynamic_update_slice %x, %2, %i, %0 : (tensor<5x4xf32>, tensor<1x4xf32>, tensor<i64>, tensor<i64>) -> tensor<5x4xf32>
  func.return %3 : tensor<5x4xf32>
}
// CHECK: loop.kernel {symbols = [], domain = [5, 4]
