// test: pass vectorize
// tolerance: bits

// a window of more terms than a run has is not unrolled, which would make its sum one chain
func.func @runs(%x: memref<20x49xf32>, %z: memref<14xf32>) {
  loop.kernel {symbols = [], domain = [14, 49], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1]>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xf32>
    %1 = loop.for %0 {dim = 1, run = 32, kinds = ["add"]} : !loop.tile<d0xf32> {
    ^bb0(%sum: !loop.tile<d0xf32>):
      %2 = loop.load %x {map = affine_map<(d0, d1) -> (d0 + d1 floordiv 7, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<20x49xf32>) -> !loop.tile<d0xd1xf32>
      %3 = loop.fold %sum, %2 {dim = 1, kind = "add"} : (!loop.tile<d0xf32>, !loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32>
      loop.yield %3 : (!loop.tile<d0xf32>) -> ()
    }
    loop.store %1, %z {map = affine_map<(d0, d1) -> (d0)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xf32>, memref<14xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: tile = [16, 1]
