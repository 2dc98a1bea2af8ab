// test: pass parallelize{worth=0}
// tolerance: bits

// rows that an index moves may overlap: points of different rows write to one element, the last of them last
func.func @moved(%i: memref<2000xi64>, %x: memref<40x2000xf32>, %y: memref<80xf32>) {
  loop.kernel {symbols = [], domain = [40, 2000], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 16], vector = 1>} {
    %j = loop.load %i {map = affine_map<(d0, d1) -> (d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<2000xi64>) -> !loop.tile<d1xi64>
    %at = loop.map %j : (!loop.tile<d1xi64>) -> !loop.tile<d1xindex> {
    ^bb0(%a: i64):
      %one = arith.constant 1 : i64
      %bit = arith.andi %a, %one : i64
      %n = arith.index_cast %bit : i64 to index
      loop.yield %n : (index) -> ()
    }
    %v = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<40x2000xf32>) -> !loop.tile<d0xd1xf32>
    loop.store %v, %y, %at {map = affine_map<(d0, d1, t0) -> (d0 + t0)>, operandSegmentSizes = [1, 1, 1, 0]} : (!loop.tile<d0xd1xf32>, memref<80xf32>, !loop.tile<d1xindex>) -> ()
    loop.end
  }
  func.return
}
// CHECK-NOT: parallelize
