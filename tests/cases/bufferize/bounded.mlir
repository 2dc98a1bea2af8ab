// test: pass fix_numerics fuse bufferize
// sizes: B=5

// what has a data-dependent size lies in memory for its bound, in views that are made where it is told
func.func @first(%x: tensor<Bxf32>, %n: tensor<i64>) -> (tensor<f32>, tensor<Bxf32>) {
  %w = tensor.bind_size %n {bound = "B", size = "k"} : (tensor<i64>) -> tensor<kx0xi1>
  %y = tensor.slice %x {starts = [0], stops = ["k"], steps = [1]} : (tensor<Bxf32>) -> tensor<kxf32>
  %c = tensor.cumulative %y {kind = "add", axis = 0} : tensor<kxf32>
  %zero = tensor.full 0.0 : tensor<f32>
  %s = tensor.reduce_sum %c {axes = [0]} : (tensor<kxf32>) -> tensor<f32>
  %p = tensor.pad %c, %zero {low = [0], high = ["B - k"], interior = [0]} : (tensor<kxf32>, tensor<f32>) -> tensor<Bxf32>
  func.return %s, %p : tensor<f32>, tensor<Bxf32>
}
// CHECK: func.func @first(%B: index
// CHECK: %[[N:.*]] = memref.load %n[]
// CHECK: arith.minsi {{.*}}, %B : index
// CHECK: memref.view %arena
// CHECK: tensor.kernel
// -----
// the size of a size: what is picked of what was picked, and a loop that carries it
func.func @twice(%x: tensor<Bxf32>, %n: tensor<i64>, %m: tensor<i64>) -> tensor<f32> {
  %w = tensor.bind_size %n {bound = "B", size = "k"} : (tensor<i64>) -> tensor<kx0xi1>
  %y = tensor.slice %x {starts = [0], stops = ["k"], steps = [1]} : (tensor<Bxf32>) -> tensor<kxf32>
  %v = tensor.bind_size %m {bound = "k", size = "j"} : (tensor<i64>) -> tensor<jx0xi1>
  %z = tensor.slice %y {starts = ["k - j"], stops = ["k"], steps = [1]} : (tensor<kxf32>) -> tensor<jxf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %top = tensor.extent "j" : index
  %r = scf.for %i = %c0 to %top step %c1 iter_args(%a = %z) -> (tensor<jxf32>) {
    %one = tensor.full 1.0 : tensor<jxf32>
    %b = tensor.add %a, %one : tensor<jxf32>
    scf.yield %b : tensor<jxf32>
  }
  %s = tensor.reduce_sum %r {axes = [0]} : (tensor<jxf32>) -> tensor<f32>
  func.return %s : tensor<f32>
}
// CHECK: func.func @twice
// CHECK: arith.minsi {{.*}}, %B
// CHECK: arith.minsi
// -----
// a size per iteration of a loop
func.func @iterations(%x: tensor<Bxf32>) -> tensor<f32> {
  %zero = tensor.full 0.0 : tensor<f32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %top = tensor.extent "B" : index
  %r = scf.for %i = %c0 to %top step %c1 iter_args(%sum = %zero) -> (tensor<f32>) {
    %n = tensor.from_scalar %i : index to tensor<i64>
    %w = tensor.bind_size %n {bound = "B", size = "k"} : (tensor<i64>) -> tensor<kx0xi1>
    %y = tensor.slice %x {starts = [0], stops = ["k"], steps = [1]} : (tensor<Bxf32>) -> tensor<kxf32>
    %c = tensor.cumulative %y {kind = "add", axis = 0} : tensor<kxf32>
    %s = tensor.reduce_sum %c {axes = [0]} : (tensor<kxf32>) -> tensor<f32>
    %t = tensor.add %sum, %s : tensor<f32>
    scf.yield %t : tensor<f32>
  }
  func.return %r : tensor<f32>
}
// CHECK: scf.for
// CHECK: arith.minsi
// CHECK: memref.view
// -----
// a call with values of such a size has its memory in the arena of the caller
func.func private @norm(%y: tensor<Nxf32>) -> tensor<Nxf32> {
  %c = tensor.cumulative %y {kind = "add", axis = 0} : tensor<Nxf32>
  %s = tensor.cumulative %c {kind = "add", axis = 0, reverse = true} : tensor<Nxf32>
  func.return %s : tensor<Nxf32>
}
func.func @caller(%x: tensor<Bxf32>, %n: tensor<i64>) -> tensor<f32> {
  %w = tensor.bind_size %n {bound = "B", size = "k"} : (tensor<i64>) -> tensor<kx0xi1>
  %y = tensor.slice %x {starts = [0], stops = ["k"], steps = [1]} : (tensor<Bxf32>) -> tensor<kxf32>
  %z = func.call @norm(%y) : (tensor<kxf32>) -> tensor<kxf32>
  %s = tensor.reduce_sum %z {axes = [0]} : (tensor<kxf32>) -> tensor<f32>
  func.return %s : tensor<f32>
}
// CHECK-NOT: memref.alloc
// CHECK: func.call @norm
// CHECK-NOT: memref.alloc
