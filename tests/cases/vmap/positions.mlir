// test: run

// batch elements with different steps have counters of their own; in one, the step is not positive after the last iteration
func.func private @steps(%a: tensor<i64>, %b: tensor<i64>, %s: tensor<i64>) -> tensor<i64> {
  %low = tensor.item %a : (tensor<i64>) -> i64
  %high = tensor.item %b : (tensor<i64>) -> i64
  %step = tensor.item %s : (tensor<i64>) -> i64
  %zero = tensor.full 0 : tensor<i64>
  %ten = tensor.full 10 : tensor<i64>
  %r = scf.for %i = %low to %high step %step iter_args(%acc = %zero) -> (tensor<i64>) : i64 {
    %t = tensor.from_scalar %i : i64 to tensor<i64>
    %m = tensor.mul %acc, %ten : tensor<i64>
    %n = tensor.add %m, %t : tensor<i64>
    scf.yield %n : tensor<i64>
  }
  func.return %r : tensor<i64>
}
func.func @own(%a: tensor<3xi64>, %b: tensor<i64>, %s: tensor<3xi64>) -> tensor<3xi64> {
  %0 = autodiff.vmap @steps(%a, %b, %s) batched [0, 2] size 3
      : (tensor<3xi64>, tensor<i64>, tensor<3xi64>) -> tensor<3xi64>
  func.return %0 : tensor<3xi64>
}
func.func @start(%a: tensor<3xi64>, %b: tensor<i64>, %s: tensor<i64>) -> tensor<3xi64> {
  %0 = autodiff.vmap @steps(%a, %b, %s) batched [0] size 3 : (tensor<3xi64>, tensor<i64>, tensor<i64>) -> tensor<3xi64>
  func.return %0 : tensor<3xi64>
}
// run: @own([1, 2, 6], 6, [2, 3, 1]) == [135, 25, 0]
// run: @start([0, 1, 2], 5, 2) == [24, 13, 24]
// -----
// an inactive batch element checks no position, and a branch without active elements does not run
func.func private @look(%t: tensor<3xf32>, %i: tensor<i64>, %k: tensor<i64>) -> tensor<f32> {
  %three = tensor.full 3 : tensor<i64>
  %small = tensor.compare lt, %i, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %c = tensor.item %small : (tensor<i1>) -> i1
  %r = scf.if %c -> (tensor<f32>) {
    %a = tensor.take %t, %i {axis = 0} : (tensor<3xf32>, tensor<i64>) -> tensor<f32>
    %b = tensor.take %t, %k {axis = 0} : (tensor<3xf32>, tensor<i64>) -> tensor<f32>
    %s = tensor.add %a, %b : tensor<f32>
    scf.yield %s : tensor<f32>
  } else {
    %z = tensor.full -1.0 : tensor<f32>
    scf.yield %z : tensor<f32>
  }
  func.return %r : tensor<f32>
}
func.func @main(%t: tensor<3xf32>, %i: tensor<Lxi64>, %k: tensor<i64>) -> tensor<Lxf32> {
  %0 = autodiff.vmap @look(%t, %i, %k) batched [1] size "L" : (tensor<3xf32>, tensor<Lxi64>, tensor<i64>) -> tensor<Lxf32>
  func.return %0 : tensor<Lxf32>
}
// run: @main([1, 2, 3], [0, 7, 2], 1) == [3, -1, 5]
// run: @main([1, 2, 3], [5, 7], 99) == [-1, -1]
// run: @main([1, 2, 3], [], 99) == []
