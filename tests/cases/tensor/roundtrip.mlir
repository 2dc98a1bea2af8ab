// test: roundtrip
// test: verify

func.func @sizes(%x: tensor<Bx7xf32>, %y: tensor<Cx7xf32>) -> (tensor<(B + C)x7xf32>, tensor<(((B + 1) floordiv 2))x3xf32>) {
  %0 = tensor.concat %x, %y {axis = 0} : (tensor<Bx7xf32>, tensor<Cx7xf32>) -> tensor<(B + C)x7xf32>
  %1 = tensor.slice %x {starts = [0, 1], stops = ["B", 7], steps = [2, 2]} : (tensor<Bx7xf32>) -> tensor<(((B + 1) floordiv 2))x3xf32>
  func.return %0, %1 : tensor<(B + C)x7xf32>, tensor<(((B + 1) floordiv 2))x3xf32>
}

func.func @numbers() -> (tensor<3xbf16>, tensor<2xi1>, tensor<f16>, tensor<2xui64>, tensor<i64>) {
  %0 = tensor.full 0x7F80 : tensor<3xbf16>
  %1 = tensor.constant dense<[true, false]> : tensor<2xi1>
  %2 = tensor.full -0.0 : tensor<f16>
  %3 = tensor.full 18446744073709551615 : tensor<2xui64>
  %4 = tensor.size "7" : tensor<i64>
  func.return %0, %1, %2, %3, %4 : tensor<3xbf16>, tensor<2xi1>, tensor<f16>, tensor<2xui64>, tensor<i64>
}

func.func @bodies(%x: tensor<Bxf32>, %w: tensor<Bxf32>) -> (tensor<Bxf32>, tensor<Bxf32>) {
  %0 = tensor.map %x, %w : tensor<Bxf32> {
  ^bb0(%arg0: f32, %arg1: f32):
    %0 = arith.mulf %arg0, %arg1 : f32
    tensor.yield %0 : f32
  }
  %1 = tensor.layer_norm %x, %w {axes = [0], operandSegmentSizes = [1, 0, 1]} : tensor<Bxf32>
  func.return %0, %1 : tensor<Bxf32>, tensor<Bxf32>
}
