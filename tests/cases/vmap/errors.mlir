// test: verify

func.func private @f(%x: tensor<2xf32>, %i: index) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}
func.func @batched(%x: tensor<3x2xf32>, %i: index) -> tensor<4x2xf32> {
  %0 = autodiff.vmap @f(%x, %i) batched [0] size 4 : (tensor<3x2xf32>, index) -> tensor<4x2xf32> // error: argument 0 is tensor<3x2xf32>, whose first axis does not have the batch size 4
  func.return %0 : tensor<4x2xf32>
}
// -----
func.func private @f(%x: tensor<2xf32>, %i: index) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}
func.func @order(%x: tensor<3x2xf32>, %i: index) -> tensor<3x2xf32> {
  %0 = autodiff.vmap @f(%x, %i) batched [1, 0] size 3 : (tensor<3x2xf32>, index) -> tensor<3x2xf32> // error: batched = [1, 0] are no arguments of @f in ascending order, which has 2
  func.return %0 : tensor<3x2xf32>
}
// -----
func.func private @f(%x: tensor<2xf32>, %i: index) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}
func.func @none(%x: tensor<2xf32>, %i: index) -> tensor<3x2xf32> {
  %0 = autodiff.vmap @f(%x, %i) batched [] size 3 : (tensor<2xf32>, index) -> tensor<3x2xf32> // error: batched = [] are no arguments
  func.return %0 : tensor<3x2xf32>
}
// -----
func.func private @f(%x: tensor<2xf32>, %i: index) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}
func.func @argument(%x: tensor<3x5xf32>, %i: index) -> tensor<3x2xf32> {
  %0 = autodiff.vmap @f(%x, %i) batched [0] size 3 : (tensor<3x5xf32>, index) -> tensor<3x2xf32> // error: argument 0 has type tensor<5xf32>, expected tensor<2xf32>
  func.return %0 : tensor<3x2xf32>
}
// -----
func.func private @f(%x: tensor<2xf32>, %i: index) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}
func.func @result(%x: tensor<3x2xf32>, %i: index) -> tensor<2xf32> {
  %0 = autodiff.vmap @f(%x, %i) batched [0] size 3 : (tensor<3x2xf32>, index) -> tensor<2xf32> // error: the results are (tensor<3x2xf32>), not (tensor<2xf32>)
  func.return %0 : tensor<2xf32>
}
// -----
func.func private @scalar(%x: tensor<f32>) -> index {
  %c = arith.constant 0 : index
  func.return %c : index
}
func.func @of_scalar(%x: tensor<3xf32>) -> index {
  %0 = autodiff.vmap @scalar(%x) batched [0] size 3 : (tensor<3xf32>) -> index // error: result 0 of @scalar is index, not a tensor
  func.return %0 : index
}
// -----
func.func @predicate(%p: tensor<3xf32>, %x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = autodiff.predicated %p (%x) carried 1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32> { // error: the predicate is tensor<3xf32>, not a tensor of i1
  ^bb0(%a: tensor<3xf32>):
    autodiff.yield %a : tensor<3xf32>
  }
  func.return %0 : tensor<3xf32>
}
// -----
func.func @body(%p: tensor<3xi1>, %x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = autodiff.predicated %p (%x) carried 1 : (tensor<3xi1>, tensor<3xf32>) -> tensor<3xf32> { // error: the body's arguments are not of the types
  ^bb0(%a: tensor<3xf64>):
    %b = tensor.cast %a : tensor<3xf64> to tensor<3xf32>
    autodiff.yield %b : tensor<3xf32>
  }
  func.return %0 : tensor<3xf32>
}
// -----
func.func @yields(%p: tensor<3xi1>, %x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = autodiff.predicated %p (%x) carried 1 : (tensor<3xi1>, tensor<3xf32>) -> tensor<3xf32> {
  ^bb0(%a: tensor<3xf32>):
    autodiff.yield %a, %a : tensor<3xf32>, tensor<3xf32> // error: must end the body of an autodiff.predicated, with values of its result types
  }
  func.return %0 : tensor<3xf32>
}
