// test: pass fix_numerics{products=mma}
// tolerance: 1e-2

// tensor cores add 16 terms at a time: 129 become 192, of which the last ones are zeros
func.func @odd(%x: tensor<128x129xbf16>, %y: tensor<129x128xbf16>) -> tensor<128x128xbf16> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<128x129xbf16>, tensor<129x128xbf16>) -> tensor<128x128xbf16>
  func.return %0 : tensor<128x128xbf16>
}
// CHECK: tensor.pad %x, {{.*}} : (tensor<128x129xbf16>, tensor<bf16>) -> tensor<128x192xbf16>
// CHECK: tensor.pad %y, {{.*}} : (tensor<129x128xbf16>, tensor<bf16>) -> tensor<192x128xbf16>
// CHECK: tensor.dot_general {{.*}}order = "mma<16, bf16>"
// -----
// a product of few rows reads its factors once: copying them would take longer
func.func @few(%x: tensor<4x129xbf16>, %y: tensor<129x128xbf16>) -> tensor<4x128xbf16> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<4x129xbf16>, tensor<129x128xbf16>) -> tensor<4x128xbf16>
  func.return %0 : tensor<4x128xbf16>
}
// CHECK-NOT: tensor.pad
// CHECK-NOT: mma<
