// test: roundtrip
// test: run
// tolerance: 1e-12
// two tensors that a loop carries change places
func.func @swap(%n: tensor<i64>, %a: tensor<3xf32>, %b: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = tensor.item %n : (tensor<i64>) -> i64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %top = arith.index_cast %0 : i64 to index
  %r:2 = scf.for %i = %c0 to %top step %c1 iter_args(%x = %a, %y = %b) -> (tensor<3xf32>, tensor<3xf32>) {
    scf.yield %y, %x : tensor<3xf32>, tensor<3xf32>
  }
  func.return %r#0, %r#1 : tensor<3xf32>, tensor<3xf32>
}
// run: @swap(3, [1, 2, 3], [4, 5, 6]) == ([4, 5, 6], [1, 2, 3])
// run: @swap(2, [1, 2, 3], [4, 5, 6]) == ([1, 2, 3], [4, 5, 6])
// run: @swap(-1, [1, 2, 3], [4, 5, 6]) == ([1, 2, 3], [4, 5, 6])
// -----
// the counter as a tensor, and bounds that are sizes; a triangle by nested loops
func.func @triangle(%x: tensor<Bxi64>) -> tensor<i64> {
  %zero = tensor.full 0 : tensor<i64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %top = tensor.extent "2*B" : index
  %r = scf.for %i = %c0 to %top step %c1 iter_args(%sum = %zero) -> (tensor<i64>) {
    %s = scf.for %j = %c0 to %i step %c1 iter_args(%inner = %sum) -> (tensor<i64>) {
      %t = tensor.from_scalar %j : index to tensor<i64>
      %u = tensor.add %inner, %t : tensor<i64>
      scf.yield %u : tensor<i64>
    }
    scf.yield %s : tensor<i64>
  }
  func.return %r : tensor<i64>
}
// run: @triangle([0, 0, 0]) == 20
// run: @triangle([]) == 0
// -----
// Newton's method until two steps are near each other; the condition depends on data
func.func @sqrt(%x: tensor<f64>) -> (tensor<f64>, tensor<i64>) {
  %one = tensor.full 1 : tensor<i64>
  %zero = tensor.full 0 : tensor<i64>
  %half = tensor.full 0.5 : tensor<f64>
  %near = tensor.full 1.0e-12 : tensor<f64>
  %r:2 = scf.while (%y = %x, %n = %zero) : (tensor<f64>, tensor<i64>) -> (tensor<f64>, tensor<i64>) {
    %0 = tensor.mul %y, %y : tensor<f64>
    %1 = tensor.sub %0, %x : tensor<f64>
    %2 = tensor.abs %1 : tensor<f64>
    %3 = tensor.compare gt, %2, %near : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %go = tensor.item %3 : (tensor<i1>) -> i1
    scf.condition(%go) %y, %n : tensor<f64>, tensor<i64>
  } do {
  ^bb0(%y: tensor<f64>, %n: tensor<i64>):
    %0 = tensor.div %x, %y : tensor<f64>
    %1 = tensor.add %y, %0 : tensor<f64>
    %2 = tensor.mul %1, %half : tensor<f64>
    %3 = tensor.add %n, %one : tensor<i64>
    scf.yield %2, %3 : tensor<f64>, tensor<i64>
  }
  func.return %r#0, %r#1 : tensor<f64>, tensor<i64>
}
// run: @sqrt(4.0) ~= (2.0, 5)
// run: @sqrt(1.0) == (1.0, 0)
// -----
// only the branch that is chosen runs; its results are tensors
func.func @choose(%p: tensor<1x1xi1>, %x: tensor<2xf32>) -> (tensor<2xf32>, tensor<ui8>) {
  %c = tensor.item %p : (tensor<1x1xi1>) -> i1
  %r:2 = scf.if %c -> (tensor<2xf32>, tensor<ui8>) {
    %0 = tensor.add %x, %x : tensor<2xf32>
    %1 = tensor.full 255 : tensor<ui8>
    scf.yield %0, %1 : tensor<2xf32>, tensor<ui8>
  } else {
    %1 = tensor.full 0 : tensor<ui8>
    scf.yield %x, %1 : tensor<2xf32>, tensor<ui8>
  }
  func.return %r#0, %r#1 : tensor<2xf32>, tensor<ui8>
}
// run: @choose([[True]], [1, 2]) == ([2, 4], 255)
// run: @choose([[False]], [1, 2]) == ([1, 2], 0)
// -----
// an unsigned number as a scalar is the signless one of the same bits, and comes back as it was
func.func @there_and_back(%x: tensor<1xui8>, %b: tensor<i1>) -> (tensor<ui8>, tensor<i8>, tensor<i1>) {
  %0 = tensor.item %x : (tensor<1xui8>) -> i8
  %1 = tensor.from_scalar %0 : i8 to tensor<ui8>
  %2 = tensor.from_scalar %0 : i8 to tensor<i8>
  %3 = tensor.item %b : (tensor<i1>) -> i1
  %4 = tensor.from_scalar %3 : i1 to tensor<i1>
  func.return %1, %2, %4 : tensor<ui8>, tensor<i8>, tensor<i1>
}
// run: @there_and_back([200], True) == (200, -56, True)
// -----
// what a while computes before its test, and hands on
func.func @doubled(%x: tensor<2xf32>) -> tensor<2xf32> {
  %limit = tensor.full 50.0 : tensor<f32>
  %r = scf.while (%a = %x) : (tensor<2xf32>) -> tensor<2xf32> {
    %d = tensor.add %a, %a : tensor<2xf32>
    %m = tensor.reduce_max %d {axes = [0]} : (tensor<2xf32>) -> tensor<f32>
    %0 = tensor.compare lt, %m, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %go = tensor.item %0 : (tensor<i1>) -> i1
    scf.condition(%go) %d : tensor<2xf32>
  } do {
  ^bb0(%b: tensor<2xf32>):
    %e = tensor.reverse %b {axes = [0]} : tensor<2xf32>
    scf.yield %e : tensor<2xf32>
  }
  func.return %r : tensor<2xf32>
}
// run: @doubled([1, 2]) == [32, 64]
// -----
// what must not happen, checked in a branch and in a loop; where it does is an error, see test_script
func.func @checked(%x: tensor<i64>) -> tensor<i64> {
  %zero = tensor.full 0 : tensor<i64>
  %0 = tensor.compare lt, %x, %zero : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %bad = tensor.item %0 : (tensor<i1>) -> i1
  tensor.fail_if %bad {message = "x is \"negative\""} : i1
  %1 = tensor.item %x : (tensor<i64>) -> i64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %top = arith.index_cast %1 : i64 to index
  scf.for %i = %c0 to %top step %c1 {
    %2 = tensor.from_scalar %i : index to tensor<i64>
    %3 = tensor.compare ge, %2, %x : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %4 = tensor.item %3 : (tensor<i1>) -> i1
    tensor.fail_if %4 {message = "out of reach"} : i1
  }
  func.return %x : tensor<i64>
}
// run: @checked(3) == 3
// -----
// a data-dependent size, at most B; what has it stands below
func.func @first(%x: tensor<Bxf32>, %n: tensor<i64>) -> (tensor<f32>, tensor<i64>) {
  %w = tensor.bind_size %n {bound = "B", size = "k"} : (tensor<i64>) -> tensor<kx0xi1>
  %y = tensor.slice %x {starts = [0], stops = ["k"], steps = [1]} : (tensor<Bxf32>) -> tensor<kxf32>
  %i = tensor.iota {axis = 0} : tensor<kxf32>
  %z = tensor.mul %y, %i : tensor<kxf32>
  %s = tensor.reduce_sum %z {axes = [0]} : (tensor<kxf32>) -> tensor<f32>
  %k = tensor.size "k" : tensor<i64>
  func.return %s, %k : tensor<f32>, tensor<i64>
}
// run: @first([1, 2, 3], 2) == (2, 2)
// run: @first([1, 2, 3], 0) == (0, 0)
// run: @first([1, 2, 3], 9) == (8, 3)
// run: @first([1, 2, 3], -1) == (0, 0)
// run: @first([], 1) == (0, 0)
