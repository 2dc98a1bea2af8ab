// test: run

// run: @scale([1.0, 2.5]) == [3.0, 6.0]
func.func @scale(%x: tensor<Bxf32>) -> tensor<Bxf32> {
  %0 = tensor.full 2.0 : tensor<f32>
  %1 = tensor.full 1.0 : tensor<f32>
  %2 = tensor.mul %x, %0 : (tensor<Bxf32>, tensor<f32>) -> tensor<Bxf32>
  %3 = tensor.add %2, %1 : (tensor<Bxf32>, tensor<f32>) -> tensor<Bxf32>
  func.return %3 : tensor<Bxf32>
}

// run: @divide([7, -7, 5], [2, 2, 0]) == ([3, -4, 0], [1, 1, 0])
func.func @divide(%x: tensor<3xi32>, %y: tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>) {
  %0 = tensor.floordiv %x, %y : tensor<3xi32>
  %1 = tensor.rem %x, %y : tensor<3xi32>
  func.return %0, %1 : tensor<3xi32>, tensor<3xi32>
}

// run: @spread([1, 2, 3]) == [0, 1, 9, 2, 9, 3, 0]
func.func @spread(%x: tensor<3xi8>) -> tensor<7xi8> {
  %0 = tensor.full 9 : tensor<i8>
  %1 = tensor.pad %x, %0 {low = [0], high = [-1], interior = [1]} : (tensor<3xi8>, tensor<i8>) -> tensor<5xi8>
  %2 = tensor.full 0 : tensor<i8>
  %3 = tensor.pad %1, %2 {low = [1], high = [1], interior = [0]} : (tensor<5xi8>, tensor<i8>) -> tensor<7xi8>
  func.return %3 : tensor<7xi8>
}

// run: @lanes([1.0e8, 1.0, -1.0e8, 1.0, 3.0]) == (5.0, 4.0)
func.func @lanes(%x: tensor<Bxf32>) -> (tensor<f32>, tensor<f32>) {
  %0 = tensor.reduce_sum %x {axes = [0], order = "lanes<2>"} : (tensor<Bxf32>) -> tensor<f32>
  %1 = tensor.reduce_sum %x {axes = [0], order = "chain"} : (tensor<Bxf32>) -> tensor<f32>
  func.return %0, %1 : tensor<f32>, tensor<f32>
}
