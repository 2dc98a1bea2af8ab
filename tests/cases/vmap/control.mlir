// test: pass grad
// test: run interp

// trip counts differ between batch elements, on one counter
func.func private @sum(%a: tensor<i64>, %b: tensor<i64>) -> tensor<i64> {
  %low = tensor.item %a : (tensor<i64>) -> i64
  %high = tensor.item %b : (tensor<i64>) -> i64
  %one = arith.constant 1 : i64
  %zero = tensor.full 0 : tensor<i64>
  %r = scf.for %i = %low to %high step %one iter_args(%s = %zero) -> (tensor<i64>) : i64 {
    %t = tensor.from_scalar %i : i64 to tensor<i64>
    %n = tensor.add %s, %t : tensor<i64>
    scf.yield %n : tensor<i64>
  }
  func.return %r : tensor<i64>
}
func.func @both(%a: tensor<Lxi64>, %b: tensor<Lxi64>) -> tensor<Lxi64> {
  %0 = autodiff.vmap @sum(%a, %b) batched [0, 1] size "L" : (tensor<Lxi64>, tensor<Lxi64>) -> tensor<Lxi64>
  func.return %0 : tensor<Lxi64>
}
func.func @upper(%a: tensor<i64>, %b: tensor<Lxi64>) -> tensor<Lxi64> {
  %0 = autodiff.vmap @sum(%a, %b) batched [1] size "L" : (tensor<i64>, tensor<Lxi64>) -> tensor<Lxi64>
  func.return %0 : tensor<Lxi64>
}
func.func @lower(%a: tensor<Lxi64>, %b: tensor<i64>) -> tensor<Lxi64> {
  %0 = autodiff.vmap @sum(%a, %b) batched [0] size "L" : (tensor<Lxi64>, tensor<i64>) -> tensor<Lxi64>
  func.return %0 : tensor<Lxi64>
}
// run: @both([0, 5, -3, 4], [4, 5, 2, 3]) == [6, 0, -5, 0]
// run: @upper(2, [5, 2, 0]) == [9, 0, 0]
// run: @lower([1, 4, 9], 5) == [10, 4, 0]
// CHECK: func.func private @sum_vmap
// CHECK: tensor.reduce_max
// CHECK: scf.for
// CHECK-NOT: autodiff
// -----
// batched scalars are tensors: index, i32 and i1, under arith
func.func private @bits(%x: tensor<i32>) -> tensor<i64> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : index
  %n = tensor.item %x : (tensor<i32>) -> i32
  %r:2 = scf.while (%v = %n, %c = %one) : (i32, index) -> (i32, index) {
    %more = arith.cmpi sgt, %v, %zero : i32
    scf.condition(%more) %v, %c : i32, index
  } do {
  ^bb0(%v: i32, %c: index):
    %w = arith.index_cast %v : i32 to index
    %two = arith.constant 2 : index
    %half = arith.divsi %w, %two : index
    %h = arith.index_cast %half : index to i32
    %next = arith.addi %c, %one : index
    scf.yield %h, %next : i32, index
  }
  %t = tensor.from_scalar %r#1 : index to tensor<i64>
  func.return %t : tensor<i64>
}
func.func @main(%x: tensor<4xi32>) -> tensor<4xi64> {
  %0 = autodiff.vmap @bits(%x) batched [0] size 4 : (tensor<4xi32>) -> tensor<4xi64>
  func.return %0 : tensor<4xi64>
}
// run: @main([0, 1, 7, 8]) == [1, 2, 4, 5]
// -----
// a carried value is batched once a batched value flows into it; others are shared
func.func private @mix(%x: tensor<f32>, %w: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:3 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %w, %b = %w, %c = %w) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    %n = tensor.add %b, %x : tensor<f32>
    %m = tensor.add %c, %w : tensor<f32>
    scf.yield %n, %a, %m : tensor<f32>, tensor<f32>, tensor<f32>
  }
  func.return %r#0, %r#1, %r#2 : tensor<f32>, tensor<f32>, tensor<f32>
}
func.func @main(%x: tensor<2xf32>, %w: tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<f32>) {
  %0:3 = autodiff.vmap @mix(%x, %w) batched [0] size 2 {common = [2]}
      : (tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<f32>)
  func.return %0#0, %0#1, %0#2 : tensor<2xf32>, tensor<2xf32>, tensor<f32>
}
// run: @main([1, 2], 10) == ([12, 14], [11, 12], 40)
