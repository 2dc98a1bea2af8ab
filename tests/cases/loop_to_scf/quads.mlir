// test: pass loop_to_scf
// tolerance: bits

// vectors of 4 lanes have an instruction for their 16 bytes
func.func @four(%x: memref<2x8xi32>, %w: memref<5x34xi8>, %out: memref<2x5xi32>) {
  loop.kernel {symbols = [], domain = [2, 5, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [2, 4, 8], vector = 1>} {
    %0 = loop.full {value = 0} : () -> !loop.tile<d0xd1xi32>
    %1 = loop.for %0 {dim = 2} : !loop.tile<d0xd1xi32> {
    ^bb1(%arg0: !loop.tile<d0xd1xi32>):
      %2 = loop.unpack_quads %w {map = affine_map<(d0, d1, d2) -> (d1, d2)>, encoding = "q8_0", operandSegmentSizes = [1, 0, 0]} : (memref<5x34xi8>) -> !loop.tile<d1xd2xi32>
      %3 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<2x8xi32>) -> !loop.tile<d0xd2xi32>
      %4 = loop.dot_quads %arg0, %3, %2 {dim = 2, instruction = "quads"} : (!loop.tile<d0xd1xi32>, !loop.tile<d0xd2xi32>, !loop.tile<d1xd2xi32>) -> !loop.tile<d0xd1xi32>
      loop.yield %4 : (!loop.tile<d0xd1xi32>) -> ()
    }
    loop.store %1, %out {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xi32>, memref<2x5xi32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: x86vector.avx512.dot_bytes
// -----
// a schedule with vectors of 1 lane
func.func @one(%x: memref<2x8xi32>, %w: memref<5x34xi8>, %out: memref<2x5xi32>) {
  loop.kernel {symbols = [], domain = [2, 5, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [2, 1, 8], vector = 1>} {
    %0 = loop.full {value = 0} : () -> !loop.tile<d0xd1xi32>
    %1 = loop.for %0 {dim = 2} : !loop.tile<d0xd1xi32> {
    ^bb1(%arg0: !loop.tile<d0xd1xi32>):
      %2 = loop.unpack_quads %w {map = affine_map<(d0, d1, d2) -> (d1, d2)>, encoding = "q8_0", operandSegmentSizes = [1, 0, 0]} : (memref<5x34xi8>) -> !loop.tile<d1xd2xi32>
      %3 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<2x8xi32>) -> !loop.tile<d0xd2xi32>
      %4 = loop.dot_quads %arg0, %3, %2 {dim = 2, instruction = "quads"} : (!loop.tile<d0xd1xi32>, !loop.tile<d0xd2xi32>, !loop.tile<d1xd2xi32>) -> !loop.tile<d0xd1xi32>
      loop.yield %4 : (!loop.tile<d0xd1xi32>) -> ()
    }
    loop.store %1, %out {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xi32>, memref<2x5xi32>) -> ()
    loop.end
  }
  func.return
}
// CHECK-NOT: x86vector
// CHECK: arith.muli
// -----
// and with vectors that are wider than those of the processor
func.func @wide(%x: memref<2x8xi32>, %w: memref<5x34xi8>, %out: memref<2x5xi32>) {
  loop.kernel {symbols = [], domain = [2, 5, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [2, 8, 8], vector = 1>} {
    %0 = loop.full {value = 0} : () -> !loop.tile<d0xd1xi32>
    %1 = loop.for %0 {dim = 2} : !loop.tile<d0xd1xi32> {
    ^bb1(%arg0: !loop.tile<d0xd1xi32>):
      %2 = loop.unpack_quads %w {map = affine_map<(d0, d1, d2) -> (d1, d2)>, encoding = "q8_0", operandSegmentSizes = [1, 0, 0]} : (memref<5x34xi8>) -> !loop.tile<d1xd2xi32>
      %3 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<2x8xi32>) -> !loop.tile<d0xd2xi32>
      %4 = loop.dot_quads %arg0, %3, %2 {dim = 2, instruction = "pairs", widest = 16} : (!loop.tile<d0xd1xi32>, !loop.tile<d0xd2xi32>, !loop.tile<d1xd2xi32>) -> !loop.tile<d0xd1xi32>
      loop.yield %4 : (!loop.tile<d0xd1xi32>) -> ()
    }
    loop.store %1, %out {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xi32>, memref<2x5xi32>) -> ()
    loop.end
  }
  func.return
}
// CHECK-NOT: x86vector
// CHECK: arith.muli
// -----
// rows that are no power of two are not transposed in registers
func.func @twelve(%x: memref<2x8xi32>, %w: memref<5x34xi8>, %out: memref<2x5xi32>) {
  loop.kernel {symbols = [], domain = [2, 5, 8], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [2, 12, 8], vector = 1>} {
    %0 = loop.full {value = 0} : () -> !loop.tile<d0xd1xi32>
    %1 = loop.for %0 {dim = 2} : !loop.tile<d0xd1xi32> {
    ^bb1(%arg0: !loop.tile<d0xd1xi32>):
      %2 = loop.unpack_quads %w {map = affine_map<(d0, d1, d2) -> (d1, d2)>, encoding = "q8_0", operandSegmentSizes = [1, 0, 0]} : (memref<5x34xi8>) -> !loop.tile<d1xd2xi32>
      %3 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<2x8xi32>) -> !loop.tile<d0xd2xi32>
      %4 = loop.dot_quads %arg0, %3, %2 {dim = 2, instruction = "quads"} : (!loop.tile<d0xd1xi32>, !loop.tile<d0xd2xi32>, !loop.tile<d1xd2xi32>) -> !loop.tile<d0xd1xi32>
      loop.yield %4 : (!loop.tile<d0xd1xi32>) -> ()
    }
    loop.store %1, %out {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xi32>, memref<2x5xi32>) -> ()
    loop.end
  }
  func.return
}
// CHECK-NOT: x86vector
// CHECK: arith.muli
