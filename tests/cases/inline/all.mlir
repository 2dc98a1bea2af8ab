// test: pass inline{all=true}

// everything that can be, public functions too, which stay as entries
func.func @helper(%x: tensor<Bxf32>) -> tensor<Bxf32> {
  %0 = tensor.sin %x : tensor<Bxf32>
  %1 = tensor.cos %0 : tensor<Bxf32>
  %2 = tensor.sin %1 : tensor<Bxf32>
  %3 = tensor.cos %2 : tensor<Bxf32>
  %4 = tensor.sin %3 : tensor<Bxf32>
  %5 = tensor.cos %4 : tensor<Bxf32>
  %6 = tensor.sin %5 : tensor<Bxf32>
  %7 = tensor.cos %6 : tensor<Bxf32>
  func.return %7 : tensor<Bxf32>
}
func.func @entry(%x: tensor<Nxf32>, %c: i1) -> tensor<Nxf32> {
  %r = scf.if %c -> (tensor<Nxf32>) {
    %0 = func.call @helper(%x) : (tensor<Nxf32>) -> tensor<Nxf32>
    scf.yield %0 : tensor<Nxf32>
  } else {
    scf.yield %x : tensor<Nxf32>
  }
  %1 = func.call @helper(%r) : (tensor<Nxf32>) -> tensor<Nxf32>
  func.return %1 : tensor<Nxf32>
}
// CHECK: func.func @helper
// CHECK: func.func @entry
// CHECK-NOT: func.call
