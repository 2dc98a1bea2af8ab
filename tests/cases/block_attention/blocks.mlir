// test: pass block_attention{most=64,block=64,fewest=2,quarter=2,times=0}
// tolerance: 1e-5

// what takes no more memory is left as it is
func.func @short(%q: tensor<4x3xf32>, %k: tensor<4x3xf32>, %v: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = tensor.attention %q, %k, %v {scale = 0.5} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %0 : tensor<4x2xf32>
}
// CHECK: @short
// CHECK-NOT: scf.for
// -----
// two queries at a time, and the one that is left
func.func @queries(%q: tensor<5x3xf32>, %k: tensor<8x3xf32>, %v: tensor<8x2xf32>) -> tensor<5x2xf32> {
  %0 = tensor.attention %q, %k, %v {scale = 0.5} : (tensor<5x3xf32>, tensor<8x3xf32>, tensor<8x2xf32>) -> tensor<5x2xf32>
  func.return %0 : tensor<5x2xf32>
}
// CHECK: @queries
// CHECK: scf.for
// CHECK: tensor.attention {{.*}} (tensor<2x3xf32>, tensor<8x3xf32>, tensor<8x2xf32>)
// CHECK: tensor.attention {{.*}} (tensor<1x3xf32>, tensor<8x3xf32>, tensor<8x2xf32>)
// -----
// two heads at a time, along the last axis of heads; a mask that is that of all queries is not divided
func.func @heads(%q: tensor<2x4x2x3xf32>, %k: tensor<2x4x4x3xf32>, %v: tensor<2x4x4x3xf32>, %m: tensor<4x1x4xf32>) -> tensor<2x4x2x3xf32> {
  %0 = tensor.attention %q, %k, %v, %m {scale = 0.5} : (tensor<2x4x2x3xf32>, tensor<2x4x4x3xf32>, tensor<2x4x4x3xf32>, tensor<4x1x4xf32>) -> tensor<2x4x2x3xf32>
  func.return %0 : tensor<2x4x2x3xf32>
}
// CHECK: @heads
// CHECK: scf.for
// CHECK: tensor.attention {{.*}} (tensor<1x2x2x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x1x4xf32>)
// -----
// each quarter of the queries has the keys before it
func.func @causal(%q: tensor<3x8x2xf32>, %k: tensor<3x8x2xf32>, %v: tensor<3x8x2xf32>) -> tensor<3x8x2xf32> {
  %0 = tensor.attention %q, %k, %v {scale = 0.5, causal = true} : tensor<3x8x2xf32>
  func.return %0 : tensor<3x8x2xf32>
}
// CHECK: @causal
// CHECK: tensor.attention {{.*}} (tensor<1x2x2xf32>, tensor<1x8x2xf32>, tensor<1x8x2xf32>, tensor<1x2x8xi1>)
// CHECK: tensor.attention {{.*}} (tensor<1x2x2xf32>, tensor<1x6x2xf32>, tensor<1x6x2xf32>, tensor<1x2x6xi1>)
// CHECK: tensor.attention {{.*}} (tensor<1x2x2xf32>, tensor<1x4x2xf32>, tensor<1x4x2xf32>, tensor<1x2x4xi1>)
// CHECK: tensor.attention {{.*}} (tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xi1>)
// -----
// queries that share keys, and a mask besides
func.func @shared(%q: tensor<2x2x4x3xf32>, %k: tensor<2x6x3xf32>, %v: tensor<2x6x3xf32>, %m: tensor<4x6xi1>) -> tensor<2x2x4x3xf32> {
  %0 = tensor.attention %q, %k, %v, %m {scale = 0.5, causal = true} : (tensor<2x2x4x3xf32>, tensor<2x6x3xf32>, tensor<2x6x3xf32>, tensor<4x6xi1>) -> tensor<2x2x4x3xf32>
  func.return %0 : tensor<2x2x4x3xf32>
}
// CHECK: @shared
// CHECK: tensor.attention {{.*}} (tensor<1x2x1x3xf32>, tensor<1x6x3xf32>, tensor<1x6x3xf32>, tensor<1x1x1x6xi1>)
// -----
// the cotangents of keys and values are added up over the blocks, those of 16 bits in 32
func.func @gradients(%q: tensor<2x5x3xf16>, %k: tensor<2x8x3xf16>, %v: tensor<2x8x2xf16>, %o: tensor<2x5x2xf16>, %c: tensor<2x5x2xf16>) -> (tensor<2x5x3xf16>, tensor<2x8x3xf16>, tensor<2x8x2xf16>) {
  %0, %1, %2 = tensor.attention_grad %q, %k, %v, %o, %c {scale = 0.5, causal = true} : (tensor<2x5x3xf16>, tensor<2x8x3xf16>, tensor<2x8x2xf16>, tensor<2x5x2xf16>, tensor<2x5x2xf16>) -> (tensor<2x5x3xf16>, tensor<2x8x3xf16>, tensor<2x8x2xf16>)
  func.return %0, %1, %2 : tensor<2x5x3xf16>, tensor<2x8x3xf16>, tensor<2x8x2xf16>
}
// CHECK: @gradients
// CHECK: tensor.attention_grad {{.*}} -> (tensor<1x2x3xf32>, tensor<1x8x3xf32>, tensor<1x8x2xf32>)
// CHECK: tensor.cast {{.*}} tensor<1x8x3xf16>
// -----
// so are those of quarters, of which each has the keys before it
func.func @quarters(%q: tensor<9x3xf32>, %k: tensor<7x3xf32>, %v: tensor<7x2xf32>, %o: tensor<9x2xf32>, %c: tensor<9x2xf32>) -> (tensor<9x3xf32>, tensor<7x3xf32>, tensor<7x2xf32>) {
  %0, %1, %2 = tensor.attention_grad %q, %k, %v, %o, %c {scale = 0.5, causal = true} : (tensor<9x3xf32>, tensor<7x3xf32>, tensor<7x2xf32>, tensor<9x2xf32>, tensor<9x2xf32>) -> (tensor<9x3xf32>, tensor<7x3xf32>, tensor<7x2xf32>)
  func.return %0, %1, %2 : tensor<9x3xf32>, tensor<7x3xf32>, tensor<7x2xf32>
}
// CHECK: @quarters
// CHECK: tensor.attention_grad {{.*}} tensor<6x3xf32>
// -----
// a float mask whose cotangent is used: it takes as much memory as the scores
func.func @mask(%q: tensor<5x3xf32>, %k: tensor<8x3xf32>, %v: tensor<8x2xf32>, %o: tensor<5x2xf32>, %c: tensor<5x2xf32>, %m: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0, %1, %2, %3 = tensor.attention_grad %q, %k, %v, %o, %c, %m {scale = 0.5} : (tensor<5x3xf32>, tensor<8x3xf32>, tensor<8x2xf32>, tensor<5x2xf32>, tensor<5x2xf32>, tensor<5x8xf32>) -> (tensor<5x3xf32>, tensor<8x3xf32>, tensor<8x2xf32>, tensor<5x8xf32>)
  func.return %3 : tensor<5x8xf32>
}
// CHECK: @mask
// CHECK-NOT: scf.for
// -----
// a size that is not known
func.func @width(%q: tensor<5x3xf32>, %k: tensor<8x3xf32>, %v: tensor<8xWxf32>) -> tensor<5xWxf32> {
  %0 = tensor.attention %q, %k, %v {scale = 0.5} : (tensor<5x3xf32>, tensor<8x3xf32>, tensor<8xWxf32>) -> tensor<5xWxf32>
  func.return %0 : tensor<5xWxf32>
}
// CHECK: @width
// CHECK-NOT: scf.for
// -----
// cotangents that nobody uses are not added up
func.func @unused(%q: tensor<5x3xf32>, %k: tensor<8x3xf32>, %v: tensor<8x2xf32>, %o: tensor<5x2xf32>, %c: tensor<5x2xf32>) -> tensor<8x2xf32> {
  %0, %1, %2 = tensor.attention_grad %q, %k, %v, %o, %c {scale = 0.5} : (tensor<5x3xf32>, tensor<8x3xf32>, tensor<8x2xf32>, tensor<5x2xf32>, tensor<5x2xf32>) -> (tensor<5x3xf32>, tensor<8x3xf32>, tensor<8x2xf32>)
  func.return %2 : tensor<8x2xf32>
}
// CHECK: @unused
// CHECK: scf.for
// CHECK-SAME: -> (tensor<5x3xf32>, tensor<8x2xf32>)
