// test: pass fuse bufferize tensor_to_loop coalesce_dimensions vectorize
// tolerance: bits

// the batch dimension is that of vectors, so each column has rows of its own: there is no panel of rows to read again
func.func @main(%x: tensor<33x33xBxf16>, %y: tensor<Bx33xf16>) -> tensor<Bx33x5xf16> {
  %0 = tensor.cast %x : tensor<33x33xBxf16> to tensor<33x33xBxf32>
  %1 = tensor.cast %y : tensor<Bx33xf16> to tensor<Bx33xf32>
  %2 = tensor.dot_general %0, %1 {batch = [[2, 0]], contract = [[1, 1]], order = "chain"} : (tensor<33x33xBxf32>, tensor<Bx33xf32>) -> tensor<Bx33xf32>
  %3 = tensor.cast %2 : tensor<Bx33xf32> to tensor<Bx33xf16>
  %4 = tensor.reshape %3 : tensor<Bx33xf16> to tensor<Bx33x1xf16>
  %5 = tensor.broadcast_to %4 : tensor<Bx33x1xf16> to tensor<Bx33x5xf16>
  func.return %5 : tensor<Bx33x5xf16>
}
// CHECK: vector = 0
// CHECK-NOT: pack(side=lhs
// CHECK: loop.contract
