// test: roundtrip
// test: pass loop_to_scf canonicalize cse
// tolerance: bits

// Panels in pairs of terms: 37 rows by 4 in panels of 12, 43 terms by 16, 40 columns by 32 leave a rest, and the last
// pair has one term. Rows are read along the terms, columns by two terms at a time.
func.func @f(%x: memref<37x43xbf16>, %y: memref<43x40xbf16>, %z: memref<37x40xf32>) {
  loop.kernel {symbols = [], domain = [37, 40, 43], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [12, 32, 16], vector = 1, lanes = 16>} {
    %sum = loop.scratch : !loop.scratch<d0xd1xf32>
    loop.for {dim = 0, size = 4} {
      %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xd1xf32>
      loop.store_scratch %0, %sum : (!loop.tile<d0xd1xf32>, !loop.scratch<d0xd1xf32>) -> ()
      loop.yield
    }
    loop.for {dim = 2} {
      %rows = loop.scratch {interleaved = 2, reversed = true} : () -> !loop.scratch<d0xd2xbf16>
      loop.for {dim = 0} {
        loop.for {dim = 2, size = 16, vector = true} {
          %1 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<37x43xbf16>) -> !loop.tile<d0xd2xbf16>
          loop.store_scratch %1, %rows : (!loop.tile<d0xd2xbf16>, !loop.scratch<d0xd2xbf16>) -> ()
          loop.yield
        }
        loop.yield
      }
      %a = loop.least_exponent %rows : (!loop.scratch<d0xd2xbf16>) -> !loop.tile<i32>
      %columns = loop.scratch {interleaved = 2, reversed = true} : () -> !loop.scratch<d2xd1xbf16>
      loop.for {dim = 2, size = 2} {
        %2 = loop.load %y {map = affine_map<(d0, d1, d2) -> (d2, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<43x40xbf16>) -> !loop.tile<d1xd2xbf16>
        loop.store_scratch %2, %columns : (!loop.tile<d1xd2xbf16>, !loop.scratch<d2xd1xbf16>) -> ()
        loop.yield
      }
      %b = loop.least_exponent %columns : (!loop.scratch<d2xd1xbf16>) -> !loop.tile<i32>
      loop.for {dim = 0, size = 4} {
        %3 = loop.contract_interleaved %rows, %columns, %a, %b {dim = 2} : (!loop.scratch<d0xd2xbf16>, !loop.scratch<d2xd1xbf16>, !loop.tile<i32>, !loop.tile<i32>) -> !loop.tile<d0xd1xf32>
        %4 = loop.load_scratch %sum : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
        %5 = loop.map %4, %3 : !loop.tile<d0xd1xf32> {
        ^bb0(%p: f32, %q: f32):
          %6 = arith.addf %p, %q : f32
          loop.yield %6 : (f32) -> ()
        }
        loop.store_scratch %5, %sum : (!loop.tile<d0xd1xf32>, !loop.scratch<d0xd1xf32>) -> ()
        loop.yield
      }
      loop.yield
    }
    loop.for {dim = 0, size = 4} {
      %7 = loop.load_scratch %sum : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
      loop.store %7, %z {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<37x40xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// CHECK: scf.if
// CHECK: x86vector.avx512.dot
// CHECK: } else {
// CHECK-NOT: x86vector
// CHECK: math.fma
// -----
// rows are read across, and lie across in their panel; columns are read along the terms, and pairs are transposed
func.func @f(%x: memref<37x43xbf16>, %y: memref<40x43xbf16>, %z: memref<37x40xf32>) {
  loop.kernel {symbols = [], domain = [37, 40, 43], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [32, 32, 32], vector = 1, lanes = 16>} {
    %sum = loop.scratch : !loop.scratch<d0xd1xf32>
    loop.for {dim = 0, size = 4} {
      %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xd1xf32>
      loop.store_scratch %0, %sum : (!loop.tile<d0xd1xf32>, !loop.scratch<d0xd1xf32>) -> ()
      loop.yield
    }
    loop.for {dim = 2} {
      %rows = loop.scratch {interleaved = 2, reversed = true} : () -> !loop.scratch<d2xd0xbf16>
      loop.for {dim = 2, size = 2} {
        loop.for {dim = 0, size = 16, vector = true} {
          %1 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<37x43xbf16>) -> !loop.tile<d0xd2xbf16>
          loop.store_scratch %1, %rows : (!loop.tile<d0xd2xbf16>, !loop.scratch<d2xd0xbf16>) -> ()
          loop.yield
        }
        loop.yield
      }
      %a = loop.least_exponent %rows : (!loop.scratch<d2xd0xbf16>) -> !loop.tile<i32>
      %columns = loop.scratch {interleaved = 2, reversed = true} : () -> !loop.scratch<d2xd1xbf16>
      loop.for {dim = 2, size = 32} {
        %2 = loop.load %y {map = affine_map<(d0, d1, d2) -> (d1, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<40x43xbf16>) -> !loop.tile<d1xd2xbf16>
        loop.store_scratch %2, %columns : (!loop.tile<d1xd2xbf16>, !loop.scratch<d2xd1xbf16>) -> ()
        loop.yield
      }
      %b = loop.least_exponent %columns : (!loop.scratch<d2xd1xbf16>) -> !loop.tile<i32>
      loop.for {dim = 0, size = 4} {
        %3 = loop.contract_interleaved %rows, %columns, %a, %b {dim = 2} : (!loop.scratch<d2xd0xbf16>, !loop.scratch<d2xd1xbf16>, !loop.tile<i32>, !loop.tile<i32>) -> !loop.tile<d0xd1xf32>
        %4 = loop.load_scratch %sum : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
        %5 = loop.map %4, %3 : !loop.tile<d0xd1xf32> {
        ^bb0(%p: f32, %q: f32):
          %6 = arith.addf %p, %q : f32
          loop.yield %6 : (f32) -> ()
        }
        loop.store_scratch %5, %sum : (!loop.tile<d0xd1xf32>, !loop.scratch<d0xd1xf32>) -> ()
        loop.yield
      }
      loop.yield
    }
    loop.for {dim = 0, size = 4} {
      %7 = loop.load_scratch %sum : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
      loop.store %7, %z {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<37x40xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// CHECK: vector<32xbf16> to vector<16xi32>
// CHECK: arith.shrui
// CHECK: vector.shuffle
// CHECK: x86vector.avx512.dot
// -----

// Panels in words of four bytes, of the same sizes: the last word has three terms, and the columns, which have a sign,
// are read by four terms at a time.
func.func @f(%x: memref<37x43xi8>, %y: memref<43x40xi8>, %z: memref<37x40xi32>) {
  loop.kernel {symbols = [], domain = [37, 40, 43], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [12, 32, 16], vector = 1, lanes = 16>} {
    %sum = loop.scratch : !loop.scratch<d0xd1xi32>
    loop.for {dim = 0, size = 4} {
      %0 = loop.full {value = 0} : () -> !loop.tile<d0xd1xi32>
      loop.store_scratch %0, %sum : (!loop.tile<d0xd1xi32>, !loop.scratch<d0xd1xi32>) -> ()
      loop.yield
    }
    loop.for {dim = 2} {
      %rows = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xi8>
      loop.for {dim = 0} {
        loop.for {dim = 2, size = 16, vector = true} {
          %1 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<37x43xi8>) -> !loop.tile<d0xd2xi8>
          loop.store_scratch %1, %rows : (!loop.tile<d0xd2xi8>, !loop.scratch<d0xd2xi8>) -> ()
          loop.yield
        }
        loop.yield
      }
      %columns = loop.scratch {interleaved = 2} : () -> !loop.scratch<d2xd1xi8>
      loop.for {dim = 2, size = 4} {
        %2 = loop.load %y {map = affine_map<(d0, d1, d2) -> (d2, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<43x40xi8>) -> !loop.tile<d1xd2xi8>
        loop.store_scratch %2, %columns : (!loop.tile<d1xd2xi8>, !loop.scratch<d2xd1xi8>) -> ()
        loop.yield
      }
      loop.for {dim = 0, size = 4} {
        %3 = loop.contract_bytes %rows, %columns {dim = 2, unsigned = "lhs"} : (!loop.scratch<d0xd2xi8>, !loop.scratch<d2xd1xi8>) -> !loop.tile<d0xd1xi32>
        %4 = loop.load_scratch %sum : (!loop.scratch<d0xd1xi32>) -> !loop.tile<d0xd1xi32>
        %5 = loop.map %4, %3 : !loop.tile<d0xd1xi32> {
        ^bb0(%p: i32, %q: i32):
          %6 = arith.addi %p, %q : i32
          loop.yield %6 : (i32) -> ()
        }
        loop.store_scratch %5, %sum : (!loop.tile<d0xd1xi32>, !loop.scratch<d0xd1xi32>) -> ()
        loop.yield
      }
      loop.yield
    }
    loop.for {dim = 0, size = 4} {
      %7 = loop.load_scratch %sum : (!loop.scratch<d0xd1xi32>) -> !loop.tile<d0xd1xi32>
      loop.store %7, %z {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xi32>, memref<37x40xi32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// CHECK: x86vector.avx512.dot_bytes
