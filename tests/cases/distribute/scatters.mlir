// test: pass fix_numerics fuse bufferize tensor_to_loop coalesce_dimensions distribute
// tolerance: bits

// Few columns and many rows: CTAs divide the rows, and each applies the updates of its own, in their order.
func.func @embedding(%x: tensor<300x3xf32>, %i: tensor<40xi64>, %g: tensor<40x3xf32>) -> tensor<300x3xf32> {
  %seven = tensor.full 7 : tensor<40xi64>
  %at = tensor.rem %i, %seven : tensor<40xi64>
  %0 = tensor.scatter %x, %at, %g {axis = 0, kind = "add"} : (tensor<300x3xf32>, tensor<40xi64>, tensor<40x3xf32>) -> tensor<300x3xf32>
  func.return %0 : tensor<300x3xf32>
}
// CHECK: row_parts = 37
// -----
// So do those of a scatter along rows, with an index for each column, which each thread asks for by itself.
func.func @along(%x: tensor<300x3xf32>, %i: tensor<40x3xi64>, %g: tensor<40x3xf32>) -> tensor<300x3xf32> {
  %seven = tensor.full 7 : tensor<40x3xi64>
  %at = tensor.rem %i, %seven : tensor<40x3xi64>
  %0 = tensor.scatter_along %x, %at, %g {axis = 0, kind = "add"} : (tensor<300x3xf32>, tensor<40x3xi64>, tensor<40x3xf32>) -> tensor<300x3xf32>
  func.return %0 : tensor<300x3xf32>
}
// CHECK: row_parts = 4
