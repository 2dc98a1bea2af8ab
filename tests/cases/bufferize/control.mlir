// test: pass fix_numerics fuse bufferize
// tolerance: 1e-5

// the body writes over what the loop carries, which lies where the result will
func.func @in_place(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> (tensor<4xf32>) {
    %0 = tensor.add %a, %x : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
// CHECK: tensor.kernel %x, %out0 {{.*}}label = "copy"
// CHECK: scf.for %i = %{{\w+}} to %{{\w+}} step %{{\w+}} {
// CHECK-NEXT: tensor.kernel %out0, %x, %out0
// CHECK-NOT: copy
// CHECK: func.return
// -----
// what the body reads elsewhere than it writes goes to a place of its own first, and two that change places too
func.func @swap(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: tensor<i64>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.item %n : (tensor<i64>) -> i64
  %top = arith.index_cast %m : i64 to index
  %r:2 = scf.for %i = %c0 to %top step %c1 iter_args(%a = %x, %b = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = tensor.reverse %a {axes = [0]} : tensor<4xf32>
    scf.yield %b, %0 : tensor<4xf32>, tensor<4xf32>
  }
  func.return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
// -----
// a value from outside is read in every iteration, so nothing in the loop takes its place
func.func @outside(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %s = tensor.reduce_sum %x {axes = [0]} : (tensor<4x4xf32>) -> tensor<4xf32>
  %z = tensor.full 0.0 : tensor<4xf32>
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %z) -> (tensor<4xf32>) {
    %0 = tensor.reverse %s {axes = [0]} : tensor<4xf32>
    %1 = scf.for %j = %c0 to %c2 step %c1 iter_args(%b = %a) -> (tensor<4xf32>) {
      %3 = tensor.dot_general %b, %x {batch = [], contract = [[0, 0]]} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
      %4 = tensor.add %3, %0 : tensor<4xf32>
      scf.yield %4 : tensor<4xf32>
    }
    scf.yield %1 : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
// -----
// branches write to where the result is expected
func.func @branches(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %go = tensor.item %c : (tensor<i1>) -> i1
  %r = scf.if %go -> (tensor<2xf32>) {
    %0 = tensor.add %x, %x : tensor<2xf32>
    scf.yield %0 : tensor<2xf32>
  } else {
    scf.yield %x : tensor<2xf32>
  }
  func.return %r : tensor<2xf32>
}
// CHECK: [[B:%\w+]] = memref.load %c[] : memref<i8>
// CHECK: [[C:%\w+]] = arith.cmpi ne, [[B]]
// CHECK: scf.if [[C]] {
// CHECK: tensor.kernel %x, %out0 {{.*}}label = "add"
// CHECK: else
// CHECK: tensor.kernel %x, %out0 {{.*}}label = "copy"
// -----
// what a while hands on as it is has one buffer; scalars are carried as before
func.func @halve(%x: tensor<f32>) -> (tensor<f32>, tensor<i64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %limit = tensor.full 1.0 : tensor<f32>
  %half = tensor.full 0.5 : tensor<f32>
  %r:2 = scf.while (%a = %x, %n = %zero) : (tensor<f32>, index) -> (tensor<f32>, index) {
    %0 = tensor.compare gt, %a, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %go = tensor.item %0 : (tensor<i1>) -> i1
    scf.condition(%go) %a, %n : tensor<f32>, index
  } do {
  ^bb0(%a: tensor<f32>, %n: index):
    %0 = tensor.mul %a, %half : tensor<f32>
    %m = arith.addi %n, %one : index
    scf.yield %0, %m : tensor<f32>, index
  }
  %n = tensor.from_scalar %r#1 : index to tensor<i64>
  func.return %r#0, %n : tensor<f32>, tensor<i64>
}
// CHECK: scf.while ([[N:%\w+]] = %{{\w+}}) : (index) -> index {
// CHECK: scf.condition({{%\w+}}) [[N]] : index
// CHECK: memref.store {{%\w+}}, %out1[] : memref<i64>
// -----
// what each iteration reads from outside keeps its memory until the loop ends
func.func @reads(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %small = tensor.full 0.001 : tensor<f32>
  %y = tensor.dot_general %x, %x {batch = [], contract = [[1, 0]]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %r:2 = scf.while (%a = %x, %n = %zero) : (tensor<8x8xf32>, index) -> (tensor<8x8xf32>, index) {
    %go = arith.cmpi slt, %n, %three : index
    scf.condition(%go) %a, %n : tensor<8x8xf32>, index
  } do {
  ^bb0(%a: tensor<8x8xf32>, %n: index):
    %0 = tensor.dot_general %a, %y {batch = [], contract = [[1, 0]]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = tensor.dot_general %0, %0 {batch = [], contract = [[1, 0]]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = tensor.dot_general %1, %0 {batch = [], contract = [[1, 0]]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = tensor.mul %2, %small : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
    %m = arith.addi %n, %one : index
    scf.yield %3, %m : tensor<8x8xf32>, index
  }
  func.return %r#0 : tensor<8x8xf32>
}
// CHECK: @reads
// CHECK: scf.while
