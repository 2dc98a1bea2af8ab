// test: roundtrip
// test: run interp
func.func @middle(%x: vector<4xf32>) -> f32 {
  %r = vector.shuffle %x, %x [1, 6] : vector<4xf32>, vector<4xf32>
  %a = vector.extract %r[0] : f32 from vector<2xf32>
  %b = vector.extract %r[1] : f32 from vector<2xf32>
  %s = arith.addf %a, %b : f32
  func.return %s : f32
}
// run: @middle([1, 2, 4, 8]) == 6

func.func @below(%n: index) -> i8 {
  %m = vector.create_mask %n : vector<8xi1>
  %one = arith.constant dense<1> : vector<8xi8>
  %zero = arith.constant dense<0> : vector<8xi8>
  %v = arith.select %m, %one, %zero : vector<8xi1>, vector<8xi8>
  %s = vector.reduction <add>, %v : vector<8xi8> into i8
  func.return %s : i8
}
// run: @below(-1) == 0
// run: @below(3) == 3
// run: @below(9) == 8
// run: @below(4294967298) == 8

func.func @bits(%x: vector<2xf32>) -> vector<4xi16> {
  %r = vector.bitcast %x : vector<2xf32> to vector<4xi16>
  func.return %r : vector<4xi16>
}
// run: @bits([1.0, -2.0]) == [0, 16256, 0, -16384]

func.func @largest(%x: vector<4xf32>, %acc: f32) -> f32 {
  %r = vector.reduction <maximumf>, %x, %acc : vector<4xf32> into f32
  func.return %r : f32
}
// run: @largest([1, 2, -4, 0.5], 3) == 3
// run: @largest([1, nan, -4, 0.5], 3) == nan

func.func @transposed(%x: vector<2x3xi32>) -> vector<3x2xi32> {
  %r = vector.transpose %x, [1, 0] : vector<2x3xi32> to vector<3x2xi32>
  %row = arith.constant dense<[7, 8]> : vector<2xi32>
  %s = vector.insert %row, %r[1] : vector<2xi32> into vector<3x2xi32>
  func.return %s : vector<3x2xi32>
}
// run: @transposed([[1, 2, 3], [4, 5, 6]]) == [[1, 4], [7, 8], [3, 6]]

func.func @lanes() -> vector<4xindex> {
  %r = vector.step : vector<4xindex>
  func.return %r : vector<4xindex>
}
// run: @lanes() == [0, 1, 2, 3]
