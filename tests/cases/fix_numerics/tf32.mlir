// test: pass fix_numerics{products=tf32}
// tolerance: 2e-2

func.func @whole_blocks(%x: tensor<5x24xf32>, %y: tensor<24x6xf32>, %a: tensor<5x32xbf16>, %b: tensor<32x6xbf16>) -> (tensor<5x6xf32>, tensor<5x6xbf16>) {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<5x24xf32>, tensor<24x6xf32>) -> tensor<5x6xf32>
  %1 = tensor.dot_general %a, %b {batch = [], contract = [[1, 0]]} : (tensor<5x32xbf16>, tensor<32x6xbf16>) -> tensor<5x6xbf16>
  func.return %0, %1 : tensor<5x6xf32>, tensor<5x6xbf16>
}
// CHECK: order = "mma<8, tf32>"
// CHECK: order = "mma<16, bf16>"
// -----
// a rest, and f64
func.func @others(%x: tensor<5x20xf32>, %y: tensor<20x6xf32>, %c: tensor<5x32xf64>, %d: tensor<32x6xf64>) -> (tensor<5x6xf32>, tensor<5x6xf64>) {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<5x20xf32>, tensor<20x6xf32>) -> tensor<5x6xf32>
  %1 = tensor.dot_general %c, %d {batch = [], contract = [[1, 0]]} : (tensor<5x32xf64>, tensor<32x6xf64>) -> tensor<5x6xf64>
  func.return %0, %1 : tensor<5x6xf32>, tensor<5x6xf64>
}
// CHECK-NOT: mma
