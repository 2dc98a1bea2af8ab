// test: verify

// scales of an encoding that there is not
func.func @main(%x: memref<4x34xui8>) {
  loop.kernel {symbols = [], domain = [4, 16], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 1], vector = -1>} {
    %0 = loop.block_scales %x {map = affine_map<(d0, d1) -> (d0, d1)>, encoding = "min", operandSegmentSizes = [1, 0, 0]} : (memref<4x34xui8>) -> !loop.tile<d0xd1xf32>  // error: error[MLC0151]: loop.block_scales: memref<4x34xui8> does not hold rows of blocks of min
    loop.end
  }
  func.return
}
