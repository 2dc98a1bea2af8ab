// test: pass grad
// test: run interp

// what the condition hands on is not what the loop carries
func.func private @f(%x: tensor<f64>) -> tensor<f64> {
  %low = tensor.full 0.1 : tensor<f64>
  %high = tensor.full 10.0 : tensor<f64>
  %r = scf.while (%a = %x) : (tensor<f64>) -> tensor<f64> {
    %d = tensor.add %a, %a : tensor<f64>
    %0 = tensor.compare gt, %d, %low : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %1 = tensor.compare lt, %d, %high : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %2 = tensor.and %0, %1 : tensor<i1>
    %go = tensor.item %2 : (tensor<i1>) -> i1
    scf.condition(%go) %d : tensor<f64>
  } do {
  ^bb0(%d: tensor<f64>):
    %e = tensor.mul %d, %d : tensor<f64>
    scf.yield %e : tensor<f64>
  }
  func.return %r : tensor<f64>
}
func.func @value(%x: tensor<f64>) -> tensor<f64> {
  %0 = func.call @f(%x) : (tensor<f64>) -> tensor<f64>
  func.return %0 : tensor<f64>
}
func.func @derivative(%x: tensor<f64>) -> tensor<f64> {
  %0:2 = autodiff.grad @f(%x) wrt [0] : (tensor<f64>) -> (tensor<f64>, tensor<f64>)
  func.return %0#1 : tensor<f64>
}
// 128 x**4 in two iterations, 8 x**2 in one, 2 x in none
// run: @value(1.0) == 128.0
// run: @derivative(1.0) == 512.0
// run: @derivative(2.0) == 32.0
// run: @derivative(5.0) == 2.0
// CHECK: @derivative
// CHECK-NOT: autodiff
