// test: pass fix_numerics
// tolerance: 2e-2

// between two operations, and before a reduction, the sum stays f32; the result is rounded. An operation that reads a
// value twice is one
module attributes {excess_precision} {
  func.func @chain(%x: tensor<4x8xbf16>, %y: tensor<4x8xbf16>) -> tensor<4xbf16> {
    %0 = tensor.add %x, %y : tensor<4x8xbf16>
    %1 = tensor.mul %0, %0 : tensor<4x8xbf16>
    %2 = tensor.reduce_sum %1 {axes = [1]} : (tensor<4x8xbf16>) -> tensor<4xbf16>
    func.return %2 : tensor<4xbf16>
  }
}
// CHECK: tensor.add
// CHECK-NEXT: tensor.mul
// CHECK-NEXT: tensor.reduce_sum
// CHECK-NEXT: tensor.cast
// -----
// what a product reads in 16 bits, what is returned, and what many operations read, is rounded
module attributes {excess_precision} {
  func.func @read(%x: tensor<4x4xf16>) -> (tensor<4x4xf16>, tensor<4x4xf16>, tensor<4x4xf16>) {
    %0 = tensor.add %x, %x : tensor<4x4xf16>
    %1 = tensor.dot_general %0, %x {batch = [], contract = [[1, 0]]} : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x4xf16>
    %2 = tensor.mul %0, %1 : tensor<4x4xf16>
    %3 = tensor.sub %x, %2 : tensor<4x4xf16>
    %4 = tensor.mul %3, %x : tensor<4x4xf16>
    %5 = tensor.add %3, %4 : tensor<4x4xf16>
    %6 = tensor.mul %3, %5 : tensor<4x4xf16>
    func.return %0, %1, %6 : tensor<4x4xf16>, tensor<4x4xf16>, tensor<4x4xf16>
  }
}
// CHECK: %[[A:\w+]] = tensor.add
// CHECK-NEXT: %[[B:\w+]] = tensor.cast %[[A]]
// CHECK: tensor.dot_general
// CHECK-NEXT: tensor.cast
// CHECK: %[[S:\w+]] = tensor.sub
// CHECK-NEXT: tensor.cast %[[S]]
// CHECK: func.return %[[B]]
// -----
// without the attribute, every operation rounds
func.func @rounded(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = tensor.add %x, %x : tensor<4xbf16>
  %1 = tensor.mul %0, %x : tensor<4xbf16>
  func.return %1 : tensor<4xbf16>
}
// CHECK: %[[A:\w+]] = tensor.add
// CHECK-NEXT: tensor.cast %[[A]]
