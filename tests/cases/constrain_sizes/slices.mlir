// test: pass constrain_sizes,canonicalize
// sizes: N=4 M=3 S=5 B=2
// The slices become one, and what the first one needed of the argument stays.
// CHECK-LABEL: @twice
// CHECK-NEXT: tensor.constrain_size {size = "N - 1", message = "tensor.slice: axis 0: 1:N:1 does not lie within size N"}
// CHECK: tensor.constrain_size {size = "N - 2"
// CHECK-NEXT: tensor.slice %x {starts = ["N - 1"], stops = ["N"], steps = [1]}
func.func @twice(%x: tensor<Nxf32>) -> tensor<1xf32> {
  %0 = tensor.slice %x {starts = [1], stops = ["N"], steps = [1]} : (tensor<Nxf32>) -> tensor<(N - 1)xf32>
  %1 = tensor.slice %0 {starts = ["N - 2"], stops = ["N - 1"], steps = [1]} : (tensor<(N - 1)xf32>) -> tensor<1xf32>
  func.return %1 : tensor<1xf32>
}

// What a private function needs, its callers need with their sizes; derivatives and vmap are calls too.
func.func private @tail(%x: tensor<Sxf32>) -> tensor<f32> {
  %0 = tensor.slice %x {starts = [1], stops = ["S"], steps = [1]} : (tensor<Sxf32>) -> tensor<(S - 1)xf32>
  %1 = tensor.reduce_sum %0 {axes = [0]} : (tensor<(S - 1)xf32>) -> tensor<f32>
  func.return %1 : tensor<f32>
}
// CHECK-LABEL: @calls
// CHECK-NEXT: tensor.constrain_size {size = "2*N - 1", message = "{{.*}} (S = 2*N in this call)"}
// CHECK-NOT: constrain_size
func.func @calls(%n: tensor<Nxf32>, %x: tensor<(2*N)xf32>) -> tensor<f32> {
  %0 = func.call @tail(%x) : (tensor<(2*N)xf32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}
// CHECK-LABEL: @slope
// CHECK-NEXT: tensor.constrain_size {size = "N - 1"
func.func @slope(%x: tensor<Nxf32>) -> tensor<Nxf32> {
  %0, %1 = autodiff.grad @tail(%x) wrt [0] : (tensor<Nxf32>) -> (tensor<f32>, tensor<Nxf32>)
  func.return %1 : tensor<Nxf32>
}
// CHECK-LABEL: @lanes
// CHECK-NEXT: tensor.constrain_size {size = "M - 1"
func.func @lanes(%x: tensor<BxMxf32>) -> tensor<Bxf32> {
  %0 = autodiff.vmap @tail(%x) batched [0] size "B" : (tensor<BxMxf32>) -> tensor<Bxf32>
  func.return %0 : tensor<Bxf32>
}

// A loop over N runs its body only where there is one, and a size that is known needs nothing.
// CHECK-LABEL: @known
// CHECK-NOT: constrain_size
func.func @known(%x: tensor<(N + 5)xf32>, %n: tensor<Nxf32>) -> tensor<Nxf32> {
  %0 = tensor.slice %x {starts = [5], stops = ["N + 5"], steps = [1]} : (tensor<(N + 5)xf32>) -> tensor<Nxf32>
  func.return %0 : tensor<Nxf32>
}
