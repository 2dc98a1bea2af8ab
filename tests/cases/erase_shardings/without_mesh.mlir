// test: pass erase-shardings
// tolerance: bits

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.shard %x {dims = [["d"]]} : tensor<4xf32>
  %1 = tensor.neg %0 : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.neg %x : tensor<4xf32>
// CHECK-NEXT:     func.return %0 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
func.func @pipeline(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.microbatch %x {number = 0, schedule = "1f1b"} : tensor<4xf32>
  %1 = shard.stage %0 {stage = 1} : tensor<4xf32>
  %2 = tensor.neg %1 : tensor<4xf32>
  %3 = shard.stage_like %2, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @pipeline(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.neg %x : tensor<4xf32>
// CHECK-NEXT:     func.return %0 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
func.func @ring(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.neg %x : tensor<4xf32>
  %1 = shard.after %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = shard.roll %1 {axis = 0, offset = 1} : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @ring(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = tensor.neg %x : tensor<4xf32>
// CHECK-NEXT:     %1 = tensor.slice %x {starts = [3], stops = [4], steps = [1]} : (tensor<4xf32>) -> tensor<1xf32>
// CHECK-NEXT:     %2 = tensor.slice %x {starts = [0], stops = [3], steps = [1]} : (tensor<4xf32>) -> tensor<3xf32>
// CHECK-NEXT:     %3 = tensor.concat %1, %2 {axis = 0} : (tensor<1xf32>, tensor<3xf32>) -> tensor<4xf32>
// CHECK-NEXT:     func.return %3 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
