// test: pass decompose
// tolerance: 0.02

// without a kernel for it, attention block by block is what attention is made of
func.func @main(%q: tensor<2x4x16xbf16>, %k: tensor<2x6x16xbf16>, %v: tensor<2x6x16xbf16>) -> tensor<2x4x16xbf16> {
  %0 = tensor.flash_attention %q, %k, %v {scale = 0.125, block = 4} : (tensor<2x4x16xbf16>, tensor<2x6x16xbf16>, tensor<2x6x16xbf16>) -> tensor<2x4x16xbf16>
  func.return %0 : tensor<2x4x16xbf16>
}
// CHECK-NOT: flash_attention
// CHECK: tensor.dot_general
