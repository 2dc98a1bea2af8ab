// test: pass fix_numerics fuse bufferize tensor_to_loop coalesce_dimensions vectorize parallelize outline guard_updates
// tolerance: bits

// nothing may fail: the new elements may be written over the old ones
func.func @step(%w: tensor<8xf32>, %g: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {updates = [-1, 0]} {
  %0 = tensor.mul %g, %g : tensor<8xf32>
  %1 = tensor.sub %w, %g : tensor<8xf32>
  func.return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
// CHECK-NOT: scf.if
// CHECK-NOT: updates
// CHECK: overwrites = [-1, 0]
// -----
// what is checked is checked before anything is written over
func.func @checked(%w: tensor<8xf32>, %g: tensor<8xf32>, %n: tensor<i64>) -> tensor<8xf32> attributes {updates = [0]} {
  %0 = tensor.compare ne, %n, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %bad = tensor.item %0 : (tensor<i1>) -> i1
  tensor.fail_if %bad {message = "no number"} : i1
  %1 = tensor.sub %w, %g : tensor<8xf32>
  func.return %1 : tensor<8xf32>
}
// CHECK: overwrites = [0]
// CHECK: memref.store %{{\w+}}, %errors
// CHECK: %[[E:\w+]] = memref.load %errors
// CHECK: %[[OK:\w+]] = arith.cmpi eq, %[[E]]
// CHECK: scf.if %[[OK]] {
// CHECK: func.call @kernel_sub(%w, %g, %out0)
// -----
// the new elements themselves are checked, when it is too late to leave the old ones as they are
func.func @too_late(%w: tensor<8xf32>, %g: tensor<8xf32>) -> tensor<8xf32> attributes {updates = [0]} {
  %1 = tensor.sub %w, %g : tensor<8xf32>
  %2 = tensor.reduce_max %1 {axes = [0]} : (tensor<8xf32>) -> tensor<f32>
  %3 = tensor.compare ne, %2, %2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %bad = tensor.item %3 : (tensor<i1>) -> i1
  tensor.fail_if %bad {message = "not a number"} : i1
  func.return %1 : tensor<8xf32>
}
// CHECK-NOT: overwrites
// CHECK-NOT: scf.if
// -----
// a call of a function that checks nothing cannot fail, though it is passed the error record
func.func private @less(%w: tensor<8xf32>, %g: tensor<8xf32>) -> tensor<8xf32> {
  %0 = tensor.sub %w, %g : tensor<8xf32>
  func.return %0 : tensor<8xf32>
}
func.func @called(%w: tensor<8xf32>, %v: tensor<8xf32>, %g: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {updates = [0, 1]} {
  %0 = func.call @less(%w, %g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = func.call @less(%v, %0) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
// CHECK: overwrites = [0, 1]
// CHECK-NOT: scf.if
// -----
// elements that are read at other places, or later, or returned, have to stay
func.func @read(%w: tensor<8xf32>, %v: tensor<8xf32>, %u: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) attributes {updates = [0, 1, 2, 3]} {
  %0 = tensor.reverse %w {axes = [0]} : tensor<8xf32>
  %1 = tensor.add %v, %u : tensor<8xf32>
  %2 = tensor.reduce_max %1 {axes = [0]} : (tensor<8xf32>) -> tensor<f32>
  %b = tensor.broadcast_to %2 : tensor<f32> to tensor<8xf32>
  %3 = tensor.mul %b, %v : tensor<8xf32>
  %4 = tensor.mul %3, %u : tensor<8xf32>
  %5 = tensor.add %t, %t : tensor<8xf32>
  func.return %0, %1, %4, %5, %t : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
// CHECK: overwrites = [-1, -1, 2, -1, -1]
