// test: roundtrip
// test: pass loop_to_scf canonicalize cse
// tolerance: bits

// Panels of 40 rows and 40 columns: two tiles and one of each. The sums of a slice of 32 terms are added to those before.
func.func @f(%x: memref<40x64xbf16>, %y: memref<64x40xbf16>, %z: memref<40x40xf32>) {
  loop.kernel {symbols = [], domain = [40, 40, 64], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [40, 48, 32], vector = 1, lanes = 16>} {
    %sum = loop.scratch : () -> !loop.scratch<d0xd1xf32>
    loop.for {dim = 0, size = 4} {
      %0 = loop.full {value = 1.0 : f32} : () -> !loop.tile<d0xd1xf32>
      loop.store_scratch %0, %sum : (!loop.tile<d0xd1xf32>, !loop.scratch<d0xd1xf32>) -> ()
      loop.yield
    }
    loop.for {dim = 2} {
      %rows = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xbf16>
      loop.for {dim = 0} {
        loop.for {dim = 2, size = 32, vector = true} {
          %1 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<40x64xbf16>) -> !loop.tile<d0xd2xbf16>
          loop.store_scratch %1, %rows : (!loop.tile<d0xd2xbf16>, !loop.scratch<d0xd2xbf16>) -> ()
          loop.yield
        }
        loop.yield
      }
      %columns = loop.scratch {interleaved = 2} : () -> !loop.scratch<d2xd1xbf16>
      loop.for {dim = 2, size = 2} {
        %2 = loop.load %y {map = affine_map<(d0, d1, d2) -> (d2, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<64x40xbf16>) -> !loop.tile<d1xd2xbf16>
        loop.store_scratch %2, %columns : (!loop.tile<d1xd2xbf16>, !loop.scratch<d2xd1xbf16>) -> ()
        loop.yield
      }
      loop.contract_panels %sum, %rows, %columns {dim = 2} : (!loop.scratch<d0xd1xf32>, !loop.scratch<d0xd2xbf16>, !loop.scratch<d2xd1xbf16>) -> ()
      loop.yield
    }
    loop.for {dim = 0, size = 4} {
      %7 = loop.load_scratch %sum : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
      loop.store %7, %z {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<40x40xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// CHECK: amx.tile_load
// CHECK: amx.tile_mulf
// CHECK: amx.tile_store
// -----
// Rows of an image, three of 7 points that are 9 apart in memory, are read where they are: two tiles of 16 rows, the last
// of which begins at row 9, and all terms of a window of 2 x 2 at a time.
func.func @windows(%x: memref<4x9x64xbf16>, %w: memref<256x16xbf16>, %z: memref<3x7x16xf32>) {
  loop.kernel {symbols = [], domain = [3, 7, 16, 256], iterator_types = ["parallel", "parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [3, 8, 16, 32], vector = 2>} {
    %columns = loop.scratch {interleaved = 3} : () -> !loop.scratch<d3xd2xbf16>
    loop.for {dim = 3, size = 2} {
      %0 = loop.load %w {map = affine_map<(d0, d1, d2, d3) -> (d3, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<256x16xbf16>) -> !loop.tile<d2xd3xbf16>
      loop.store_scratch %0, %columns : (!loop.tile<d2xd3xbf16>, !loop.scratch<d3xd2xbf16>) -> ()
      loop.yield
    }
    %rows = loop.words %x {map = affine_map<(d0, d1, d2, d3) -> (d0 + d3 floordiv 128, d1 + (d3 floordiv 64) mod 2, d3 mod 64)>, interleaved = 3} : (memref<4x9x64xbf16>) -> !loop.scratch<d0xd1xd3xbf16>
    %sums = loop.scratch : () -> !loop.scratch<d0xd1xd2xf32>
    loop.contract_panels %sums, %rows, %columns {dim = 3, from_zero = true, pitch = 9} : (!loop.scratch<d0xd1xd2xf32>, !loop.scratch<d0xd1xd3xbf16>, !loop.scratch<d3xd2xbf16>) -> ()
    loop.for {dim = 0, size = 1} {
      loop.for {dim = 1, size = 4} {
        %1 = loop.load_scratch %sums : (!loop.scratch<d0xd1xd2xf32>) -> !loop.tile<d0xd1xd2xf32>
        loop.store %1, %z {map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xd2xf32>, memref<3x7x16xf32>) -> ()
        loop.yield
      }
      loop.yield
    }
    loop.end
  }
  func.return
}
// CHECK-NOT: memref<3x7x256xi32>
// CHECK: memref.reinterpret_cast {{.*}} sizes: [16, 32], strides: [64, 1] : memref<2304xbf16>
// CHECK: amx.tile_store {{.*}} memref<27x32xf32>
// -----
// blocks that are not scheduled are added term by term
func.func @f(%x: memref<3x64xbf16>, %y: memref<64x5xbf16>, %z: memref<3x5xf32>) {
  loop.kernel {symbols = [], domain = [3, 5, 64], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 32]>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xd1xf32>
    %1 = loop.for %0 {dim = 2} : !loop.tile<d0xd1xf32> {
    ^bb0(%acc: !loop.tile<d0xd1xf32>):
      %2 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<3x64xbf16>) -> !loop.tile<d0xd2xbf16>
      %3 = loop.load %y {map = affine_map<(d0, d1, d2) -> (d2, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<64x5xbf16>) -> !loop.tile<d1xd2xbf16>
      %4 = loop.contract_pairs %acc, %2, %3 {dim = 2} : (!loop.tile<d0xd1xf32>, !loop.tile<d0xd2xbf16>, !loop.tile<d1xd2xbf16>) -> !loop.tile<d0xd1xf32>
      loop.yield %4 : (!loop.tile<d0xd1xf32>) -> ()
    }
    loop.store %1, %z {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<3x5xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: math.fma
// CHECK: math.copysign
