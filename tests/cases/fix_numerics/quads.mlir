// test: pass decompose fix_numerics{byte_tiles=true}
// tolerance: bits

// whole blocks of bytes have the order of tiles, whatever their signs
func.func @whole_blocks(%x: tensor<5x64xui8>, %y: tensor<64x6xui8>) -> tensor<5x6xi32> {
  %0 = tensor.cast %x : tensor<5x64xui8> to tensor<5x64xi32>
  %1 = tensor.cast %y : tensor<64x6xui8> to tensor<64x6xi32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 0]]} : (tensor<5x64xi32>, tensor<64x6xi32>) -> tensor<5x6xi32>
  func.return %2 : tensor<5x6xi32>
}
// CHECK: order = "quads<64>"
// -----
// the terms of the last block are padded with zeros
func.func @padded(%x: tensor<5x50xui8>, %y: tensor<50x6xi8>) -> tensor<5x6xi32> {
  %0 = tensor.cast %x : tensor<5x50xui8> to tensor<5x50xi32>
  %1 = tensor.cast %y : tensor<50x6xi8> to tensor<50x6xi32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 0]]} : (tensor<5x50xi32>, tensor<50x6xi32>) -> tensor<5x6xi32>
  func.return %2 : tensor<5x6xi32>
}
// CHECK: tensor.pad %x, {{.*}} -> tensor<5x64xui8>
// CHECK: tensor.pad %y, {{.*}} -> tensor<64x6xi8>
// CHECK: order = "quads<64>"
// -----
// what would take more than a third as many zeros and other integers stay as they are elsewhere, and so does bf16
func.func @others(%x: tensor<5x40xui8>, %y: tensor<40x6xi8>, %a: tensor<5x64xi16>, %b: tensor<64x6xi8>, %c: tensor<5x64xbf16>, %d: tensor<64x6xbf16>) -> (tensor<5x6xi32>, tensor<5x6xi32>, tensor<5x6xbf16>) {
  %0 = tensor.cast %x : tensor<5x40xui8> to tensor<5x40xi32>
  %1 = tensor.cast %y : tensor<40x6xi8> to tensor<40x6xi32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 0]]} : (tensor<5x40xi32>, tensor<40x6xi32>) -> tensor<5x6xi32>
  %3 = tensor.cast %a : tensor<5x64xi16> to tensor<5x64xi32>
  %4 = tensor.cast %b : tensor<64x6xi8> to tensor<64x6xi32>
  %5 = tensor.dot_general %3, %4 {batch = [], contract = [[1, 0]]} : (tensor<5x64xi32>, tensor<64x6xi32>) -> tensor<5x6xi32>
  %6 = tensor.dot_general %c, %d {batch = [], contract = [[1, 0]]} : (tensor<5x64xbf16>, tensor<64x6xbf16>) -> tensor<5x6xbf16>
  func.return %2, %5, %6 : tensor<5x6xi32>, tensor<5x6xi32>, tensor<5x6xbf16>
}
// CHECK-NOT: quads
// CHECK: order = "chain"
// CHECK: order = "chain"
// CHECK: order = "chain"
// -----
// so do few rows
func.func @few(%x: tensor<3x64xui8>, %y: tensor<64x6xi8>) -> tensor<3x6xi32> {
  %0 = tensor.cast %x : tensor<3x64xui8> to tensor<3x64xi32>
  %1 = tensor.cast %y : tensor<64x6xi8> to tensor<64x6xi32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 0]]} : (tensor<3x64xi32>, tensor<64x6xi32>) -> tensor<3x6xi32>
  func.return %2 : tensor<3x6xi32>
}
// CHECK-NOT: quads
// CHECK: order = "chain"
// -----
// the rows of windows of an image of 3 channels are 16 elements of 4
func.func @windows(%x: tensor<1x3x33x33xui8>, %w: tensor<16x3x7x7xi8>) -> tensor<1x16x14x14xi32> {
  %0 = tensor.convolution %x, %w {stride = [2, 2]} : (tensor<1x3x33x33xui8>, tensor<16x3x7x7xi8>) -> tensor<1x16x14x14xi32>
  func.return %0 : tensor<1x16x14x14xi32>
}
// CHECK: tensor.pad {{.*}} -> tensor<1x4x33x42xui8>
// CHECK: tensor.windows {{.*}} size = 16, stride = 2{{.*}} -> tensor<1x4x14x7x14x16xui8>
// CHECK: tensor.pad {{.*}} -> tensor<16x4x7x16xi8>
