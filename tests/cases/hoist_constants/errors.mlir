// test: verify

func.func @range(%x: tensor<3xf32>) attributes {constants = [1]} {  // error: constants = (1,) are not distinct indices of its 1 arguments
  func.return
}
// -----
func.func @twice(%x: tensor<3xf32>, %y: tensor<3xf32>) attributes {constants = [0, 0]} {  // error: error[MLC0116]
  func.return
}
// -----
func.func @both(%x: tensor<3xf32>) attributes {constants = [0], donate = [0]} {  // error: argument 0 is donated and a constant
  func.return
}
// -----
func.func private @private(%x: tensor<3xf32>) attributes {constants = [0]} {  // error: a private function has no constants
  func.return
}
