// test: roundtrip
// test: pass loop_to_scf
// tolerance: bits

// every prefix of a column: blocks of 4 points, whose last element starts the next; columns in vectors of 8
func.func @f(%x: memref<11x21xf32>, %z: memref<11x21xf32>) {
  loop.kernel {symbols = [], domain = [21, 11], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [8, 4], vector = 0>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xf32>
    %1 = loop.for %0 {dim = 1} : !loop.tile<d0xf32> {
    ^bb0(%acc: !loop.tile<d0xf32>):
      %2 = loop.load %x {map = affine_map<(d0, d1) -> (d1, d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<11x21xf32>) -> !loop.tile<d0xd1xf32>
      %3 = loop.scan %acc, %2 {dim = 1, kind = "add"} : (!loop.tile<d0xf32>, !loop.tile<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
      %4 = loop.fold %acc, %2 {dim = 1, kind = "add"} : (!loop.tile<d0xf32>, !loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32>
      loop.store %3, %z {map = affine_map<(d0, d1) -> (d1, d0)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<11x21xf32>) -> ()
      loop.yield %4 : (!loop.tile<d0xf32>) -> ()
    }
    loop.end
  }
  func.return
}
