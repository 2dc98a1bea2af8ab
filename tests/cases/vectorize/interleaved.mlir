// test: pass fix_numerics fuse{machine=bf16_dot:true;byte_dot:true} bufferize tensor_to_loop coalesce_dimensions vectorize{machine=bf16_dot:true;byte_dot:true} loop_to_scf canonicalize cse
// tolerance: bits

// both factors are packed in pairs of terms
func.func @product(%x: tensor<40x70xbf16>, %y: tensor<70x33xbf16>) -> tensor<40x33xbf16> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<40x70xbf16>, tensor<70x33xbf16>) -> tensor<40x33xbf16>
  func.return %0 : tensor<40x33xbf16>
}
// CHECK: x86vector.avx512.dot
// -----
// of few rows they are read as they are
func.func @few_rows(%x: tensor<3x70xbf16>, %y: tensor<70x33xbf16>) -> tensor<3x33xbf16> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<3x70xbf16>, tensor<70x33xbf16>) -> tensor<3x33xbf16>
  func.return %0 : tensor<3x33xbf16>
}
// CHECK-NOT: x86vector
// -----
// rows along two dimensions pass through a panel of columns together, a dimension of size 1 changes nothing, and factors
// of windows are packed along the channels
func.func @image(%x: tensor<1x9x9x32xbf16>, %w: tensor<32x3x3x32xbf16>) -> tensor<1x7x7x32xbf16> {
  %0 = tensor.windows %x {axis = 1, size = 3} : (tensor<1x9x9x32xbf16>) -> tensor<1x7x3x9x32xbf16>
  %1 = tensor.windows %0 {axis = 3, size = 3} : (tensor<1x7x3x9x32xbf16>) -> tensor<1x7x3x7x3x32xbf16>
  %2 = tensor.dot_general %1, %w {batch = [], contract = [[2, 1], [4, 2], [5, 3]]} : (tensor<1x7x3x7x3x32xbf16>, tensor<32x3x3x32xbf16>) -> tensor<1x7x7x32xbf16>
  func.return %2 : tensor<1x7x7x32xbf16>
}
// CHECK: x86vector.avx512.dot
// -----
// factors of bytes, one without sign, are packed four terms in a word
func.func @bytes(%x: tensor<40x70xi8>, %y: tensor<70x33xui8>) -> tensor<40x33xi32> {
  %0 = tensor.cast %x : tensor<40x70xi8> to tensor<40x70xi32>
  %1 = tensor.cast %y : tensor<70x33xui8> to tensor<70x33xi32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 0]]} : (tensor<40x70xi32>, tensor<70x33xi32>) -> tensor<40x33xi32>
  func.return %2 : tensor<40x33xi32>
}
// CHECK: x86vector.avx512.dot_bytes
// -----
// no instruction multiplies bytes that both have a sign
func.func @with_sign(%x: tensor<40x70xi8>, %y: tensor<70x33xi8>) -> tensor<40x33xi32> {
  %0 = tensor.cast %x : tensor<40x70xi8> to tensor<40x70xi32>
  %1 = tensor.cast %y : tensor<70x33xi8> to tensor<70x33xi32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 0]]} : (tensor<40x70xi32>, tensor<70x33xi32>) -> tensor<40x33xi32>
  func.return %2 : tensor<40x33xi32>
}
// CHECK-NOT: x86vector
// -----
// a sum of many terms of bytes is one of sums of blocks, which panels hold
func.func @long(%x: tensor<40x1100xui8>, %y: tensor<1100x33xi8>) -> tensor<40x33xi32> {
  %0 = tensor.cast %x : tensor<40x1100xui8> to tensor<40x1100xi32>
  %1 = tensor.cast %y : tensor<1100x33xi8> to tensor<1100x33xi32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 0]]} : (tensor<40x1100xi32>, tensor<1100x33xi32>) -> tensor<40x33xi32>
  func.return %2 : tensor<40x33xi32>
}
// CHECK: x86vector.avx512.dot_bytes
// -----
// rows of one word are columns of words, which are read where they are if there are whole vectors of them
func.func @in_place(%x: tensor<40x4xui8>, %y: tensor<32x4xi8>) -> tensor<40x32xi32> {
  %0 = tensor.cast %x : tensor<40x4xui8> to tensor<40x4xi32>
  %1 = tensor.cast %y : tensor<32x4xi8> to tensor<32x4xi32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 1]]} : (tensor<40x4xi32>, tensor<32x4xi32>) -> tensor<40x32xi32>
  func.return %2 : tensor<40x32xi32>
}
// CHECK-NOT: memref.alloca
// CHECK: x86vector.avx512.dot_bytes
// -----
// the last vector would end beyond the buffer
func.func @beyond(%x: tensor<40x4xui8>, %y: tensor<19x4xi8>) -> tensor<40x19xi32> {
  %0 = tensor.cast %x : tensor<40x4xui8> to tensor<40x4xi32>
  %1 = tensor.cast %y : tensor<19x4xi8> to tensor<19x4xi32>
  %2 = tensor.dot_general %0, %1 {batch = [], contract = [[1, 1]]} : (tensor<40x4xi32>, tensor<19x4xi32>) -> tensor<40x19xi32>
  func.return %2 : tensor<40x19xi32>
}
// CHECK: memref.alloca
// CHECK: x86vector.avx512.dot_bytes
