// test: verify
func.func @f(%x: memref<8x8xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xf32>  // error: error[MLC0151]: loop.scratch: interleaved = 2 of !loop.scratch<d0xd2xf32>: it names a dimension of a panel of bf16
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x8xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.scratch {interleaved = 0} : () -> !loop.scratch<d0xd2xbf16>  // error: error[MLC0151]: loop.scratch: interleaved = 0, which is a parallel dimension
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x8xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xbf16>
    loop.for {dim = 2} {
      %1 = loop.load_scratch %0 : (!loop.scratch<d0xd2xbf16>) -> !loop.tile<d0xd2xbf16>  // error: error[MLC0151]: loop.load_scratch: accesses a panel that is interleaved along d2
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x8xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xbf16>
    loop.for {dim = 2} {
      %1 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<8x8xbf16>) -> !loop.tile<d0xd2xbf16>
      loop.store_scratch %1, %0 : (!loop.tile<d0xd2xbf16>, !loop.scratch<d0xd2xbf16>) -> ()  // error: error[MLC0151]: loop.store_scratch: stores points along d2 that are no whole words
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x8xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.scratch : () -> !loop.scratch<d0xd2xbf16>
    %1 = loop.least_exponent %0 : (!loop.scratch<d0xd2xbf16>) -> !loop.tile<i32>  // error: error[MLC0151]: loop.least_exponent: !loop.scratch<d0xd2xbf16> is not an interleaved panel
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x8xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.scratch {interleaved = 2, reversed = true} : () -> !loop.scratch<d0xd2xbf16>
    %1 = loop.scratch {interleaved = 2, reversed = true} : () -> !loop.scratch<d2xd1xbf16>
    %2 = loop.least_exponent %0 : (!loop.scratch<d0xd2xbf16>) -> !loop.tile<i32>
    %3 = loop.contract_interleaved %0, %1, %2, %2 {dim = 2} : (!loop.scratch<d0xd2xbf16>, !loop.scratch<d2xd1xbf16>, !loop.tile<i32>, !loop.tile<i32>) -> !loop.tile<d0xd1xf32>  // error: error[MLC0151]: loop.contract_interleaved: !loop.tile<i32> is not the least exponent of its !loop.scratch<d2xd1xbf16>
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x8xi8>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xi8>
    %1 = loop.least_exponent %0 : (!loop.scratch<d0xd2xi8>) -> !loop.tile<i32>  // error: error[MLC0151]: loop.least_exponent: !loop.scratch<d0xd2xi8> is no panel of bf16
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x8xi8>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xi8>
    %1 = loop.scratch {interleaved = 2} : () -> !loop.scratch<d2xd1xbf16>
    %2 = loop.contract_bytes %0, %1 {dim = 2, unsigned = "lhs"} : (!loop.scratch<d0xd2xi8>, !loop.scratch<d2xd1xbf16>) -> !loop.tile<d0xd1xi32>  // error: error[MLC0151]: loop.contract_bytes: !loop.scratch<d2xd1xbf16> is no panel of bytes that is interleaved along d2
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x8xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.words %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, interleaved = 2, reversed = true} : (memref<8x8xbf16>) -> !loop.scratch<d0xd2xbf16>  // error: error[MLC0151]: loop.words: the terms along d2 share no words of memref<8x8xbf16>
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x8xi8>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.words %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, interleaved = 1} : (memref<8x8xi8>) -> !loop.scratch<d0xd2xi8>  // error: error[MLC0151]: loop.words: !loop.scratch<d0xd2xi8> is no panel of memref<8x8xi8> that is interleaved along d1
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<5x5x8xi8>) {
  loop.kernel {symbols = [], domain = [3, 8, 72], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 8]>} {
    loop.for {dim = 2} {
      %0 = loop.words %x {map = affine_map<(d0, d1, d2) -> (d2 floordiv 24, ((d2 floordiv 8) mod 3) + d0, d2 mod 8)>, interleaved = 2} : (memref<5x5x8xi8>) -> !loop.scratch<d0xd2xi8>  // error: error[MLC0151]: loop.words: is in a loop over d2, blocks of 8 of which are no whole runs of 24
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x8xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    loop.for {dim = 2, size = 8, lanes = 4} {  // error: error[MLC0152]: loop.for: lanes = 4, but blocks of 8 are no such vectors
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x8xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.scratch {interleaved = 2, reversed = true} : () -> !loop.scratch<d0xd2xbf16>
    %1 = loop.scratch {interleaved = 2} : () -> !loop.scratch<d2xd1xbf16>
    %2 = loop.least_exponent %0 : (!loop.scratch<d0xd2xbf16>) -> !loop.tile<i32>
    %3 = loop.least_exponent %1 : (!loop.scratch<d2xd1xbf16>) -> !loop.tile<i32>
    %4 = loop.contract_interleaved %0, %1, %2, %3 {dim = 2} : (!loop.scratch<d0xd2xbf16>, !loop.scratch<d2xd1xbf16>, !loop.tile<i32>, !loop.tile<i32>) -> !loop.tile<d0xd1xf32>  // error: error[MLC0151]: loop.contract_interleaved: the terms of a word of !loop.scratch<d2xd1xbf16> are not reversed
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x8xi8>) {
  loop.kernel {symbols = [], domain = [8, 8, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.scratch {interleaved = 2, reversed = true} : () -> !loop.scratch<d0xd2xi8>  // error: error[MLC0151]: loop.scratch: reversed words of !loop.scratch<d0xd2xi8>, which is no interleaved panel of bf16
    loop.end
  }
  func.return
}
