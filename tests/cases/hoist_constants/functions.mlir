// test: pass hoist_constants{panels=true}
// tolerance: bits

// a function that is called with other weights has a function of its own for what it computes of them
func.func private @layer(%x: tensor<5x4xf32>, %w: tensor<16x4xf32>, %s: tensor<16xf32>) -> tensor<5x16xf32> {
  %y = tensor.dot_general %x, %w {batch = [], contract = [[1, 1]], order = "chain"} : (tensor<5x4xf32>, tensor<16x4xf32>) -> tensor<5x16xf32>
  %r = tensor.mul %s, %s : tensor<16xf32>
  %z = tensor.add %y, %r : (tensor<5x16xf32>, tensor<16xf32>) -> tensor<5x16xf32>
  func.return %z : tensor<5x16xf32>
}
func.func @main(%x: tensor<5x4xf32>, %v: tensor<16x4xf32>, %w: tensor<16x4xf32>, %s: tensor<16xf32>) -> (tensor<5x16xf32>, tensor<5x16xf32>) attributes {constants = [1, 2, 3]} {
  %0 = func.call @layer(%x, %v, %s) : (tensor<5x4xf32>, tensor<16x4xf32>, tensor<16xf32>) -> tensor<5x16xf32>
  %1 = func.call @layer(%x, %w, %s) : (tensor<5x4xf32>, tensor<16x4xf32>, tensor<16xf32>) -> tensor<5x16xf32>
  func.return %0, %1 : tensor<5x16xf32>, tensor<5x16xf32>
}
// CHECK: func.func private @layer_constants(%w: {{.*}}, %s: {{.*}}) -> (tensor<1x4x16xf32>, tensor<16xf32>)
// CHECK: func.func private @layer(
// CHECK: tensor.unpack
// CHECK-NOT: tensor.mul
// CHECK: @main_constants(
// CHECK: func.call @layer_constants(%v, %s)
// CHECK: func.call @layer_constants(%w, %s)
// CHECK: @main_with_constants(
// CHECK-NOT: func.call @layer_constants
// -----
// an argument that is no constant at one of the calls is none
func.func private @layer(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %r = tensor.mul %w, %w : tensor<4xf32>
  %z = tensor.add %x, %r : tensor<4xf32>
  func.return %z : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {constants = [1]} {
  %0 = func.call @layer(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @layer(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-NOT: _constants
// -----
// constants in loops are computed before these
func.func @main(%x: tensor<4x16xf32>, %w: tensor<16x16xf32>, %n: index) -> tensor<4x16xf32> attributes {constants = [1]} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<4x16xf32>) {
    %t = tensor.transpose %w {perm = [1, 0]} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %u = tensor.mul %t, %w : tensor<16x16xf32>
    %y = tensor.dot_general %a, %u {batch = [], contract = [[1, 0]], order = "chain"} : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
    scf.yield %y : tensor<4x16xf32>
  }
  func.return %r : tensor<4x16xf32>
}
// CHECK: @main_constants
// CHECK: tensor.mul
// CHECK: tensor.pack
// CHECK: @main_with_constants
// CHECK: scf.for
// CHECK-NEXT: [[U:%\w+]] = tensor.unpack
// CHECK-NEXT: tensor.dot_general {{.*}}, [[U]]
// -----
// literals stay where they are used before, and a function that calls itself has no constants
func.func private @again(%x: tensor<4xf32>, %w: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %r = tensor.mul %w, %w : tensor<4xf32>
  %0 = scf.if %c -> (tensor<4xf32>) {
    %no = arith.constant false
    %y = func.call @again(%x, %x, %no) : (tensor<4xf32>, tensor<4xf32>, i1) -> tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  } else {
    %y = tensor.add %x, %r : tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>, %c: i1) -> tensor<4xf32> attributes {constants = [1]} {
  %two = tensor.full 2.0 : tensor<4xf32>
  %0 = tensor.mul %x, %two : tensor<4xf32>
  %1 = scf.if %c -> (tensor<4xf32>) {
    %t = tensor.mul %w, %two : tensor<4xf32>
    %y = tensor.add %0, %t : tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  } else {
    scf.yield %0 : tensor<4xf32>
  }
  %2 = func.call @again(%1, %w, %c) : (tensor<4xf32>, tensor<4xf32>, i1) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
func.func private @main_constants(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
// CHECK-NOT: @again_constants
// CHECK: @main_constants_1(
// CHECK: @main_with_constants(
