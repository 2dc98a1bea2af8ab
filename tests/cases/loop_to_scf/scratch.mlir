// test: pass loop_to_scf

// a panel of 33 points along d1, stored in blocks of 8 and read in blocks of 11: the last block of 8 ends behind the last one of 11
func.func @blocks_of_8_and_11(%x: memref<2x16x33xi64>, %y: memref<2x33x64xi8>) {
  loop.kernel {symbols = [], domain = [2, 33, 64, 16], iterator_types = ["parallel", "parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 88, 64, 1], vector = 2, lanes = 8, thread_dims = 3, grain_size = 13, steps = ["tile(dim=2, size=16, vector=True, lanes=8)", "tile(dim=1, size=88)", "strip_mine(dim=1, size=11)", "tile(dim=2, size=64, vector=True, lanes=8)", "strip_mine(dim=2, size=16)", "pack(side=lhs, vector=1, size=8)", "parallelize(thread_dims=3, grain_size=13)"]>, label = "product"} : () -> () {
    %0 = loop.scratch : () -> !loop.scratch<d3xd0xd1xi8>
    loop.for {dim = 3} {
      loop.for {dim = 1, size = 8, vector = true} {
        %1 = loop.load %x {map = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<2x16x33xi64>) -> !loop.tile<d0xd1xd3xi64>
        %2 = loop.map %1 : (!loop.tile<d0xd1xd3xi64>) -> !loop.tile<d0xd1xd3xi8> {
        ^bb4(%arg0: i64):
          %3 = arith.trunci %arg0 : i64 to i8
          loop.yield %3 : (i8) -> ()
        }
        loop.store_scratch %2, %0 : (!loop.tile<d0xd1xd3xi8>, !loop.scratch<d3xd0xd1xi8>) -> ()
        loop.yield
      }
      loop.yield
    }
    loop.for {dim = 2, size = 16} {
      loop.for {dim = 1, size = 11} {
        loop.yield
      }
      loop.yield
    }
    loop.end
  }
  func.return
}
// CHECK: memref.alloca() {alignment = 64} : memref<16x1x40xi8>
