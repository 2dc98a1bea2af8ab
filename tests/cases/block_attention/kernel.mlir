// test: pass block_attention{keys=64}
// tolerance: 0.02

// rows of 64 features of 16 bits, without a mask
func.func @kernel(%q: tensor<2x40x64xbf16>, %k: tensor<2x70x64xbf16>, %v: tensor<2x70x64xbf16>) -> tensor<2x40x64xbf16> {
  %0 = tensor.attention %q, %k, %v {scale = 0.125, causal = true} : (tensor<2x40x64xbf16>, tensor<2x70x64xbf16>, tensor<2x70x64xbf16>) -> tensor<2x40x64xbf16>
  func.return %0 : tensor<2x40x64xbf16>
}
// CHECK: @kernel
// CHECK: tensor.flash_attention {{.*}} {scale = 0.125, causal = true}
// -----
// what has a mask, a scale that is no positive number of f32, few queries, or one key is left
func.func @others(%q: tensor<2x40x64xbf16>, %k: tensor<2x70x64xbf16>, %m: tensor<40x70xi1>, %one: tensor<2x1x64xbf16>) -> (tensor<2x40x64xbf16>, tensor<2x40x64xbf16>, tensor<2x40x64xbf16>, tensor<2x1x64xbf16>, tensor<2x40x64xbf16>) {
  %0 = tensor.attention %q, %k, %k, %m {scale = 0.125} : (tensor<2x40x64xbf16>, tensor<2x70x64xbf16>, tensor<2x70x64xbf16>, tensor<40x70xi1>) -> tensor<2x40x64xbf16>
  %1 = tensor.attention %q, %k, %k {scale = -0.125} : (tensor<2x40x64xbf16>, tensor<2x70x64xbf16>, tensor<2x70x64xbf16>) -> tensor<2x40x64xbf16>
  %2 = tensor.attention %q, %k, %k {scale = 1.0e-50, causal = true} : (tensor<2x40x64xbf16>, tensor<2x70x64xbf16>, tensor<2x70x64xbf16>) -> tensor<2x40x64xbf16>
  %3 = tensor.attention %one, %k, %k {scale = 0.125} : (tensor<2x1x64xbf16>, tensor<2x70x64xbf16>, tensor<2x70x64xbf16>) -> tensor<2x1x64xbf16>
  %4 = tensor.attention %q, %one, %one {scale = 0.125} : (tensor<2x40x64xbf16>, tensor<2x1x64xbf16>, tensor<2x1x64xbf16>) -> tensor<2x40x64xbf16>
  func.return %0, %1, %2, %3, %4 : tensor<2x40x64xbf16>, tensor<2x40x64xbf16>, tensor<2x40x64xbf16>, tensor<2x1x64xbf16>, tensor<2x40x64xbf16>
}
// CHECK: @others
// CHECK-NOT: flash_attention
// -----
// the derivative: the numbers of each query from which weights are computed again, and a kernel for each cotangent that is used
func.func @gradients(%q: tensor<2x40x64xbf16>, %k: tensor<2x70x64xbf16>, %v: tensor<2x70x64xbf16>, %o: tensor<2x40x64xbf16>, %c: tensor<2x40x64xbf16>) -> (tensor<2x40x64xbf16>, tensor<2x70x64xbf16>) {
  %0, %1, %2 = tensor.attention_grad %q, %k, %v, %o, %c {scale = 0.125} : (tensor<2x40x64xbf16>, tensor<2x70x64xbf16>, tensor<2x70x64xbf16>, tensor<2x40x64xbf16>, tensor<2x40x64xbf16>) -> (tensor<2x40x64xbf16>, tensor<2x70x64xbf16>, tensor<2x70x64xbf16>)
  func.return %0, %2 : tensor<2x40x64xbf16>, tensor<2x70x64xbf16>
}
// CHECK: @gradients
// CHECK: tensor.attention_statistics
// CHECK: tensor.flash_attention_grad {{.*}} {of = "q", scale = 0.125}
// CHECK: tensor.flash_attention_grad {{.*}} {of = "v", scale = 0.125}
// CHECK-NOT: flash_attention_grad
