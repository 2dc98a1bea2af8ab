// test: pass fix_numerics fuse bufferize
// tolerance: 1e-4
// sizes: B=5

// two values that live at once have two places in the arena
func.func @both(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<4x8xf32>) -> tensor<8xf32>
  %1 = tensor.reduce_max %x {axes = [1]} : (tensor<4x8xf32>) -> tensor<4xf32>
  %2 = tensor.reshape %0 : tensor<8xf32> to tensor<8x1xf32>
  %3 = tensor.add %2, %1 : (tensor<8x1xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  func.return %3 : tensor<8x4xf32>
}
// CHECK: [[C0:%\w+]] = arith.constant 0 : index
// CHECK: memref.view %arena{{\[}}[[C0]]{{\]\[\]}} : memref<?xi8> to memref<8xf32>
// CHECK: [[C64:%\w+]] = arith.constant 64 : index
// CHECK: memref.view %arena{{\[}}[[C64]]{{\]\[\]}} : memref<?xi8> to memref<4xf32>
// CHECK: func.func @both_arena_bytes() -> index
// CHECK-NEXT: arith.constant 128 : index
// -----
// once a value is dead another takes its place, larger or smaller
func.func @slots(%x: tensor<4x32xf32>) -> tensor<32xf32> {
  %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<4x32xf32>) -> tensor<32xf32>
  %1 = tensor.reverse %0 {axes = [0]} : tensor<32xf32>
  %2 = tensor.reduce_sum %1 {axes = [0]} : (tensor<32xf32>) -> tensor<f32>
  %3 = tensor.sqrt %2 : tensor<f32>
  %4 = tensor.broadcast_to %3 : tensor<f32> to tensor<64xf32>
  %5 = tensor.exp %4 : tensor<64xf32>
  %6 = tensor.slice %5 {starts = [0], stops = [32], steps = [1]} : (tensor<64xf32>) -> tensor<32xf32>
  %7 = tensor.reduce_sum %5 {axes = [0]} : (tensor<64xf32>) -> tensor<f32>
  %8 = tensor.add %6, %7 : (tensor<32xf32>, tensor<f32>) -> tensor<32xf32>
  func.return %8 : tensor<32xf32>
}
// CHECK: [[C0:%\w+]] = arith.constant 0 : index
// CHECK: memref.view %arena{{\[}}[[C0]]{{\]\[\]}} : memref<?xi8> to memref<32xf32>
// CHECK: memref.view %arena{{\[}}[[C0]]{{\]\[\]}} : memref<?xi8> to memref<64xf32>
// CHECK: func.func @slots_arena_bytes() -> index
// -----
// a kernel writes over an operand that dies in it, element by element; so @chain needs one place of 128 bytes
func.func @chain(%x: tensor<4x32xf32>, %y: tensor<32x32xf32>) -> tensor<32xf32> {
  %0 = tensor.reduce_sum %x {axes = [0]} : (tensor<4x32xf32>) -> tensor<32xf32>
  %1 = tensor.dot_general %0, %y {batch = [], contract = [[0, 0]]} : (tensor<32xf32>, tensor<32x32xf32>) -> tensor<32xf32>
  %2 = tensor.add %1, %0 : tensor<32xf32>
  %3 = tensor.dot_general %2, %y {batch = [], contract = [[0, 0]]} : (tensor<32xf32>, tensor<32x32xf32>) -> tensor<32xf32>
  func.return %3 : tensor<32xf32>
}
// CHECK: [[C0:%\w+]] = arith.constant 0 : index
// CHECK: memref.view %arena{{\[}}[[C0]]{{\]\[\]}} : memref<?xi8> to memref<32xf32>
// CHECK: [[C128:%\w+]] = arith.constant 128 : index
// CHECK: memref.view %arena{{\[}}[[C128]]{{\]\[\]}} : memref<?xi8> to memref<32xf32>
// CHECK: func.func @chain_arena_bytes() -> index
// CHECK-NEXT: arith.constant 256 : index
// -----
// sizes with symbols are computed, rounded up to 64 bytes; equal ones share a place
func.func @symbolic(%x: tensor<Bx8xf32>, %y: tensor<Bx9xf32>) -> tensor<Bx9xf32> {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<Bx8xf32>) -> tensor<Bxf32>
  %1 = tensor.reshape %0 : tensor<Bxf32> to tensor<Bx1xf32>
  %2 = tensor.div %y, %1 : (tensor<Bx9xf32>, tensor<Bx1xf32>) -> tensor<Bx9xf32>
  func.return %2 : tensor<Bx9xf32>
}
// CHECK: func.func @symbolic(%B: index, %x: memref<?x8xf32>, %y: memref<?x9xf32>, %out0: memref<?x9xf32>, %arena: memref<?xi8>, %errors: memref<1xi64>)
// CHECK: memref.view %arena{{\[%\w+\]\[%B\]}} : memref<?xi8> to memref<?xf32>
// CHECK: func.func @symbolic_arena_bytes(%B: index) -> index
// CHECK: arith.divui
