// test: verify
func.func @f(%x: memref<8x32xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 32], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 32]>} {
    %s = loop.scratch : () -> !loop.scratch<d0xd1xf32>
    %a = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xbf16>
    %b = loop.scratch {interleaved = 2} : () -> !loop.scratch<d1xd2xbf16>
    loop.contract_panels %s, %a, %b {dim = 2} : (!loop.scratch<d0xd1xf32>, !loop.scratch<d0xd2xbf16>, !loop.scratch<d1xd2xbf16>) -> ()  // error: error[MLC0151]: loop.contract_panels: !loop.scratch<d0xd2xbf16> and !loop.scratch<d1xd2xbf16> are not rows of terms and columns side by side
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x32xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 32], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 32]>} {
    %s = loop.scratch : () -> !loop.scratch<d1xd0xf32>
    %a = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xbf16>
    %b = loop.scratch {interleaved = 2} : () -> !loop.scratch<d2xd1xbf16>
    loop.contract_panels %s, %a, %b {dim = 2} : (!loop.scratch<d1xd0xf32>, !loop.scratch<d0xd2xbf16>, !loop.scratch<d2xd1xbf16>) -> ()  // error: error[MLC0151]: loop.contract_panels: !loop.scratch<d1xd0xf32> is no memory for the sums of !loop.scratch<d0xd2xbf16> and !loop.scratch<d2xd1xbf16>
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x40xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 40], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 40]>} {
    %s = loop.scratch : () -> !loop.scratch<d0xd1xf32>
    %a = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xbf16>
    %b = loop.scratch {interleaved = 2} : () -> !loop.scratch<d2xd1xbf16>
    loop.contract_panels %s, %a, %b {dim = 2} : (!loop.scratch<d0xd1xf32>, !loop.scratch<d0xd2xbf16>, !loop.scratch<d2xd1xbf16>) -> ()  // error: error[MLC0151]: loop.contract_panels: slices of 40 terms along d2 are no whole blocks of 32
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4x9x64xbf16>) {
  loop.kernel {symbols = [], domain = [3, 7, 16, 256], iterator_types = ["parallel", "parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [3, 8, 16, 32]>} {
    %s = loop.scratch : () -> !loop.scratch<d0xd1xd2xf32>
    %b = loop.scratch {interleaved = 3} : () -> !loop.scratch<d3xd2xbf16>
    %a = loop.words %x {map = affine_map<(d0, d1, d2, d3) -> (d0 + d3 floordiv 128, d1 + (d3 floordiv 64) mod 2, d3 mod 64)>, interleaved = 3} : (memref<4x9x64xbf16>) -> !loop.scratch<d0xd1xd3xbf16>
    loop.contract_panels %s, %a, %b {dim = 3, pitch = 9} : (!loop.scratch<d0xd1xd2xf32>, !loop.scratch<d0xd1xd3xbf16>, !loop.scratch<d3xd2xbf16>) -> ()  // error: error[MLC0151]: loop.contract_panels: adds rows that are read where they are, some of them twice: it begins from zero
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4x9x64xbf16>) {
  loop.kernel {symbols = [], domain = [3, 7, 16, 256], iterator_types = ["parallel", "parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [3, 8, 16, 32]>} {
    %s = loop.scratch : () -> !loop.scratch<d0xd1xd2xf32>
    %b = loop.scratch {interleaved = 3} : () -> !loop.scratch<d3xd2xbf16>
    %a = loop.words %x {map = affine_map<(d0, d1, d2, d3) -> (d0 + d3 floordiv 128, d1 + (d3 floordiv 64) mod 2, d3 mod 64)>, interleaved = 3} : (memref<4x9x64xbf16>) -> !loop.scratch<d0xd1xd3xbf16>
    loop.contract_panels %s, %a, %b {dim = 3, from_zero = true, pitch = 10} : (!loop.scratch<d0xd1xd2xf32>, !loop.scratch<d0xd1xd3xbf16>, !loop.scratch<d3xd2xbf16>) -> ()  // error: error[MLC0151]: loop.contract_panels: pitch = 10 is not the distance along d0 in points of d1
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x32xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 32], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 32]>} {
    %s = loop.scratch : () -> !loop.scratch<d0xd1xf32>
    %a = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xbf16>
    %b = loop.scratch {interleaved = 2} : () -> !loop.scratch<d2xd1xbf16>
    loop.contract_panels %s, %a, %b {dim = 2, pitch = 8} : (!loop.scratch<d0xd1xf32>, !loop.scratch<d0xd2xbf16>, !loop.scratch<d2xd1xbf16>) -> ()  // error: error[MLC0151]: loop.contract_panels: pitch = 8 of rows that are not read where they are
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x64xi8>) {
  loop.kernel {symbols = [], domain = [8, 8, 96], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 32]>} {
    %s = loop.scratch : () -> !loop.scratch<d0xd1xi32>
    %a = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xi8>
    %b = loop.scratch {interleaved = 2} : () -> !loop.scratch<d2xd1xi8>
    loop.contract_panels %s, %a, %b {dim = 2} : (!loop.scratch<d0xd1xi32>, !loop.scratch<d0xd2xi8>, !loop.scratch<d2xd1xi8>) -> ()  // error: error[MLC0151]: loop.contract_panels: slices of 96 terms along d2 are no whole blocks of 64
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x32xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 32], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 32]>} {
    %s = loop.scratch : () -> !loop.scratch<d0xd1xf32>
    %a = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xbf16>
    %b = loop.scratch {interleaved = 2} : () -> !loop.scratch<d2xd1xbf16>
    loop.contract_panels %s, %a, %b {dim = 2, unsigned = "rows"} : (!loop.scratch<d0xd1xf32>, !loop.scratch<d0xd2xbf16>, !loop.scratch<d2xd1xbf16>) -> ()  // error: error[MLC0151]: loop.contract_panels: the rows of !loop.scratch<d0xd2xbf16> and !loop.scratch<d2xd1xbf16> have signs
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<8x32xbf16>) {
  loop.kernel {symbols = [], domain = [8, 8, 32], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 32]>} {
    %s = loop.scratch : () -> !loop.scratch<d0xd1xf32>
    %a = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xbf16>
    %b = loop.scratch {interleaved = 2} : () -> !loop.scratch<d2xd1xbf16>
    loop.contract_panels %s, %a, %b {dim = 2, prefetch = true} : (!loop.scratch<d0xd1xf32>, !loop.scratch<d0xd2xbf16>, !loop.scratch<d2xd1xbf16>) -> ()  // error: error[MLC0151]: loop.contract_panels: prefetches what follows !loop.scratch<d2xd1xbf16>, which is not read where it is
    loop.end
  }
  func.return
}
