// test: pass fuse{machine=bf16_dot:true} bufferize tensor_to_loop coalesce_dimensions vectorize{machine=bf16_dot:true;bf16_tiles:true} loop_to_scf canonicalize cse
// tolerance: bits

// rows are read where they are, columns are packed, and two tiles are multiplied by two; what is left has tiles of its own
func.func @product(%x: tensor<40x64xbf16>, %y: tensor<64x50xbf16>) -> tensor<40x50xbf16> {
  %0 = tensor.cast %x : tensor<40x64xbf16> to tensor<40x64xf32>
  %1 = tensor.cast %y : tensor<64x50xbf16> to tensor<64x50xf32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 0]], order = "pairs<32>"} : (tensor<40x64xf32>, tensor<64x50xf32>) -> tensor<40x50xf32>
  %3 = tensor.cast %2 : tensor<40x50xf32> to tensor<40x50xbf16>
  func.return %3 : tensor<40x50xbf16>
}
// CHECK: amx.tile_load {{.*}} strided<[0, 1]>
// CHECK: scf.for
// CHECK: memref.reinterpret_cast {{.*}} sizes: [16, 32], strides: [64, 1] : memref<2560xbf16>
// CHECK: amx.tile_mulf
// -----
// factors that lie the other way are transposed as they are packed
func.func @transposed(%x: tensor<64x20xbf16>, %y: tensor<33x64xbf16>) -> tensor<20x33xbf16> {
  %0 = tensor.cast %x : tensor<64x20xbf16> to tensor<64x20xf32>
  %1 = tensor.cast %y : tensor<33x64xbf16> to tensor<33x64xf32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[0, 1]], order = "pairs<32>"} : (tensor<64x20xf32>, tensor<33x64xf32>) -> tensor<20x33xf32>
  %3 = tensor.cast %2 : tensor<20x33xf32> to tensor<20x33xbf16>
  func.return %3 : tensor<20x33xbf16>
}
// CHECK: amx.tile_mulf
// -----
// each product of a batch has panels of its own, for any number of rows
func.func @batches(%x: tensor<2xMx32xbf16>, %y: tensor<2x32x40xbf16>) -> tensor<2xMx40xbf16> {
  %0 = tensor.cast %x : tensor<2xMx32xbf16> to tensor<2xMx32xf32>
  %1 = tensor.cast %y : tensor<2x32x40xbf16> to tensor<2x32x40xf32>
  %2 = tensor.dot_general %0, %1 {batch = [[0, 0]], contract = [[2, 1]], order = "pairs<32>"} : (tensor<2xMx32xf32>, tensor<2x32x40xf32>) -> tensor<2xMx40xf32>
  %3 = tensor.cast %2 : tensor<2xMx40xf32> to tensor<2xMx40xbf16>
  func.return %3 : tensor<2xMx40xbf16>
}
// CHECK: amx.tile_mulf
// -----
// of many terms, slices are added to sums in memory
func.func @slices(%x: tensor<17x1600xbf16>, %y: tensor<1600x16xbf16>) -> tensor<17x16xbf16> {
  %0 = tensor.cast %x : tensor<17x1600xbf16> to tensor<17x1600xf32>
  %1 = tensor.cast %y : tensor<1600x16xbf16> to tensor<1600x16xf32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 0]], order = "pairs<32>"} : (tensor<17x1600xf32>, tensor<1600x16xf32>) -> tensor<17x16xf32>
  %3 = tensor.cast %2 : tensor<17x16xf32> to tensor<17x16xbf16>
  func.return %3 : tensor<17x16xbf16>
}
// CHECK: amx.tile_load
// CHECK: amx.tile_mulf
// -----
// few rows are added in vectors, in the same order
func.func @few_rows(%x: tensor<3x64xbf16>, %y: tensor<64x33xbf16>) -> tensor<3x33xbf16> {
  %0 = tensor.cast %x : tensor<3x64xbf16> to tensor<3x64xf32>
  %1 = tensor.cast %y : tensor<64x33xbf16> to tensor<64x33xf32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 0]], order = "pairs<32>"} : (tensor<3x64xf32>, tensor<64x33xf32>) -> tensor<3x33xf32>
  %3 = tensor.cast %2 : tensor<3x33xf32> to tensor<3x33xbf16>
  func.return %3 : tensor<3x33xbf16>
}
// CHECK-NOT: amx
// -----
// rows lie along two dimensions of an image, and terms along three
func.func @image(%x: tensor<1x5x9x32xbf16>, %w: tensor<32x3x3x32xbf16>) -> tensor<1x3x7x32xf32> {
  %0 = tensor.windows %x {axis = 1, size = 3} : (tensor<1x5x9x32xbf16>) -> tensor<1x3x3x9x32xbf16>
  %1 = tensor.windows %0 {axis = 3, size = 3} : (tensor<1x3x3x9x32xbf16>) -> tensor<1x3x3x7x3x32xbf16>
  %2 = tensor.cast %1 : tensor<1x3x3x7x3x32xbf16> to tensor<1x3x3x7x3x32xf32>
  %3 = tensor.cast %w : tensor<32x3x3x32xbf16> to tensor<32x3x3x32xf32>
  %4 = tensor.dot_general %2, %3 {batch = [], contract = [[2, 1], [4, 2], [5, 3]], order = "pairs<32>"} : (tensor<1x3x3x7x3x32xf32>, tensor<32x3x3x32xf32>) -> tensor<1x3x7x32xf32>
  func.return %4 : tensor<1x3x7x32xf32>
}
// CHECK: amx.tile_mulf
// -----
// columns along two dimensions that are not one in memory
func.func @two_dimensions(%x: tensor<20x32xbf16>, %y: tensor<3x32x40xbf16>) -> tensor<20x3x40xf32> {
  %0 = tensor.cast %x : tensor<20x32xbf16> to tensor<20x32xf32>
  %1 = tensor.cast %y : tensor<3x32x40xbf16> to tensor<3x32x40xf32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 1]], order = "pairs<32>"} : (tensor<20x32xf32>, tensor<3x32x40xf32>) -> tensor<20x3x40xf32>
  func.return %2 : tensor<20x3x40xf32>
}
// CHECK: amx.tile_mulf
// -----
func.func @two_dimensions_in_slices(%x: tensor<5x1600xbf16>, %y: tensor<3x1600x16xbf16>) -> tensor<3x16x5xf32> {
  %0 = tensor.cast %x : tensor<5x1600xbf16> to tensor<5x1600xf32>
  %1 = tensor.cast %y : tensor<3x1600x16xbf16> to tensor<3x1600x16xf32>
  %2 = tensor.dot_general %1, %0 {batch = [], contract = [[1, 1]], order = "pairs<32>"} : (tensor<3x1600x16xf32>, tensor<5x1600xf32>) -> tensor<3x16x5xf32>
  func.return %2 : tensor<3x16x5xf32>
}
// CHECK: amx.tile_mulf
