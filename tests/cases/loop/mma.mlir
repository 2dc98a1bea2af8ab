// test: roundtrip
// test: pass loop_to_scf
// test: pass distribute loop_to_gpu
// tolerance: bits

// without a schedule for warps, each sum as its order says
func.func @f(%x: memref<3x32xbf16>, %y: memref<32x21xbf16>, %z: memref<3x21xf32>) {
  loop.kernel {symbols = [], domain = [3, 21, 32], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 8, 16], vector = 1, tiles_per_cta = 4, steps = ["by hand"]>} {
    %0 = loop.full {value = 1.0 : f32} : () -> !loop.tile<d0xd1xf32>
    %1 = loop.for %0 {dim = 2} : !loop.tile<d0xd1xf32> {
    ^bb0(%acc: !loop.tile<d0xd1xf32>):
      %2 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<3x32xbf16>) -> !loop.tile<d0xd2xbf16>
      %3 = loop.load %y {map = affine_map<(d0, d1, d2) -> (d2, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<32x21xbf16>) -> !loop.tile<d1xd2xbf16>
      %4 = loop.mma %acc, %2, %3 {dim = 2} : (!loop.tile<d0xd1xf32>, !loop.tile<d0xd2xbf16>, !loop.tile<d1xd2xbf16>) -> !loop.tile<d0xd1xf32>
      loop.yield %4 : (!loop.tile<d0xd1xf32>) -> ()
    }
    loop.store %1, %z {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<3x21xf32>) -> ()
    loop.end
  }
  func.return
}
