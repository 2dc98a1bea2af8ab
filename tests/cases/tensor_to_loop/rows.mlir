// test: pass decompose canonicalize cse fix_numerics fuse bufferize tensor_to_loop
// tolerance: 1e-4
// sizes: B=70

// three stages: the result's own buffer holds the exponentials until they are divided
func.func @softmax(%x: tensor<5xBxf32>) -> tensor<5xBxf32> {
  %0 = tensor.softmax %x {axis = 1} : tensor<5xBxf32>
  func.return %0 : tensor<5xBxf32>
}
// CHECK: loop.kernel %B {symbols = ["B"], domain = [5, "B"], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 64], vector = 1
// CHECK: loop.for
// CHECK: loop.load %x
// CHECK: loop.reduce %{{\d+}} {dim = 1, kind = "maximumf"}
// CHECK: loop.for
// CHECK: loop.load %x
// CHECK: loop.store %{{\d+}}, %out0
// CHECK: loop.reduce %{{\d+}} {dim = 1, kind = "add"}
// CHECK: loop.for {dim = 1} {
// CHECK-NEXT: loop.load %out0
// CHECK: arith.divf
// CHECK: loop.store %{{\d+}}, %out0
// -----
// what is the same for all points of a row is computed before the loop; what is cheap is computed again
func.func @log_softmax(%x: tensor<5x70xf32>) -> tensor<5x70xf32> {
  %0 = tensor.log_softmax %x {axis = 1} : tensor<5x70xf32>
  func.return %0 : tensor<5x70xf32>
}
// CHECK: loop.reduce %{{\d+}} {dim = 1, kind = "add"}
// CHECK: math.fma
// CHECK: loop.for {dim = 1} {
// CHECK-NEXT: loop.load %x
// CHECK-NOT: math.fma
// CHECK: loop.store %{{\d+}}, %out0
// -----
// what is dear and has no buffer to lie in goes into a scratch
func.func @scratch(%x: tensor<5x70xf32>) -> tensor<5xf32> {
  %0 = tensor.tanh %x : tensor<5x70xf32>
  %1 = tensor.var %0 {axes = [1]} : (tensor<5x70xf32>) -> tensor<5xf32>
  func.return %1 : tensor<5xf32>
}
// CHECK: [[BUFFER:%\w+]] = loop.scratch : () -> !loop.scratch<d0xd1xf32>
// CHECK: loop.store_scratch %{{\d+}}, [[BUFFER]]
// CHECK: loop.for
// CHECK: loop.load_scratch [[BUFFER]]
// CHECK: loop.store %{{\d+}}, %out0 {map = affine_map<(d0, d1) -> (d0)>
// -----
// two reductions of a stage have an accumulator each
func.func @siblings(%x: tensor<5x70xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<5x70xf32>) -> tensor<5xf32>
  %1 = tensor.reduce_max %x {axes = [1]} : (tensor<5x70xf32>) -> tensor<5xf32>
  func.return %0, %1 : tensor<5xf32>, tensor<5xf32>
}
// CHECK: :2 = loop.for %{{\d+}}, %{{\d+}} {dim = 1}
// CHECK: loop.load %x
// CHECK-NOT: loop.load
// -----
// rows across memory fold point by point, and the kept dimension may lie in vectors
func.func @columns(%x: tensor<20x70xf32>) -> tensor<20x70xf32> {
  %0 = tensor.reduce_max %x {axes = [0]} : (tensor<20x70xf32>) -> tensor<70xf32>
  %1 = tensor.sub %x, %0 : (tensor<20x70xf32>, tensor<70xf32>) -> tensor<20x70xf32>
  func.return %1 : tensor<20x70xf32>
}
// CHECK: domain = [70, 20], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1]
// CHECK: loop.load %x {map = affine_map<(d0, d1) -> (d1, d0)>
// CHECK: loop.fold %{{\w+}}, %{{\d+}} {dim = 1, kind = "maximumf"}
// CHECK: loop.for {dim = 1}
// CHECK: loop.store %{{\d+}}, %out0 {map = affine_map<(d0, d1) -> (d1, d0)>
// -----
// every step of a cumulative operation is stored, from the last one if it is in reverse
func.func @cumulative(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %0 = tensor.cumulative %x {kind = "add", axis = 1, reverse = true} : tensor<5x7xf32>
  func.return %0 : tensor<5x7xf32>
}
// CHECK: domain = [5, 7], iterator_types = ["parallel", "reduction"]
// CHECK: loop.load %x {map = affine_map<(d0, d1) -> (d0, -d1 + 6)>
// CHECK: loop.scan %{{\w+}}, %{{\d+}} {dim = 1, kind = "add"}
// CHECK: loop.store %{{\d+}}, %out0 {map = affine_map<(d0, d1) -> (d0, -d1 + 6)>
// -----
// a scatter copies x and goes through the updates of each column in order
func.func @scatter(%x: tensor<5x7xf32>, %i: tensor<4xi64>, %u: tensor<4x7xf32>) -> tensor<5x7xf32> {
  %five = tensor.full 5 : tensor<i64>
  %at = tensor.rem %i, %five : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
  %0 = tensor.scatter %x, %at, %u {axis = 0, kind = "add"} : (tensor<5x7xf32>, tensor<4xi64>, tensor<4x7xf32>) -> tensor<5x7xf32>
  func.return %0 : tensor<5x7xf32>
}
// CHECK: label = "rem"
// CHECK: domain = [7, 5, 4], iterator_types = ["parallel", "reduction", "reduction"]
// CHECK: loop.for {dim = 1}
// CHECK: loop.for {dim = 2}
// CHECK: loop.check
// CHECK: loop.load %out0, %{{\d+}}, %{{\d+}} {map = affine_map<(d0, d1, d2, t0) -> (t0, d0)>
// CHECK: loop.store %{{\d+}}, %out0, %{{\d+}}, %{{\d+}} {map = affine_map<(d0, d1, d2, t0) -> (t0, d0)>
// -----
// in place nothing is copied
func.func @in_place(%x: tensor<5xf32>, %i: tensor<4xi64>, %u: tensor<4xf32>) -> tensor<5xf32> attributes {donate = [0]} {
  %five = tensor.full 5 : tensor<i64>
  %at = tensor.rem %i, %five : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
  %0 = tensor.scatter %x, %at, %u {axis = 0, kind = "set"} : (tensor<5xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<5xf32>
  func.return %0 : tensor<5xf32>
}
// CHECK: label = "scatter"
// CHECK-NEXT: loop.for {dim = 1}
// CHECK-NOT: loop.for
// -----
// of rows across memory a scratch has the points first, for vectors go along a kept dimension
func.func @scratch_across(%x: tensor<20x70xf32>) -> tensor<70xf32> {
  %0 = tensor.tanh %x : tensor<20x70xf32>
  %1 = tensor.var %0 {axes = [0]} : (tensor<20x70xf32>) -> tensor<70xf32>
  func.return %1 : tensor<70xf32>
}
// CHECK: loop.scratch : () -> !loop.scratch<d1xd0xf32>
// -----
// a value with an element per point, but without an axis of size 1, is stored as one
func.func @unit_axis(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x1xf32>) {
  %0 = tensor.mul %x, %x : tensor<2x3xf32>
  %1 = tensor.reshape %0 : tensor<2x3xf32> to tensor<2x3x1xf32>
  %2 = tensor.abs %1 : tensor<2x3x1xf32>
  %3 = tensor.reduce_sum %2 {axes = [1]} : (tensor<2x3x1xf32>) -> tensor<2x1xf32>
  func.return %0, %3 : tensor<2x3xf32>, tensor<2x1xf32>
}
// CHECK: loop.kernel {{.*}}label = "mul_abs_reduce_sum"
// CHECK: loop.store %{{\d+}}, %out0 {map = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK: loop.store %{{\d+}}, %out1 {map = affine_map<(d0, d1, d2) -> (d0, 0)>
// -----
// reduced axes that are neighbours lie side by side, whatever their sizes
func.func @neighbours(%x: tensor<2xHxWxf32>) -> tensor<2xf32> {
  %0 = tensor.reduce_sum %x {axes = [1, 2]} : (tensor<2xHxWxf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
// CHECK: [[R:%\w+]] = memref.cast
// CHECK: loop.load [[R]] {map = affine_map<(d0, d1)[H, W] -> (H*W*d0 + d1)>
// -----
// each product is added by a fused multiply-add, point by point; factors are computed where they are read
func.func @multiply_add(%x: tensor<7x70xf32>, %y: tensor<70xf32>) -> tensor<70xf32> {
  %0 = tensor.exp %y : tensor<70xf32>
  %1 = tensor.broadcast_to %0 : tensor<70xf32> to tensor<7x70xf32>
  %2 = tensor.reduce_fma %x, %1 {axes = [0]} : (tensor<7x70xf32>, tensor<7x70xf32>) -> tensor<70xf32>
  func.return %2 : tensor<70xf32>
}
// CHECK: loop.for
// CHECK: [[X:%\w+]] = loop.load %x
// CHECK: loop.fold_fma %{{\w+}}, [[X]], %{{\w+}} {dim = 1}
// CHECK-NOT: arith.mulf
// -----
// integers have no order: beside a sum of floats in lanes, they are added lane by lane
func.func @integers(%x: tensor<Nxui32>) -> (tensor<f32>, tensor<ui32>) {
  %0 = tensor.cast %x : tensor<Nxui32> to tensor<Nxf32>
  %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<Nxf32>) -> tensor<f32>
  %2 = tensor.reduce_fma %x, %x {axes = [0]} : (tensor<Nxui32>, tensor<Nxui32>) -> tensor<ui32>
  func.return %1, %2 : tensor<f32>, tensor<ui32>
}
// CHECK: [[X:%\w+]] = loop.load %x
// CHECK: arith.muli
// CHECK-NOT: loop.fold_fma
