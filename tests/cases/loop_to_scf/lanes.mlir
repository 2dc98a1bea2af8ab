// test: pass loop_to_scf canonicalize cse
// tolerance: bits

// vectors have 6 lanes, as 4 do not divide the blocks, and begin at multiples of 6: a quotient by 12 is the same for all lanes, one by 4 is not
func.func @quotients(%x: memref<5xf32>, %sums: memref<20xf32>) {
  loop.kernel {symbols = [], domain = [20], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [12], vector = 0, lanes = 4>} {
    loop.for {dim = 0, size = 6} {
      %0 = loop.load %x {map = affine_map<(d0) -> (d0 floordiv 12)>, operandSegmentSizes = [1, 0, 0]} : (memref<5xf32>) -> !loop.tile<d0xf32>
      %1 = loop.load %x {map = affine_map<(d0) -> (d0 floordiv 4)>, operandSegmentSizes = [1, 0, 0]} : (memref<5xf32>) -> !loop.tile<d0xf32>
      %2 = loop.map %0, %1 : !loop.tile<d0xf32> {
      ^bb1(%arg0: f32, %arg1: f32):
        %3 = arith.addf %arg0, %arg1 : f32
        loop.yield %3 : (f32) -> ()
      }
      loop.store %2, %sums {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xf32>, memref<20xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// CHECK: %[[COMMON:\d+]] = arith.divui %{{\w+}}, %{{\d+}} : index
// CHECK-NEXT: scf.for %[[FIRST:\w+]] =
// CHECK: vector.broadcast %[[COMMON]] : index to vector<6xindex>
// CHECK: vector.broadcast %[[FIRST]] : index to vector<6xindex>
// CHECK: arith.divui %{{\d+}}, %{{\d+}} : vector<6xindex>
// -----
// what is computed from an index that is compared is its own for each lane
func.func @smaller(%y: memref<5x32xi64>) {
  loop.kernel {symbols = [], domain = [5, 32], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 8], vector = 1>} {
    %i = loop.index {map = affine_map<(d0, d1) -> (d1)>} : () -> !loop.tile<d1xindex>
    %j = loop.index {map = affine_map<(d0, d1) -> (16)>} : () -> !loop.tile<index>
    %m = loop.map %i, %j : (!loop.tile<d1xindex>, !loop.tile<index>) -> !loop.tile<d1xi64> {
    ^bb0(%a: index, %b: index):
      %c = arith.cmpi slt, %a, %b : index
      %s = arith.select %c, %a, %b : index
      %r = arith.index_cast %s : index to i64
      loop.yield %r : (i64) -> ()
    }
    loop.store %m, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d1xi64>, memref<5x32xi64>) -> ()
    loop.end
  }
  func.return
}
// CHECK: vector.step
// CHECK: arith.cmpi slt
// CHECK: arith.select
