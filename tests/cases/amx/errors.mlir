// test: verify
func.func @f(%m: memref<16x32xbf16>, %i: index) {
  %r = amx.tile_load %m[%i, %i] : memref<16x32xbf16> into !amx.tile<17x32xbf16>  // error: error[MLC0164]: amx.tile_load: !amx.tile<17x32xbf16> is no tile of up to 16 rows of 64 bytes
  func.return
}
// -----
func.func @f(%m: memref<16xi32>, %i: index) {
  %r = amx.tile_load %m[%i] : memref<16xi32> into !amx.tile<16x32xbf16>  // error: error[MLC0164]: amx.tile_load: memref<16xi32> has no rows of !amx.tile<16x32xbf16>
  func.return
}
// -----
func.func @f() {
  %a = amx.tile_zero : !amx.tile<16x32xbf16>
  %b = amx.tile_zero : !amx.tile<16x32xbf16>
  %r = amx.tile_mulf %a, %b, %a : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>  // error: error[MLC0164]: amx.tile_mulf: multiplies !amx.tile<16x32xbf16> and !amx.tile<16x32xbf16> into !amx.tile<16x16xf32>, not
  func.return
}
// -----
func.func @f(%c: !amx.tile<16x16xf32>) {
  %a = amx.tile_zero : !amx.tile<16x32xbf16>
  %r = amx.tile_mulf %a, %a, %c : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>  // error: error[MLC0164]: amx.tile_mulf: multiplies two tiles, not one by itself: load it twice
  func.return
}
// -----
func.func @f(%c: !amx.tile<16x16xi32>) {
  %a = amx.tile_zero : !amx.tile<16x64xi8>
  %r = amx.tile_muli %a, %a, %c : !amx.tile<16x64xi8>, !amx.tile<16x64xi8>, !amx.tile<16x16xi32>  // error: error[MLC0164]: amx.tile_muli: multiplies two tiles, not one by itself: load it twice
  func.return
}
// -----
func.func @f(%c: !amx.tile<16x16xf32>) {
  %a = amx.tile_zero : !amx.tile<16x64xi8>
  %b = amx.tile_zero : !amx.tile<16x64xi8>
  %r = amx.tile_muli %a, %b, %c : !amx.tile<16x64xi8>, !amx.tile<16x64xi8>, !amx.tile<16x16xf32>  // error: error[MLC0164]: amx.tile_muli: multiplies !amx.tile<16x64xi8> and !amx.tile<16x64xi8> into !amx.tile<16x16xi32>, not
  func.return
}
