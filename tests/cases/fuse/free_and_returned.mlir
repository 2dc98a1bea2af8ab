// test: pass fuse
// tolerance: bits

// a reshape of size 1 is free for its readers, and gets a kernel where it is a result too; that kernel runs before them
func.func @free_and_returned(%x: tensor<8x1xf32>, %y: tensor<f32>) -> (tensor<8xf32>, tensor<11xf32>) {
  %0 = tensor.reshape %x : tensor<8x1xf32> to tensor<8xf32>
  %1 = tensor.pad %0, %y {low = [3], high = [0], interior = [0]} : (tensor<8xf32>, tensor<f32>) -> tensor<11xf32>
  func.return %0, %1 : tensor<8xf32>, tensor<11xf32>
}
// CHECK: [[R:%\w+]] = tensor.kernel %x
// CHECK: tensor.kernel [[R]]
