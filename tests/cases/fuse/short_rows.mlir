// test: pass fuse
// A contraction whose results lie in short rows is written by itself: an update that reads them beside other tensors
// goes along memory in a kernel of its own. What reads nothing else stays.
func.func @update(%g: tensor<5x7xf32>, %x: tensor<5x11x3xf32>, %w: tensor<7x11x3xf32>) -> tensor<7x11x3xf32> {
  %0 = tensor.dot_general %g, %x {batch = [], contract = [[0, 0]], order = "chain"} : (tensor<5x7xf32>, tensor<5x11x3xf32>) -> tensor<7x11x3xf32>
  %1 = tensor.sub %w, %0 : tensor<7x11x3xf32>
  func.return %1 : tensor<7x11x3xf32>
}
func.func @alone(%g: tensor<5x7xf32>, %x: tensor<5x11x3xf32>) -> tensor<7x11x3xf32> {
  %0 = tensor.dot_general %g, %x {batch = [], contract = [[0, 0]], order = "chain"} : (tensor<5x7xf32>, tensor<5x11x3xf32>) -> tensor<7x11x3xf32>
  %1 = tensor.neg %0 : tensor<7x11x3xf32>
  func.return %1 : tensor<7x11x3xf32>
}
// CHECK: @update
// CHECK: label = "dot_general"
// CHECK: label = "sub", {{.*}}unfused = ["dot_general: rows of 3 are too short to read beside a contraction"]
// CHECK: @alone
// CHECK: label = "dot_general_neg"
