// test: pass split-joint

// relu(x @ w) @ v: the products' operands are saved, and a mask of bytes; not the product, which takes more
func.func @layers(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>, %v: tensor<5x2xf32>, %ct: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<3x5xf32>, tensor<5x2xf32>) attributes {joint = [3, 1]} {
  %h = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]} : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %a = tensor.relu %h : tensor<4x5xf32>
  %y = tensor.dot_general %a, %v {batch = [], contract = [[1, 0]]} : (tensor<4x5xf32>, tensor<5x2xf32>) -> tensor<4x2xf32>
  %dv = tensor.dot_general %a, %ct {batch = [], contract = [[0, 0]]} : (tensor<4x5xf32>, tensor<4x2xf32>) -> tensor<5x2xf32>
  %da = tensor.dot_general %ct, %v {batch = [], contract = [[1, 1]]} : (tensor<4x2xf32>, tensor<5x2xf32>) -> tensor<4x5xf32>
  %zero = tensor.full 0.0 : tensor<f32>
  %off = tensor.compare le, %h, %zero : (tensor<4x5xf32>, tensor<f32>) -> tensor<4x5xi1>
  %dh = tensor.select %off, %zero, %da : (tensor<4x5xi1>, tensor<f32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  %dw = tensor.dot_general %x, %dh {batch = [], contract = [[0, 0]]} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  func.return %y, %dw, %dv : tensor<4x2xf32>, tensor<3x5xf32>, tensor<5x2xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @layers_forward(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>, %v: tensor<5x2xf32>) -> (tensor<4x2xf32>, tensor<4x5xf32>, tensor<4x5xi1>) {
// CHECK-NEXT:     %h = tensor.dot_general %x, %w {batch = [], contract = {{\[\[}}1, 0]]} : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
// CHECK-NEXT:     %0 = tensor.full 0.0 : tensor<f32>
// CHECK-NEXT:     %1 = tensor.compare le, %h, %0 : (tensor<4x5xf32>, tensor<f32>) -> tensor<4x5xi1>
// CHECK-NEXT:     %a = tensor.select %1, %0, %h : (tensor<4x5xi1>, tensor<f32>, tensor<4x5xf32>) -> tensor<4x5xf32>
// CHECK-NEXT:     %y = tensor.dot_general %a, %v {batch = [], contract = {{\[\[}}1, 0]]} : (tensor<4x5xf32>, tensor<5x2xf32>) -> tensor<4x2xf32>
// CHECK-NEXT:     %zero = tensor.full 0.0 : tensor<f32>
// CHECK-NEXT:     %off = tensor.compare le, %h, %zero : (tensor<4x5xf32>, tensor<f32>) -> tensor<4x5xi1>
// CHECK-NEXT:     func.return %y, %a, %off : tensor<4x2xf32>, tensor<4x5xf32>, tensor<4x5xi1>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @layers_backward(%ct: tensor<4x2xf32>, %v: tensor<5x2xf32>, %x: tensor<4x3xf32>, %a: tensor<4x5xf32>, %off: tensor<4x5xi1>) -> (tensor<3x5xf32>, tensor<5x2xf32>) attributes {saved = [2, 0, 4, 5]} {
// CHECK-NEXT:     %dv = tensor.dot_general %a, %ct {batch = [], contract = {{\[\[}}0, 0]]} : (tensor<4x5xf32>, tensor<4x2xf32>) -> tensor<5x2xf32>
// CHECK-NEXT:     %da = tensor.dot_general %ct, %v {batch = [], contract = {{\[\[}}1, 1]]} : (tensor<4x2xf32>, tensor<5x2xf32>) -> tensor<4x5xf32>
// CHECK-NEXT:     %zero = tensor.full 0.0 : tensor<f32>
// CHECK-NEXT:     %dh = tensor.select %off, %zero, %da : (tensor<4x5xi1>, tensor<f32>, tensor<4x5xf32>) -> tensor<4x5xf32>
// CHECK-NEXT:     %dw = tensor.dot_general %x, %dh {batch = [], contract = {{\[\[}}0, 0]]} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
// CHECK-NEXT:     func.return %dw, %dv : tensor<3x5xf32>, tensor<5x2xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @layers(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>, %v: tensor<5x2xf32>, %ct: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<3x5xf32>, tensor<5x2xf32>) {
// CHECK-NEXT:     %0:3 = func.call @layers_forward(%x, %w, %v) : (tensor<4x3xf32>, tensor<3x5xf32>, tensor<5x2xf32>) -> (tensor<4x2xf32>, tensor<4x5xf32>, tensor<4x5xi1>)
// CHECK-NEXT:     %1:2 = func.call @layers_backward(%ct, %v, %x, %0#1, %0#2) : (tensor<4x2xf32>, tensor<5x2xf32>, tensor<4x3xf32>, tensor<4x5xf32>, tensor<4x5xi1>) -> (tensor<3x5xf32>, tensor<5x2xf32>)
// CHECK-NEXT:     func.return %0#0, %1#0, %1#1 : tensor<4x2xf32>, tensor<3x5xf32>, tensor<5x2xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// a function of elements of arguments is computed again; a result is not saved twice
func.func @elements(%x: tensor<4xf32>, %s: tensor<f32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {joint = [2, 1]} {
  %a = tensor.mul %x, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b = tensor.sin %a : tensor<4xf32>
  %y = tensor.exp %b : tensor<4xf32>
  %c = tensor.cos %a : tensor<4xf32>
  %d = tensor.mul %y, %c : tensor<4xf32>
  %e = tensor.mul %d, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %g = tensor.mul %ct, %e : tensor<4xf32>
  func.return %y, %g : tensor<4xf32>, tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @elements_forward(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {
// CHECK-NEXT:     %a = tensor.mul %x, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:     %b = tensor.sin %a : tensor<4xf32>
// CHECK-NEXT:     %y = tensor.exp %b : tensor<4xf32>
// CHECK-NEXT:     func.return %y : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @elements_backward(%ct: tensor<4xf32>, %s: tensor<f32>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {saved = [1, 0, 2]} {
// CHECK-NEXT:     %a = tensor.mul %x, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:     %c = tensor.cos %a : tensor<4xf32>
// CHECK-NEXT:     %d = tensor.mul %y, %c : tensor<4xf32>
// CHECK-NEXT:     %e = tensor.mul %d, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:     %g = tensor.mul %ct, %e : tensor<4xf32>
// CHECK-NEXT:     func.return %g : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @elements(%x: tensor<4xf32>, %s: tensor<f32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:     %0 = func.call @elements_forward(%x, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:     %1 = func.call @elements_backward(%ct, %s, %x, %0) : (tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// a result that is not returned is saved by itself
func.func @statistics(%x: tensor<6x4xf32>, %ct: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<4xf32>, tensor<6x4xf32>) attributes {joint = [1, 2], returned = [0]} {
  %m = tensor.reduce_max %x {axes = [0]} : (tensor<6x4xf32>) -> tensor<4xf32>
  %y = tensor.mul %x, %m : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  %g = tensor.mul %ct, %m : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  func.return %y, %m, %g : tensor<6x4xf32>, tensor<4xf32>, tensor<6x4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @statistics_forward(%x: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:     %m = tensor.reduce_max %x {axes = [0]} : (tensor<6x4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     %y = tensor.mul %x, %m : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
// CHECK-NEXT:     func.return %y, %m, %m : tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @statistics_backward(%ct: tensor<6x4xf32>, %m: tensor<4xf32>) -> tensor<6x4xf32> attributes {saved = [3]} {
// CHECK-NEXT:     %g = tensor.mul %ct, %m : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
// CHECK-NEXT:     func.return %g : tensor<6x4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @statistics(%x: tensor<6x4xf32>, %ct: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<4xf32>, tensor<6x4xf32>) {
// CHECK-NEXT:     %0:3 = func.call @statistics_forward(%x) : (tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:     %1 = func.call @statistics_backward(%ct, %0#2) : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
// CHECK-NEXT:     func.return %0#0, %0#1, %1 : tensor<6x4xf32>, tensor<4xf32>, tensor<6x4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// the mask is saved, and not the random numbers that it is made of
func.func @dropout(%key: tensor<2xui32>, %x: tensor<8xf32>, %ct: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {joint = [2, 1]} {
  %bits = tensor.random_bits %key : tensor<2xui32> to tensor<8xui32>
  %half = tensor.full 2147483648 : tensor<ui32>
  %on = tensor.compare ge, %bits, %half : (tensor<8xui32>, tensor<ui32>) -> tensor<8xi1>
  %zero = tensor.full 0.0 : tensor<f32>
  %y = tensor.select %on, %x, %zero : (tensor<8xi1>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %g = tensor.select %on, %ct, %zero : (tensor<8xi1>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  func.return %y, %g : tensor<8xf32>, tensor<8xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @dropout_forward(%key: tensor<2xui32>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi1>) {
// CHECK-NEXT:     %bits = tensor.random_bits %key : tensor<2xui32> to tensor<8xui32>
// CHECK-NEXT:     %half = tensor.full 2147483648 : tensor<ui32>
// CHECK-NEXT:     %on = tensor.compare ge, %bits, %half : (tensor<8xui32>, tensor<ui32>) -> tensor<8xi1>
// CHECK-NEXT:     %zero = tensor.full 0.0 : tensor<f32>
// CHECK-NEXT:     %y = tensor.select %on, %x, %zero : (tensor<8xi1>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:     func.return %y, %on : tensor<8xf32>, tensor<8xi1>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @dropout_backward(%ct: tensor<8xf32>, %on: tensor<8xi1>) -> tensor<8xf32> attributes {saved = [3]} {
// CHECK-NEXT:     %zero = tensor.full 0.0 : tensor<f32>
// CHECK-NEXT:     %g = tensor.select %on, %ct, %zero : (tensor<8xi1>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:     func.return %g : tensor<8xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @dropout(%key: tensor<2xui32>, %x: tensor<8xf32>, %ct: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
// CHECK-NEXT:     %0:2 = func.call @dropout_forward(%key, %x) : (tensor<2xui32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi1>)
// CHECK-NEXT:     %1 = func.call @dropout_backward(%ct, %0#1) : (tensor<8xf32>, tensor<8xi1>) -> tensor<8xf32>
// CHECK-NEXT:     func.return %0#0, %1 : tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// a size that backward uses comes with a primal that has it; what is checked is checked in forward
func.func @sizes(%x: tensor<Nx3xf32>, %ct: tensor<f32>) -> (tensor<f32>, tensor<Nx3xf32>) attributes {joint = [1, 1]} {
  tensor.constrain_size {size = "N - 1", message = "a row is needed"}
  %y = tensor.reduce_sum %x {axes = [0, 1]} : (tensor<Nx3xf32>) -> tensor<f32>
  %g = tensor.broadcast_to %ct : tensor<f32> to tensor<Nx3xf32>
  func.return %y, %g : tensor<f32>, tensor<Nx3xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @sizes_forward(%x: tensor<Nx3xf32>) -> tensor<f32> {
// CHECK-NEXT:     tensor.constrain_size {size = "N - 1", message = "a row is needed"}
// CHECK-NEXT:     %y = tensor.reduce_sum %x {axes = [0, 1]} : (tensor<Nx3xf32>) -> tensor<f32>
// CHECK-NEXT:     func.return %y : tensor<f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @sizes_backward(%ct: tensor<f32>, %x: tensor<Nx3xf32>) -> tensor<Nx3xf32> attributes {saved = [0]} {
// CHECK-NEXT:     %g = tensor.broadcast_to %ct : tensor<f32> to tensor<Nx3xf32>
// CHECK-NEXT:     func.return %g : tensor<Nx3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @sizes(%x: tensor<Nx3xf32>, %ct: tensor<f32>) -> (tensor<f32>, tensor<Nx3xf32>) {
// CHECK-NEXT:     %0 = func.call @sizes_forward(%x) : (tensor<Nx3xf32>) -> tensor<f32>
// CHECK-NEXT:     %1 = func.call @sizes_backward(%ct, %x) : (tensor<f32>, tensor<Nx3xf32>) -> tensor<Nx3xf32>
// CHECK-NEXT:     func.return %0, %1 : tensor<f32>, tensor<Nx3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// -----
// a result that depends on a cotangent: it stays joint
func.func @stays(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {joint = [1, 1]} {
  %y = tensor.mul %x, %ct : tensor<4xf32>
  func.return %y, %ct : tensor<4xf32>, tensor<4xf32>
}
// CHECK:      module {
// CHECK-NEXT:   func.func @stays(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {joint = [1, 1]} {
// CHECK-NEXT:     %y = tensor.mul %x, %ct : tensor<4xf32>
// CHECK-NEXT:     func.return %y, %ct : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
