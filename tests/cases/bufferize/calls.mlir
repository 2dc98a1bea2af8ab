// test: pass fix_numerics fuse bufferize
// tolerance: 1e-5
// sizes: B=5

// a callee takes symbols, inputs, results, a piece of the caller's arena and the error record
func.func private @row(%x: tensor<Nx8xf32>, %w: tensor<8x8xf32>) -> tensor<Nx8xf32> {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]} : (tensor<Nx8xf32>, tensor<8x8xf32>) -> tensor<Nx8xf32>
  %1 = tensor.dot_general %0, %w {batch = [], contract = [[1, 0]]} : (tensor<Nx8xf32>, tensor<8x8xf32>) -> tensor<Nx8xf32>
  func.return %1 : tensor<Nx8xf32>
}
func.func @twice(%x: tensor<Bx8xf32>, %w: tensor<8x8xf32>) -> tensor<Bx8xf32> {
  %0 = func.call @row(%x, %w) : (tensor<Bx8xf32>, tensor<8x8xf32>) -> tensor<Bx8xf32>
  %1 = func.call @row(%0, %w) : (tensor<Bx8xf32>, tensor<8x8xf32>) -> tensor<Bx8xf32>
  func.return %1 : tensor<Bx8xf32>
}
// CHECK: func.func private @row(%N: index, %x: memref<?x8xf32>, %w: memref<8x8xf32>, %out0: memref<?x8xf32>, %arena: memref<?xi8>, %errors: memref<1xi64>) {
// CHECK: func.func @twice({{.*}}work = "256*B"
// CHECK: [[T:%\w+]] = memref.view %arena{{.*}} to memref<?x8xf32>
// CHECK: [[A:%\w+]] = memref.view %arena{{.*}} to memref<?xi8>
// CHECK: func.call @row(%B, %x, %w, [[T]], [[A]], %errors)
// CHECK: func.call @row(%B, [[T]], %w, %out0, {{%\w+}}, %errors)
// -----
// an update in a callee takes place in the buffer that the caller was given
func.func private @update(%p: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.sub %p, %g : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func @step(%p: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> attributes {donate = [0]} {
  %0 = func.call @update(%p, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK: func.func @step(%p: memref<4xf32>, %g: memref<4xf32>, %arena
// CHECK-SAME: aliases = [0]
// CHECK: func.call @update(%p, %g, %p, %arena, %errors)
// -----
// the callee reads other elements than it writes: one buffer for both would be wrong
func.func private @advance(%p: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.reverse %p {axes = [0]} : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func @step(%p: tensor<4xf32>) -> tensor<4xf32> attributes {donate = [0]} {
  %0 = func.call @advance(%p) : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK: aliases = [-1]
// -----
// a donated argument is brought to where the result will be: that is not where the other argument lies
func.func private @update(%p: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> attributes {donate = [0]} {
  %0 = tensor.sub %p, %g : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func @step(%p: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tensor.reverse %p {axes = [0]} : tensor<4xf32>
  %1 = func.call @update(%p, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = tensor.reverse %1 {axes = [0]} : tensor<4xf32>
  func.return %2, %p : tensor<4xf32>, tensor<4xf32>
}
// CHECK: func.func @step
// CHECK: [[G:%\w+]] = memref.view %arena
// CHECK: [[R:%\w+]] = memref.view %arena
// CHECK: func.call @update([[R]], [[G]], %arena, %errors)
// -----
// sizes known at the call are unknown in the callee, and what it needs of them is asked of the caller's callers
func.func private @head(%x: tensor<Nxf32>) -> tensor<(N - 3)xf32> {
  %0 = tensor.slice %x {starts = [0], stops = ["N - 3"], steps = [1]} : (tensor<Nxf32>) -> tensor<(N - 3)xf32>
  func.return %0 : tensor<(N - 3)xf32>
}
func.func @heads(%x: tensor<(2*B)xf32>, %like: tensor<Bxf32>, %y: tensor<9xf32>) -> (tensor<(2*B - 3)xf32>, tensor<6xf32>) {
  %0 = func.call @head(%x) : (tensor<(2*B)xf32>) -> tensor<(2*B - 3)xf32>
  %1 = func.call @head(%y) : (tensor<9xf32>) -> tensor<6xf32>
  func.return %0, %1 : tensor<(2*B - 3)xf32>, tensor<6xf32>
}
// CHECK: func.func @heads
// CHECK-SAME: size_constraints = ["2*B - 3"]
// CHECK: memref.cast %y : memref<9xf32> to memref<?xf32>
// -----
// places where an index can be out of range are numbered over the module, as they are first met
func.func private @pick(%x: tensor<4xf32>, %i: tensor<2xi64>) -> tensor<2xf32> {
  %1 = tensor.take %x, %i {axis = 0} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
}
func.func @picks(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %i = tensor.constant dense<[0, 3]> : tensor<2xi64>
  %j = tensor.constant dense<[1, 2]> : tensor<2xi64>
  %0 = func.call @pick(%x, %i) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  %1 = tensor.take %x, %j {axis = 0} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
// CHECK: func.func private @pick
// CHECK: tensor.kernel {{.*}}(d0)>], operandSegmentSizes
// CHECK: func.func @picks
// CHECK-SAME: error_sites = [{{.*}}, {{.*}}]
// CHECK: tensor.kernel {{.*}}site = 1
// -----
// what a callee scatters into is not copied: the callee takes the caller's buffer, and so do calls above it
func.func private @put(%x: tensor<Nx4xf32>, %i: tensor<2xi64>, %u: tensor<2x4xf32>) -> tensor<Nx4xf32> {
  %0 = tensor.scatter %x, %i, %u {axis = 0, kind = "set"} : (tensor<Nx4xf32>, tensor<2xi64>, tensor<2x4xf32>) -> tensor<Nx4xf32>
  func.return %0 : tensor<Nx4xf32>
}
func.func private @layer(%x: tensor<Nx4xf32>, %u: tensor<2x4xf32>) -> tensor<Nx4xf32> {
  %i = tensor.constant dense<[0, 3]> : tensor<2xi64>
  %0 = func.call @put(%x, %i, %u) : (tensor<Nx4xf32>, tensor<2xi64>, tensor<2x4xf32>) -> tensor<Nx4xf32>
  func.return %0 : tensor<Nx4xf32>
}
func.func @step(%x: tensor<7x4xf32>, %u: tensor<2x4xf32>) -> tensor<7x4xf32> attributes {donate = [0]} {
  %0 = func.call @layer(%x, %u) : (tensor<7x4xf32>, tensor<2x4xf32>) -> tensor<7x4xf32>
  func.return %0 : tensor<7x4xf32>
}
// CHECK: func.func private @put(%N: index, %x: memref<?x4xf32>, %i: memref<2xi64>, %u: memref<2x4xf32>, %arena
// CHECK: func.func private @layer(%N: index, %x: memref<?x4xf32>, %u: memref<2x4xf32>, %arena
// CHECK: func.func @step
// CHECK-SAME: aliases = [0]
// CHECK: [[X:%\w+]] = memref.cast %x
// CHECK-NOT: copy
// CHECK: func.call @layer({{%\w+}}, [[X]], %u, %arena, %errors)
// -----
// a caller that still needs the old elements makes the copy
func.func private @put(%x: tensor<5xf32>, %i: tensor<2xi64>, %u: tensor<2xf32>) -> tensor<5xf32> {
  %0 = tensor.scatter %x, %i, %u {axis = 0, kind = "set"} : (tensor<5xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<5xf32>
  func.return %0 : tensor<5xf32>
}
func.func @both(%x: tensor<5xf32>, %u: tensor<2xf32>) -> (tensor<5xf32>, tensor<5xf32>) attributes {donate = [0]} {
  %i = tensor.constant dense<[1, 4]> : tensor<2xi64>
  %0 = func.call @put(%x, %i, %u) : (tensor<5xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<5xf32>
  %1 = tensor.add %0, %x : tensor<5xf32>
  func.return %0, %1 : tensor<5xf32>, tensor<5xf32>
}
// CHECK: func.func @both
// CHECK: label = "copy"
// CHECK: func.call @put(%out0, {{%\w+}}, %u
