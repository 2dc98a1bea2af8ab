// test: pass fix_numerics fuse bufferize tensor_to_loop
// tolerance: bits
// sizes: B=4

// movement of elements is arithmetic in access maps: one kernel, one load
func.func @moved(%x: tensor<6x20xf32>) -> tensor<10x4xf32> {
  %0 = tensor.slice %x {starts = [1, 19], stops = [5, -1], steps = [1, -2]} : (tensor<6x20xf32>) -> tensor<4x10xf32>
  %1 = tensor.transpose %0 {perm = [1, 0]} : (tensor<4x10xf32>) -> tensor<10x4xf32>
  %2 = tensor.reverse %1 {axes = [1]} : tensor<10x4xf32>
  func.return %2 : tensor<10x4xf32>
}
// CHECK: loop.kernel
// CHECK-NEXT: loop.load %x {map = affine_map<(d0, d1) -> (-d1 + 4, -2*d0 + 19)>
// CHECK-NEXT: loop.store %{{\d+}}, %out0 {map = affine_map<(d0, d1) -> (d0, d1)>
// -----
// what padding adds is not read: the load has a mask, and the filler stands where it fails
func.func @padded(%x: tensor<Bx5xf32>, %v: tensor<f32>) -> tensor<(2*B)x7xf32> {
  %0 = tensor.pad %x, %v {low = [0, 2], high = [0, 0], interior = [1, 0]} : (tensor<Bx5xf32>, tensor<f32>) -> tensor<(2*B)x7xf32>
  func.return %0 : tensor<(2*B)x7xf32>
}
// CHECK: loop.index {map = affine_map<(d0, d1) -> (d0 mod 2)>}
// CHECK: arith.cmpi eq
// CHECK: loop.index {map = affine_map<(d0, d1) -> (d0 floordiv 2)>}
// CHECK: arith.cmpi slt
// CHECK: loop.index {map = affine_map<(d0, d1) -> (d1 - 2)>}
// CHECK: arith.cmpi sge
// CHECK: loop.load %x, %{{\d+}} {map = affine_map<(d0, d1) -> (d0 floordiv 2, d1 - 2)>
// CHECK: arith.select
// -----
// the parts of a concatenation have one mask each
func.func @joined(%x: tensor<3x7xf32>, %y: tensor<Bx7xf32>) -> tensor<(B + 3)x7xf32> {
  %0 = tensor.concat %x, %y {axis = 0} : (tensor<3x7xf32>, tensor<Bx7xf32>) -> tensor<(B + 3)x7xf32>
  func.return %0 : tensor<(B + 3)x7xf32>
}
// CHECK: loop.kernel %B {symbols = ["B"], domain = ["B + 3", 7], iterator_types = ["parallel", "parallel"]
// CHECK: loop.load %x, %{{\d+}} {map = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: loop.load %y, %{{\d+}} {map = affine_map<(d0, d1) -> (d0 - 3, d1)>
// -----
// an index tile stands in the map as t0; indices out of range are reported, and nothing is read there
func.func @taken(%x: tensor<5x7xf32>, %i: tensor<2xi32>) -> tensor<2x7xf32> {
  %five = tensor.full 5 : tensor<i32>
  %0 = tensor.rem %i, %five : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  %1 = tensor.take %x, %0 {axis = 0} : (tensor<5x7xf32>, tensor<2xi32>) -> tensor<2x7xf32>
  func.return %1 : tensor<2x7xf32>
}
// CHECK: loop.check [[OK:%\w+]], %errors {element = affine_map<(d0, d1) -> (7*d0 + d1)>, site = 0}
// CHECK: loop.load %x, %{{\d+}}, [[OK]] {map = affine_map<(d0, d1, t0) -> (t0, d1)>
// -----
// dimensions of size 1 stay where they are
func.func @single(%x: tensor<4x1xf32>) -> tensor<1xf32> {
  %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<4x1xf32>) -> tensor<1xf32>
  %1 = tensor.sqrt %0 : tensor<1xf32>
  func.return %1 : tensor<1xf32>
}
// CHECK: loop.kernel {symbols = [], domain = [1, 4], iterator_types = ["parallel", "reduction"]
// CHECK: loop.load %x {map = affine_map<(d0, d1) -> (d1, 0)>
// CHECK: loop.store %{{\d+}}, %out0 {map = affine_map<(d0, d1) -> (0)>
