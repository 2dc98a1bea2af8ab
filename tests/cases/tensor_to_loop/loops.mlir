// test: pass fix_numerics fuse bufferize tensor_to_loop
// tolerance: 1e-4
// sizes: B=70

// by lanes: 64 chains side by side, the identity past the end, then a tree
func.func @lanes(%x: tensor<5xBxf32>) -> tensor<5xf32> {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<5xBxf32>) -> tensor<5xf32>
  func.return %0 : tensor<5xf32>
}
// CHECK: loop.kernel %B {symbols = ["B"], domain = [5, "B"], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 64], vector = 1
// CHECK: loop.for %{{\d+}} {dim = 1, run = 32, kinds = ["add"]} : !loop.tile<d0xd1xf32>
// CHECK: loop.in_bounds {dim = 1}
// CHECK: arith.select
// CHECK: arith.addf
// CHECK: loop.reduce %{{\d+}} {dim = 1, kind = "add"}
// CHECK: loop.store
// -----
// a chain folds one element after the other; what it reads is computed inside, its consumer after
func.func @chain(%x: tensor<Bx7xf32>) -> tensor<7xf32> {
  %0 = tensor.mul %x, %x : tensor<Bx7xf32>
  %1 = tensor.reduce_max %0 {axes = [0]} : (tensor<Bx7xf32>) -> tensor<7xf32>
  %2 = tensor.sqrt %1 : tensor<7xf32>
  func.return %2 : tensor<7xf32>
}
// CHECK: domain = [7, "B"], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1]
// CHECK: loop.for
// CHECK: arith.mulf
// CHECK: loop.fold %{{\w+}}, %{{\d+}} {dim = 1, kind = "maximumf"}
// CHECK: loop.yield
// CHECK: math.sqrt
// -----
// several contracted axes are one dimension, in row-major order
func.func @product(%x: tensor<2x3x5xf32>, %y: tensor<5x4x3xf32>) -> tensor<2x4xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[2, 0], [1, 2]]} : (tensor<2x3x5xf32>, tensor<5x4x3xf32>) -> tensor<2x4xf32>
  func.return %0 : tensor<2x4xf32>
}
// CHECK: domain = [2, 4, 15], iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2 mod 3, d2 floordiv 3)>
// CHECK: loop.contract %{{\w+}}, %{{\d+}}, %{{\d+}} {dim = 2}
// -----
// what reads a product under a shape with other axes of size 1 shares its loops
func.func @single(%x: tensor<3x8xf32>, %y: tensor<8x1xf32>) -> tensor<1x3xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<3x8xf32>, tensor<8x1xf32>) -> tensor<3x1xf32>
  %1 = tensor.reshape %0 : tensor<3x1xf32> to tensor<1x3xf32>
  %2 = tensor.sqrt %1 : tensor<1x3xf32>
  func.return %2 : tensor<1x3xf32>
}
// CHECK: domain = [3, 1, 8], iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: loop.store %{{\d+}}, %out0 {map = affine_map<(d0, d1, d2) -> (0, d0)>
// -----
// an order that is given is kept, of an exact reduction too: vectors lie across the windows of a pooling
func.func @pool(%x: tensor<4x8x9xf32>) -> tensor<4x8xf32> {
  %0 = tensor.reduce_max %x {axes = [2], order = "chain"} : (tensor<4x8x9xf32>) -> tensor<4x8xf32>
  func.return %0 : tensor<4x8xf32>
}
// CHECK: domain = [4, 8, 9], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]
// CHECK: loop.fold %{{\w+}}, %{{\d+}} {dim = 2, kind = "maximumf"}
// -----
// slices of two elements are chains
func.func @pairs(%x: tensor<64x2xf32>) -> tensor<64xf32> {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<64x2xf32>) -> tensor<64xf32>
  func.return %0 : tensor<64xf32>
}
// CHECK: domain = [64, 2], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1]
