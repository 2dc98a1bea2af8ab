// test: roundtrip
// test: pass grad
// test: run interp

// a batch element keeps its value where the predicate is false
func.func @f(%p: tensor<Lxi1>, %x: tensor<Lx2xf32>, %k: tensor<i64>) -> tensor<Lx2xf32> {
  %0 = autodiff.predicated %p (%x, %x, %k) carried 1
      : (tensor<Lxi1>, tensor<Lx2xf32>, tensor<Lx2xf32>, tensor<i64>) -> tensor<Lx2xf32> {
  ^bb0(%a: tensor<Lx2xf32>, %b: tensor<Lx2xf32>, %n: tensor<i64>):
    %f = tensor.cast %n : tensor<i64> to tensor<f32>
    %1 = tensor.mul %b, %f : (tensor<Lx2xf32>, tensor<f32>) -> tensor<Lx2xf32>
    autodiff.yield %1 : tensor<Lx2xf32>
  }
  func.return %0 : tensor<Lx2xf32>
}
// run: @f([true, false], [[1, 2], [3, 4]], 3) == [[3, 6], [3, 4]]
// CHECK: [[Y:%\w+]] = tensor.mul
// CHECK-NEXT: [[P:%\w+]] = tensor.reshape %p : tensor<Lxi1> to tensor<Lx1xi1>
// CHECK-NEXT: tensor.select [[P]], [[Y]], %x
// -----
// of an update at a shared position, only the slice is selected
func.func @g(%p: tensor<2xi1>, %x: tensor<2x5xf32>, %i: tensor<i64>) -> tensor<2x5xf32> {
  %0 = autodiff.predicated %p (%x, %i) carried 1 : (tensor<2xi1>, tensor<2x5xf32>, tensor<i64>) -> tensor<2x5xf32> {
  ^bb0(%a: tensor<2x5xf32>, %at: tensor<i64>):
    %zero = tensor.full 0 : tensor<i64>
    %u = tensor.full 9.0 : tensor<2x1xf32>
    %1 = tensor.dynamic_update_slice %a, %u, %zero, %at
        : (tensor<2x5xf32>, tensor<2x1xf32>, tensor<i64>, tensor<i64>) -> tensor<2x5xf32>
    autodiff.yield %1 : tensor<2x5xf32>
  }
  func.return %0 : tensor<2x5xf32>
}
// run: @g([false, true], [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]], 1) == [[1, 2, 3, 4, 5], [1, 9, 3, 4, 5]]
// run: @g([false, true], [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]], 7) == [[1, 2, 3, 4, 5], [1, 2, 3, 4, 9]]
// CHECK: [[OLD:%\w+]] = tensor.dynamic_slice %x
// CHECK: [[NEW:%\w+]] = tensor.select {{.*}}, [[OLD]]
// CHECK-NEXT: [[R:%\w+]] = tensor.dynamic_update_slice %x, [[NEW]]
// CHECK-NEXT: func.return [[R]]
// -----
// inside another, and batched: the predicate gets one more axis
func.func private @inner(%p: tensor<2xi1>, %q: tensor<2xi1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = autodiff.predicated %p (%x, %q) carried 1 : (tensor<2xi1>, tensor<2xf32>, tensor<2xi1>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>, %r: tensor<2xi1>):
    %1 = autodiff.predicated %r (%a) carried 1 : (tensor<2xi1>, tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%b: tensor<2xf32>):
      %2 = tensor.neg %b : tensor<2xf32>
      autodiff.yield %2 : tensor<2xf32>
    }
    %3 = tensor.add %1, %a : tensor<2xf32>
    autodiff.yield %3 : tensor<2xf32>
  }
  func.return %0 : tensor<2xf32>
}
func.func @h(%p: tensor<3x2xi1>, %q: tensor<2xi1>, %x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %0 = autodiff.vmap @inner(%p, %q, %x) batched [0, 2] size 3
      : (tensor<3x2xi1>, tensor<2xi1>, tensor<3x2xf32>) -> tensor<3x2xf32>
  func.return %0 : tensor<3x2xf32>
}
// run: @h([[true, true], [false, true], [true, false]], [true, false], [[1, 2], [3, 4], [5, 6]]) == [[0, 4], [3, 8], [0, 6]]
// CHECK-NOT: autodiff
// -----
// the cotangent of a shared weight is summed over the batch at once, with 0 for inactive elements
func.func @shared(%p: tensor<2xi1>, %x: tensor<2x3xf32>, %ct: tensor<2x2xf32>) -> tensor<3x2xf32> {
  %zero = tensor.full 0.0 : tensor<2x3x2xf32>
  %0 = autodiff.predicated %p (%zero, %x, %ct) carried 1
      : (tensor<2xi1>, tensor<2x3x2xf32>, tensor<2x3xf32>, tensor<2x2xf32>) -> tensor<2x3x2xf32> {
  ^bb0(%z: tensor<2x3x2xf32>, %a: tensor<2x3xf32>, %b: tensor<2x2xf32>):
    %1 = tensor.dot_general %a, %b {batch = [[0, 0]], contract = []} : (tensor<2x3xf32>, tensor<2x2xf32>) -> tensor<2x3x2xf32>
    %2 = tensor.dot_general %b, %a {batch = [[0, 0]], contract = []} : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x2x3xf32>
    %3 = tensor.transpose %2 {perm = [0, 2, 1]} : (tensor<2x2x3xf32>) -> tensor<2x3x2xf32>
    %4 = tensor.add %1, %3 : tensor<2x3x2xf32>
    %5 = tensor.full 1.0 : tensor<2x3x2xf32>
    %6 = tensor.add %4, %5 : tensor<2x3x2xf32>
    autodiff.yield %6 : tensor<2x3x2xf32>
  }
  %7 = tensor.reduce_sum %0 {axes = [0]} : (tensor<2x3x2xf32>) -> tensor<3x2xf32>
  func.return %7 : tensor<3x2xf32>
}
// run: @shared([true, false], [[1, 2, 3], [inf, 1, 1]], [[1, 2], [0, nan]]) == [[3, 5], [5, 9], [7, 13]]
// run: @shared([true, true], [[1, 2, 3], [1, 0, 0]], [[1, 2], [5, 0]]) == [[14, 6], [6, 10], [8, 14]]
// CHECK: @shared
// CHECK: tensor.dot_general {{.*}} {batch = [], contract = {{\[\[}}0, 0]]}
// CHECK: tensor.dot_general {{.*}} {batch = [], contract = {{\[\[}}0, 0]]}
