// test: pass mark_stages
// A residual goes where the module beside it is, by the mark of that module's argument; a function is looked at with
// the stages of its arguments, and one that is called at several stages is left alone.
func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = shard.stage %x {stage = 0} : tensor<3xf32>
  %1 = tensor.neg %0 : tensor<3xf32>
  %2 = shard.stage %1 {stage = 1} : tensor<3xf32>
  %3 = tensor.exp %2 : tensor<3xf32>
  %4 = func.call @add(%3, %1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %5 = tensor.add %4, %1 : tensor<3xf32>
  %6 = tensor.mul %5, %0 : tensor<3xf32>
  %7 = func.call @mul(%6, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %8 = func.call @mul(%0, %7) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %8 : tensor<3xf32>
}
func.func private @add(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tensor.add %x, %y : tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
func.func private @mul(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tensor.mul %x, %y : tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
// CHECK-NEXT:     %0 = shard.stage %x {stage = 0} : tensor<3xf32>
// CHECK-NEXT:     %1 = tensor.neg %0 : tensor<3xf32>
// CHECK-NEXT:     %2 = shard.stage %1 {stage = 1} : tensor<3xf32>
// CHECK-NEXT:     %3 = tensor.exp %2 : tensor<3xf32>
// CHECK-NEXT:     %4 = func.call @add(%3, %1) : tensor<3xf32>
// CHECK-NEXT:     %5 = tensor.add %4, %2 : tensor<3xf32>
// CHECK-NEXT:     %6 = shard.stage %0 {stage = 1} : tensor<3xf32>
// CHECK-NEXT:     %7 = tensor.mul %5, %6 : tensor<3xf32>
// CHECK-NEXT:     %8 = func.call @mul(%7, %0) : tensor<3xf32>
// CHECK-NEXT:     %9 = func.call @mul(%0, %8) : tensor<3xf32>
// CHECK-NEXT:     func.return %9 : tensor<3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @add(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
// CHECK-NEXT:     %0 = shard.stage %y {stage = 1} : tensor<3xf32>
// CHECK-NEXT:     %1 = tensor.add %x, %0 : tensor<3xf32>
// CHECK-NEXT:     func.return %1 : tensor<3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @mul(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
// CHECK-NEXT:     %0 = tensor.mul %x, %y : tensor<3xf32>
// CHECK-NEXT:     func.return %0 : tensor<3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
