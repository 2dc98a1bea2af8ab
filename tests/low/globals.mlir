memref.global "private" constant @table : memref<2x4xf32> = dense<[[1.0, 2.0, -0.0, 4.0], [0.1, 1.0e30, -7.0, 0.5]]> : tensor<2x4xf32>
memref.global "private" constant @bytes : memref<5xi8> = dense<[1, -1, 127, -128, 34]> : tensor<5xi8>
memref.global "private" constant @halves : memref<3xbf16> = dense<[1.0, -2.5, 3.140625]> : tensor<3xbf16>
memref.global "private" constant @nothing : memref<2xi64> = dense<0> : tensor<2xi64>
func.func @main(%out: memref<4xf32>, %small: memref<5xi8>, %half: memref<3xf32>, %long: memref<2xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %t = memref.get_global @table : memref<2x4xf32>
  %row = vector.load %t[%c1, %c0] : memref<2x4xf32>, vector<4xf32>
  vector.store %row, %out[%c0] : memref<4xf32>, vector<4xf32>
  %b = memref.get_global @bytes : memref<5xi8>
  scf.for %i = %c0 to %c5 step %c1 {
    %v = memref.load %b[%i] : memref<5xi8>
    memref.store %v, %small[%i] : memref<5xi8>
  }
  %h = memref.get_global @halves : memref<3xbf16>
  scf.for %i = %c0 to %c3 step %c1 {
    %v = memref.load %h[%i] : memref<3xbf16>
    %w = arith.extf %v : bf16 to f32
    memref.store %w, %half[%i] : memref<3xf32>
  }
  %z = memref.get_global @nothing : memref<2xi64>
  %n = memref.load %z[%c1] : memref<2xi64>
  memref.store %n, %long[%c0] : memref<2xi64>
  func.return
}
