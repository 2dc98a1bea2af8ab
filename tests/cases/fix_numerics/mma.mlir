// test: pass fix_numerics{products=mma}
// tolerance: 2e-2

func.func @whole_blocks(%x: tensor<5x32xbf16>, %y: tensor<32x6xbf16>) -> tensor<5x6xbf16> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<5x32xbf16>, tensor<32x6xbf16>) -> tensor<5x6xbf16>
  func.return %0 : tensor<5x6xbf16>
}
// CHECK: order = "mma<16, bf16>"
// -----
// a rest, an unknown number of terms and f32 that is f32 stay as they are elsewhere
func.func @others(%x: tensor<5x20xf16>, %y: tensor<20x6xf16>, %a: tensor<5xBxf16>, %b: tensor<Bx6xf16>, %c: tensor<5x32xf32>, %d: tensor<32x6xf32>) -> (tensor<5x6xf16>, tensor<5x6xf16>, tensor<5x6xf32>) {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<5x20xf16>, tensor<20x6xf16>) -> tensor<5x6xf16>
  %1 = tensor.dot_general %a, %b {batch = [], contract = [[1, 0]]} : (tensor<5xBxf16>, tensor<Bx6xf16>) -> tensor<5x6xf16>
  %2 = tensor.dot_general %c, %d {batch = [], contract = [[1, 0]]} : (tensor<5x32xf32>, tensor<32x6xf32>) -> tensor<5x6xf32>
  func.return %0, %1, %2 : tensor<5x6xf16>, tensor<5x6xf16>, tensor<5x6xf32>
}
// CHECK-NOT: mma
// CHECK: order = "chain"
// CHECK: order = "blocks<256>"
// CHECK: order = "chain"
