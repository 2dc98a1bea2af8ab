// test: pass fix_numerics fuse bufferize tensor_to_loop collapse vectorize
// tolerance: 1e-4
// sizes: B=5

// the collapsed dimension in four registers of 512 bits
func.func @pointwise(%x: tensor<Bx40xf32>) -> tensor<Bx40xf32> {
  %0 = tensor.sqrt %x : tensor<Bx40xf32>
  func.return %0 : tensor<Bx40xf32>
}
// CHECK: domain = ["40*B"], parallel = 1, tile = [64], vector = 0, label = "sqrt", schedule = ["block(dim=0, size=64, vector=True)"]
// -----
// a short dimension takes no more lanes than it fills
func.func @short(%x: tensor<5xf32>, %y: tensor<20xf64>) -> (tensor<5xf32>, tensor<20xf64>) {
  %0 = tensor.sqrt %x : tensor<5xf32>
  %1 = tensor.sqrt %y : tensor<20xf64>
  func.return %0, %1 : tensor<5xf32>, tensor<20xf64>
}
// CHECK: domain = [5], parallel = 1, tile = [16]
// CHECK: domain = [20], parallel = 1, tile = [32]
// -----
// vectors lie along the dimension in which most buffers are contiguous: writing is, reading is not
func.func @turned(%x: tensor<50x70xf32>, %b: tensor<50xf32>) -> tensor<70x50xf32> {
  %0 = tensor.transpose %x {perm = [1, 0]} : (tensor<50x70xf32>) -> tensor<70x50xf32>
  %1 = tensor.add %0, %b : (tensor<70x50xf32>, tensor<50xf32>) -> tensor<70x50xf32>
  func.return %1 : tensor<70x50xf32>
}
// CHECK: domain = [70, 50], parallel = 2, tile = [1, 64], vector = 1
// -----
// a contraction keeps rows x vectors of columns; its sum is no vector dimension
func.func @product(%x: tensor<Bx7xf32>, %y: tensor<7x70xf32>) -> tensor<Bx70xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<Bx7xf32>, tensor<7x70xf32>) -> tensor<Bx70xf32>
  func.return %0 : tensor<Bx70xf32>
}
// CHECK: domain = ["B", 70, 7], parallel = 2, tile = [6, 64, 1], vector = 1
// -----
// a reduction by lanes comes with its vector dimension, a chain runs across vectors of results
func.func @sums(%x: tensor<5x70xf32>) -> (tensor<5xf32>, tensor<70xf32>) {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<5x70xf32>) -> tensor<5xf32>
  %1 = tensor.reduce_sum %x {axes = [0]} : (tensor<5x70xf32>) -> tensor<70xf32>
  func.return %0, %1 : tensor<5xf32>, tensor<70xf32>
}
// CHECK: domain = [5, 70], parallel = 1, tile = [1, 64], vector = 1
// CHECK: domain = [70, 5], parallel = 1, tile = [64, 1], vector = 0
