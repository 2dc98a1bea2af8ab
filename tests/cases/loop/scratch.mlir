// test: roundtrip
// test: pass loop_to_scf
// tolerance: bits

// A panel of columns of %y is packed, and rows of %x go through it; the sum goes through blocks of 4 terms, and what
// has been added is kept in between. 7 rows by 2, 11 terms by 4, 21 columns by 16 in vectors of 8: all leave a rest.
func.func @f(%x: memref<7x11xf32>, %y: memref<11x21xf32>, %z: memref<7x21xf32>) {
  loop.kernel {symbols = [], domain = [7, 21, 11], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [6, 16, 4], vector = 1, lanes = 8>} {
    %sum = loop.scratch : !loop.scratch<d0xd1xf32>
    loop.for {dim = 0, size = 2} {
      %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xd1xf32>
      loop.store_scratch %0, %sum : (!loop.tile<d0xd1xf32>, !loop.scratch<d0xd1xf32>) -> ()
      loop.yield
    }
    loop.for {dim = 2} {
      %panel = loop.scratch : !loop.scratch<d2xd1xf32>
      loop.for {dim = 2} {
        %1 = loop.load %y {map = affine_map<(d0, d1, d2) -> (d2, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<11x21xf32>) -> !loop.tile<d1xd2xf32>
        loop.store_scratch %1, %panel : (!loop.tile<d1xd2xf32>, !loop.scratch<d2xd1xf32>) -> ()
        loop.yield
      }
      loop.for {dim = 0, size = 2} {
        %2 = loop.load_scratch %sum : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
        %3 = loop.for %2 {dim = 2, size = 2} : !loop.tile<d0xd1xf32> {
        ^bb0(%acc: !loop.tile<d0xd1xf32>):
          %4 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<7x11xf32>) -> !loop.tile<d0xd2xf32>
          %5 = loop.load_scratch %panel : (!loop.scratch<d2xd1xf32>) -> !loop.tile<d1xd2xf32>
          %6 = loop.contract %acc, %4, %5 {dim = 2} : (!loop.tile<d0xd1xf32>, !loop.tile<d0xd2xf32>, !loop.tile<d1xd2xf32>) -> !loop.tile<d0xd1xf32>
          loop.yield %6 : (!loop.tile<d0xd1xf32>) -> ()
        }
        loop.store_scratch %3, %sum : (!loop.tile<d0xd1xf32>, !loop.scratch<d0xd1xf32>) -> ()
        loop.yield
      }
      loop.yield
    }
    loop.for {dim = 0, size = 2} {
      %7 = loop.load_scratch %sum : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
      loop.store %7, %z {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<7x21xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
