// test: pass fix_numerics canonicalize fuse
// tolerance: 1e-4

// a pointwise consumer is the epilogue of a contraction
func.func @epilogue(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<4x16xf32> {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = tensor.add %0, %b : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %2 = tensor.full 0.0 : tensor<f32>
  %3 = tensor.maximum %1, %2 : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x16xf32>
  func.return %3 : tensor<4x16xf32>
}
// CHECK: tensor.kernel %x, %w, %b {label = "dot_general_add_maximum"
// CHECK-NOT: tensor.kernel
// -----
// what only moves elements is left to the contraction, a copy for each: its schedule packs what it reads
func.func @moved(%x: tensor<8x4xbf16>, %w: tensor<8x16xf32>) -> (tensor<4x16xf32>, tensor<8x8xf32>) {
  %0 = tensor.cast %x {dtype = f32} : tensor<8x4xbf16> to tensor<8x4xf32>
  %1 = tensor.transpose %0 {perm = [1, 0]} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %2 = tensor.dot_general %1, %w {batch = [], contract = [[1, 0]]} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %3 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 0]]} : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  func.return %2, %3 : tensor<4x16xf32>, tensor<8x8xf32>
}
// CHECK: tensor.kernel %{{[xw]}}, %{{[xw]}} {label = "cast_transpose_dot_general"
// CHECK: tensor.kernel %x {label = "cast_{{[a-z_]*}}_dot_general"
// CHECK-NOT: tensor.kernel
// -----
// a pointwise producer is evaluated where a reduction reads it, and the reduction's consumer runs after it
func.func @absorbed(%x: tensor<5x40xf32>) -> tensor<5xf32> {
  %0 = tensor.mul %x, %x : tensor<5x40xf32>
  %1 = tensor.reduce_sum %0 {axes = [1]} : (tensor<5x40xf32>) -> tensor<5xf32>
  %2 = tensor.sqrt %1 : tensor<5xf32>
  func.return %2 : tensor<5xf32>
}
// CHECK: tensor.kernel %x {label = "mul_reduce_sum_sqrt"
// CHECK-NOT: tensor.kernel
// -----
// one kernel may have several results
func.func @results(%x: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>) {
  %0 = tensor.neg %x : tensor<7xf32>
  %1 = tensor.floor %0 : tensor<7xf32>
  func.return %0, %1 : tensor<7xf32>, tensor<7xf32>
}
// CHECK: :2 = tensor.kernel %x {label = "neg_floor"
// CHECK: tensor.yield %{{\d+}}, %{{\d+}} : tensor<7xf32>, tensor<7xf32>
// -----
// what costs nothing is copied to every reader
func.func @free(%x: tensor<3x5xf32>, %y: tensor<5xf32>) -> (tensor<3x5xf32>, tensor<5xf32>) {
  %c = tensor.full 2.0 : tensor<f32>
  %0 = tensor.mul %x, %c : (tensor<3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
  %1 = tensor.add %y, %c : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  func.return %0, %1 : tensor<3x5xf32>, tensor<5xf32>
}
// CHECK: tensor.kernel %x
// CHECK: tensor.full 2.0
// CHECK: tensor.kernel %y
// CHECK: tensor.full 2.0
// -----
// a reshape that moves elements to other axes is a view between kernels; one of axes of size 1 is none
func.func @views(%x: tensor<6x4xf32>) -> (tensor<3x8xf32>, tensor<6x1x4xf32>) {
  %0 = tensor.neg %x : tensor<6x4xf32>
  %1 = tensor.reshape %0 : tensor<6x4xf32> to tensor<3x8xf32>
  %2 = tensor.abs %1 : tensor<3x8xf32>
  %3 = tensor.abs %x : tensor<6x4xf32>
  %4 = tensor.reshape %3 : tensor<6x4xf32> to tensor<6x1x4xf32>
  %5 = tensor.neg %4 : tensor<6x1x4xf32>
  func.return %2, %5 : tensor<3x8xf32>, tensor<6x1x4xf32>
}
// CHECK: [[A:%\w+]] = tensor.kernel %x {label = "neg"
// CHECK: [[B:%\w+]] = tensor.reshape [[A]] : tensor<6x4xf32> to tensor<3x8xf32>
// CHECK: tensor.kernel [[B]] {label = "abs"
// CHECK: tensor.kernel %x {label = "abs_neg"
// -----
// what is returned comes from a kernel of its own result: an argument, or the same value twice, is copied
func.func @returned(%x: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7xf32>) {
  %0 = tensor.neg %x : tensor<7xf32>
  func.return %x, %0, %0 : tensor<7xf32>, tensor<7xf32>, tensor<7xf32>
}
// CHECK: tensor.kernel %x {label = "neg"
// CHECK: tensor.kernel %x {label = "copy"
// CHECK: tensor.kernel %{{\d+}} {label = "copy"
// -----
// what nobody reads gets no kernel
func.func @unread(%x: tensor<7xf32>) -> tensor<7xf32> {
  %0 = tensor.neg %x : tensor<7xf32>
  %1 = tensor.abs %0 : tensor<7xf32>
  %2 = tensor.sqrt %x : tensor<7xf32>
  func.return %2 : tensor<7xf32>
}
// CHECK: tensor.kernel %x {label = "sqrt"
// CHECK-NOT: tensor.kernel
// -----
// two sums over one tensor are no siblings if one is of what a kernel computes that reads the other
func.func @in_between(%a: tensor<40x40xf32>, %b: tensor<40x40xf32>) -> (tensor<40x40xf32>, tensor<40xf32>) {
  %sum = tensor.reduce_sum %a {axes = [1]} : (tensor<40x40xf32>) -> tensor<40xf32>
  %p = tensor.sqrt %b : tensor<40x40xf32>
  %turned = tensor.transpose %p {perm = [1, 0]} : (tensor<40x40xf32>) -> tensor<40x40xf32>
  %product = tensor.mul %a, %turned : tensor<40x40xf32>
  %sibling = tensor.reduce_sum %product {axes = [1]} : (tensor<40x40xf32>) -> tensor<40xf32>
  %scaled = tensor.mul %p, %sum : (tensor<40x40xf32>, tensor<40xf32>) -> tensor<40x40xf32>
  func.return %scaled, %sibling : tensor<40x40xf32>, tensor<40xf32>
}
// CHECK: @in_between
// CHECK: tensor.kernel
// CHECK-NOT: tensor.mul
// CHECK: tensor.kernel
// CHECK: tensor.sqrt
// CHECK: tensor.mul
// CHECK: tensor.kernel
// CHECK: tensor.transpose
