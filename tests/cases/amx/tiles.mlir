// test: roundtrip
// test: run interp

// terms at even places are added to one another, those at odd places too, and then the sums of both
func.func @multiply(%c: f32, %a0: bf16, %a1: bf16, %b0: bf16, %b1: bf16) -> f32 {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %a = memref.alloc() : memref<16x32xbf16>
  %b = memref.alloc() : memref<16x32xbf16>
  %d = memref.alloc() : memref<16x16xf32>
  %none = amx.tile_zero : !amx.tile<16x32xbf16>
  %zero = amx.tile_zero : !amx.tile<16x16xf32>
  amx.tile_store %a[%0, %0], %none : memref<16x32xbf16>, !amx.tile<16x32xbf16>
  amx.tile_store %b[%0, %0], %none : memref<16x32xbf16>, !amx.tile<16x32xbf16>
  amx.tile_store %d[%0, %0], %zero : memref<16x16xf32>, !amx.tile<16x16xf32>
  memref.store %a0, %a[%1, %0] : memref<16x32xbf16>
  memref.store %a1, %a[%1, %1] : memref<16x32xbf16>
  %3 = arith.constant 3 : index
  memref.store %b0, %b[%0, %2] : memref<16x32xbf16>
  memref.store %b1, %b[%0, %3] : memref<16x32xbf16>
  memref.store %c, %d[%1, %1] : memref<16x16xf32>
  %x = amx.tile_load %a[%0, %0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
  %y = amx.tile_load %b[%0, %0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
  %z = amx.tile_load %d[%0, %0] : memref<16x16xf32> into !amx.tile<16x16xf32>
  %r = amx.tile_mulf %x, %y, %z : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  amx.tile_store %d[%0, %0], %r : memref<16x16xf32>, !amx.tile<16x16xf32>
  %s = memref.load %d[%1, %1] : memref<16x16xf32>
  func.return %s : f32
}
// run: @multiply(1.0, 2.0, 3.0, 4.0, 5.0) == 24.0
// run: @multiply(16777216.0, 1.0, 1.0, 1.0, 1.0) == 16777218.0
// run: @multiply(3.0e38, 3.0e38, -3.0e38, 1.0, 1.0) == 3.0e38
// run: @multiply(0.0, 1.0e-39, 0.0, 1.0e10, 0.0) == 0.0
// run: @multiply(1.0e-39, 0.0, 0.0, 0.0, 0.0) == 0.0
// run: @multiply(0.0, 1.0e-20, 0.0, 1.0e-20, 0.0) == 0.0
// -----
// four bytes of a word are added at once, with signs but where they are extended with zeros; sums wrap
func.func @bytes(%c: i32, %a: i8, %b: i8) -> (i32, i32) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %5 = arith.constant 5 : index
  %9 = arith.constant 9 : index
  %m = memref.alloc() : memref<16x64xi8>
  %w = memref.alloc() : memref<16x64xi8>
  %d = memref.alloc() : memref<16x16xi32>
  %none = amx.tile_zero : !amx.tile<16x64xi8>
  %zero = amx.tile_zero : !amx.tile<16x16xi32>
  amx.tile_store %m[%0, %0], %none : memref<16x64xi8>, !amx.tile<16x64xi8>
  amx.tile_store %w[%0, %0], %none : memref<16x64xi8>, !amx.tile<16x64xi8>
  amx.tile_store %d[%0, %0], %zero : memref<16x16xi32>, !amx.tile<16x16xi32>
  memref.store %a, %m[%1, %5] : memref<16x64xi8>
  memref.store %b, %w[%1, %9] : memref<16x64xi8>
  memref.store %c, %d[%1, %2] : memref<16x16xi32>
  %x = amx.tile_load %m[%0, %0] : memref<16x64xi8> into !amx.tile<16x64xi8>
  %y = amx.tile_load %w[%0, %0] : memref<16x64xi8> into !amx.tile<16x64xi8>
  %z = amx.tile_load %d[%0, %0] : memref<16x16xi32> into !amx.tile<16x16xi32>
  %r = amx.tile_muli %x, %y, %z : !amx.tile<16x64xi8>, !amx.tile<16x64xi8>, !amx.tile<16x16xi32>
  amx.tile_store %d[%0, %0], %r : memref<16x16xi32>, !amx.tile<16x16xi32>
  %s = memref.load %d[%1, %2] : memref<16x16xi32>
  %u = amx.tile_muli %x, %y, %z {isZextLhs = true} : !amx.tile<16x64xi8>, !amx.tile<16x64xi8>, !amx.tile<16x16xi32>
  amx.tile_store %d[%0, %0], %u : memref<16x16xi32>, !amx.tile<16x16xi32>
  %t = memref.load %d[%1, %2] : memref<16x16xi32>
  func.return %s, %t : i32, i32
}
// run: @bytes(7, 2, -3) == 1, 1
// run: @bytes(0, -128, -1) == 128, -128
// run: @bytes(2147483647, 1, 1) == -2147483648, -2147483648
