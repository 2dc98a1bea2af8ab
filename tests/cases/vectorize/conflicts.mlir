// test: pass fuse bufferize tensor_to_loop coalesce_dimensions vectorize
// tolerance: bits

// rows 4 KiB apart are in one set of the first cache, of 8 lines: a tile has fewer of them than of others
func.func @main(%x: tensor<28x1024xf32>, %y: tensor<28x1040xf32>, %w: tensor<2x1024x32xf32>, %u: tensor<2x1040x32xf32>) -> (tensor<28x64xf32>, tensor<28x64xf32>) {
  %0 = tensor.unpack %w {axis = 0, size = 64} : (tensor<2x1024x32xf32>) -> tensor<64x1024xf32>
  %1 = tensor.dot_general %x, %0 {batch = [], contract = [[1, 1]], order = "chain"} : (tensor<28x1024xf32>, tensor<64x1024xf32>) -> tensor<28x64xf32>
  %2 = tensor.unpack %u {axis = 0, size = 64} : (tensor<2x1040x32xf32>) -> tensor<64x1040xf32>
  %3 = tensor.dot_general %y, %2 {batch = [], contract = [[1, 1]], order = "chain"} : (tensor<28x1040xf32>, tensor<64x1040xf32>) -> tensor<28x64xf32>
  func.return %1, %3 : tensor<28x64xf32>, tensor<28x64xf32>
}
// CHECK: domain = [28, 64, 1024]
// CHECK-SAME: "strip_mine(dim=0, size=6)"
// CHECK: domain = [28, 64, 1040]
// CHECK-SAME: "strip_mine(dim=0, size=14)"
