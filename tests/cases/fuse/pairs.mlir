// test: pass fix_numerics fuse{machine=bf16_dot:true}
// tolerance: 1e-2

// a factor that is computed stays bf16 in memory, and is widened where pairs of terms are multiplied
func.func @computed(%x: tensor<40x70xbf16>, %y: tensor<70x33xbf16>) -> tensor<40x33xbf16> {
  %0 = tensor.exp %x : tensor<40x70xbf16>
  %1 = tensor.dot_general %0, %y {batch = [], contract = [[1, 0]]} : (tensor<40x70xbf16>, tensor<70x33xbf16>) -> tensor<40x33xbf16>
  func.return %1 : tensor<40x33xbf16>
}
// CHECK: tensor.kernel
// CHECK: tensor.kernel
// CHECK-SAME: tensor<40x70xbf16>
// CHECK: tensor.dot_general
