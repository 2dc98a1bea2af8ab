// test: pass fix_numerics fuse{machine=bf16_dot:true} bufferize tensor_to_loop coalesce_dimensions vectorize{machine=bf16_dot:true} loop_to_scf canonicalize cse
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
