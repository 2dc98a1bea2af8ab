func.func @main(%x: memref<8xf32>, %any: memref<2xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %v = vector.load %x[%c0] : memref<8xf32>, vector<8xf32>
  %m = arith.cmpf olt, %v, %zero : vector<8xf32>
  %or = vector.reduction <or>, %m : vector<8xi1> into i1
  %and = vector.reduction <and>, %m : vector<8xi1> into i1
  %a = arith.extui %or : i1 to i8
  %b = arith.extui %and : i1 to i8
  memref.store %a, %any[%c0] : memref<2xi8>
  memref.store %b, %any[%c1] : memref<2xi8>
  func.return
}
