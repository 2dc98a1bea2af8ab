// test: pass loop_to_scf canonicalize cse
// tolerance: bits

// vectors that one condition leaves out are zero; the first elements of the buffer are read in place of them
func.func @rows(%x: memref<3x16xf32>, %y: memref<5x16xf32>) {
  loop.kernel {symbols = [], domain = [5, 16], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 16], vector = 1>} {
    %i = loop.index {map = affine_map<(d0, d1) -> (d0)>} : () -> !loop.tile<d0xindex>
    %inside = loop.map %i : (!loop.tile<d0xindex>) -> !loop.tile<d0xi1> {
    ^bb0(%a: index):
      %three = arith.constant 3 : index
      %c = arith.cmpi slt, %a, %three : index
      loop.yield %c : (i1) -> ()
    }
    %v = loop.load %x, %inside {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 1]} : (memref<3x16xf32>, !loop.tile<d0xi1>) -> !loop.tile<d0xd1xf32>
    loop.store %v, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<5x16xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: %[[AT:\w+]] = arith.select
// CHECK: vector.load {{.*}}[%[[AT]]]
// CHECK: arith.select
// -----
// a buffer with fewer elements than a vector is not read at all
func.func @short(%x: memref<1x8xf32>, %y: memref<5x16xf32>) {
  loop.kernel {symbols = [], domain = [5, 16], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 16], vector = 1>} {
    %i = loop.index {map = affine_map<(d0, d1) -> (d0)>} : () -> !loop.tile<d0xindex>
    %never = loop.map %i : (!loop.tile<d0xindex>) -> !loop.tile<d0xi1> {
    ^bb0(%a: index):
      %zero = arith.constant 0 : index
      %c = arith.cmpi slt, %a, %zero : index
      loop.yield %c : (i1) -> ()
    }
    %v = loop.load %x, %never {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 1]} : (memref<1x8xf32>, !loop.tile<d0xi1>) -> !loop.tile<d0xd1xf32>
    loop.store %v, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<5x16xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: scf.if
// CHECK: vector.load
