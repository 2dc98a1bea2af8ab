// test: roundtrip
// test: pass loop_to_scf canonicalize cse
// tolerance: bits

// Panels of 40 rows of bytes without sign and 40 columns of bytes with one: the sums of a slice of 64 terms are added to
// those before.
func.func @f(%x: memref<40x128xi8>, %y: memref<128x40xi8>, %z: memref<40x40xi32>) {
  loop.kernel {symbols = [], domain = [40, 40, 128], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [40, 48, 64], vector = 1, lanes = 16>} {
    %sum = loop.scratch : () -> !loop.scratch<d0xd1xi32>
    loop.for {dim = 0, size = 4} {
      %0 = loop.full {value = 1 : i32} : () -> !loop.tile<d0xd1xi32>
      loop.store_scratch %0, %sum : (!loop.tile<d0xd1xi32>, !loop.scratch<d0xd1xi32>) -> ()
      loop.yield
    }
    loop.for {dim = 2} {
      %rows = loop.scratch {interleaved = 2} : () -> !loop.scratch<d0xd2xi8>
      loop.for {dim = 0} {
        loop.for {dim = 2, size = 64, vector = true} {
          %1 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<40x128xi8>) -> !loop.tile<d0xd2xi8>
          loop.store_scratch %1, %rows : (!loop.tile<d0xd2xi8>, !loop.scratch<d0xd2xi8>) -> ()
          loop.yield
        }
        loop.yield
      }
      %columns = loop.scratch {interleaved = 2} : () -> !loop.scratch<d2xd1xi8>
      loop.for {dim = 2, size = 4} {
        %2 = loop.load %y {map = affine_map<(d0, d1, d2) -> (d2, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<128x40xi8>) -> !loop.tile<d1xd2xi8>
        loop.store_scratch %2, %columns : (!loop.tile<d1xd2xi8>, !loop.scratch<d2xd1xi8>) -> ()
        loop.yield
      }
      loop.contract_panels %sum, %rows, %columns {dim = 2, unsigned = "rows"} : (!loop.scratch<d0xd1xi32>, !loop.scratch<d0xd2xi8>, !loop.scratch<d2xd1xi8>) -> ()
      loop.yield
    }
    loop.for {dim = 0, size = 4} {
      %7 = loop.load_scratch %sum : (!loop.scratch<d0xd1xi32>) -> !loop.tile<d0xd1xi32>
      loop.store %7, %z {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xi32>, memref<40x40xi32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// CHECK: amx.tile_load
// CHECK: amx.tile_muli {{.*}} {isZextLhs = true}
// CHECK: amx.tile_store
