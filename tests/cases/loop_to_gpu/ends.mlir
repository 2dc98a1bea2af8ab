// test: pass loop_to_gpu
// tolerance: bits

// points beyond the last row read its elements in place of those after the buffer, and are not written
func.func @rows(%x: memref<5x32xf32>, %y: memref<5x32xf32>) {
  %B = arith.constant 5 : index
  loop.kernel %B {symbols = ["B"], domain = ["B", 32], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [2, 32], vector = 1, lanes = 1, tiles_per_cta = 1>} : (index) -> () {
    %0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<5x32xf32>) -> !loop.tile<d0xd1xf32>
    %1 = loop.map %0 : (!loop.tile<d0xd1xf32>) -> !loop.tile<d0xd1xf32> {
    ^bb0(%a: f32):
      %b = arith.addf %a, %a : f32
      loop.yield %b : (f32) -> ()
    }
    loop.store %1, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<5x32xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: arith.minsi
