// test: pass block_attention{most=64,block=64}
// tolerance: 1e-5

// the scores of one query take less than the keys: there is no memory to save, and a loop would copy these
func.func @decode(%q: tensor<4x1x3xf32>, %k: tensor<4x8x3xf32>, %v: tensor<4x8x3xf32>) -> tensor<4x1x3xf32> {
  %0 = tensor.attention %q, %k, %v {scale = 0.5} : (tensor<4x1x3xf32>, tensor<4x8x3xf32>, tensor<4x8x3xf32>) -> tensor<4x1x3xf32>
  func.return %0 : tensor<4x1x3xf32>
}
// CHECK: @decode
// CHECK-NOT: scf.for
