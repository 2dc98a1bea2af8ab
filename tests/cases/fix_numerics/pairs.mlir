// test: pass decompose fix_numerics{tiles=true}
// tolerance: 2e-2

// whole blocks of factors of bf16 have the order of tiles
func.func @whole_blocks(%x: tensor<5x64xbf16>, %y: tensor<64x6xbf16>) -> tensor<5x6xbf16> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<5x64xbf16>, tensor<64x6xbf16>) -> tensor<5x6xbf16>
  func.return %0 : tensor<5x6xbf16>
}
// CHECK: order = "pairs<32>"
// -----
// the terms of the last block are padded with zeros
func.func @padded(%x: tensor<5x40xbf16>, %y: tensor<40x6xbf16>) -> tensor<5x6xbf16> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<5x40xbf16>, tensor<40x6xbf16>) -> tensor<5x6xbf16>
  func.return %0 : tensor<5x6xbf16>
}
// CHECK: tensor.pad %x, {{.*}} -> tensor<5x64xbf16>
// CHECK: tensor.pad %y, {{.*}} -> tensor<64x6xbf16>
// CHECK: order = "pairs<32>"
// -----
// few terms, an unknown number of them and other types of factors stay as they are elsewhere
func.func @others(%x: tensor<5x15xbf16>, %y: tensor<15x6xbf16>, %a: tensor<5xBxbf16>, %b: tensor<Bx6xbf16>, %c: tensor<5x32xf16>, %d: tensor<32x6xf16>) -> (tensor<5x6xbf16>, tensor<5x6xbf16>, tensor<5x6xf16>) {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<5x15xbf16>, tensor<15x6xbf16>) -> tensor<5x6xbf16>
  %1 = tensor.dot_general %a, %b {batch = [], contract = [[1, 0]]} : (tensor<5xBxbf16>, tensor<Bx6xbf16>) -> tensor<5x6xbf16>
  %2 = tensor.dot_general %c, %d {batch = [], contract = [[1, 0]]} : (tensor<5x32xf16>, tensor<32x6xf16>) -> tensor<5x6xf16>
  func.return %0, %1, %2 : tensor<5x6xbf16>, tensor<5x6xbf16>, tensor<5x6xf16>
}
// CHECK-NOT: pairs
// CHECK: order = "chain"
// CHECK: order = "blocks<256>"
// CHECK: order = "chain"
// -----
// the rows of windows of an image of 3 channels are 8 elements of 4: whole blocks, with zeros where there was nothing
func.func @windows(%x: tensor<1x3x33x33xbf16>, %w: tensor<16x3x3x3xbf16>) -> tensor<1x16x16x16xbf16> {
  %0 = tensor.convolution %x, %w {stride = [2, 2]} : (tensor<1x3x33x33xbf16>, tensor<16x3x3x3xbf16>) -> tensor<1x16x16x16xbf16>
  func.return %0 : tensor<1x16x16x16xbf16>
}
// CHECK: tensor.pad {{.*}} -> tensor<1x4x33x38xbf16>
// CHECK: tensor.windows {{.*}} size = 3, stride = 2{{.*}} -> tensor<1x4x16x3x38xbf16>
// CHECK: tensor.windows {{.*}} size = 8, stride = 2{{.*}} -> tensor<1x4x16x3x16x8xbf16>
// CHECK: tensor.pad {{.*}} -> tensor<16x4x3x8xbf16>
// CHECK: tensor.dot_general {{.*}} order = "pairs<32>"
