// test: roundtrip
// test: pass loop_to_scf canonicalize cse
// tolerance: bits

// Columns of bf16 lie in memory in pairs of terms, the second one first: they are read where they are.
func.func @pairs(%x: memref<6x10xbf16>, %w: memref<1x5x32x2xbf16>, %z: memref<6x32xf32>) {
  loop.kernel {symbols = [], domain = [6, 32, 10], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [6, 32, 1], vector = 1, lanes = 16>} {
    %rows = loop.scratch {interleaved = 2, reversed = true} : () -> !loop.scratch<d0xd2xbf16>
    loop.for {dim = 2, size = 16, vector = true} {
      %0 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<6x10xbf16>) -> !loop.tile<d0xd2xbf16>
      loop.store_scratch %0, %rows : (!loop.tile<d0xd2xbf16>, !loop.scratch<d0xd2xbf16>) -> ()
      loop.yield
    }
    %a = loop.least_exponent %rows : (!loop.scratch<d0xd2xbf16>) -> !loop.tile<i32>
    %columns = loop.words %w {map = affine_map<(d0, d1, d2) -> (0, d2 floordiv 2, d1, -(d2 mod 2) + 1)>, interleaved = 2, reversed = true} : (memref<1x5x32x2xbf16>) -> !loop.scratch<d2xd1xbf16>
    %b = loop.least_exponent %columns : (!loop.scratch<d2xd1xbf16>) -> !loop.tile<i32>
    %1 = loop.contract_interleaved %rows, %columns, %a, %b {dim = 2} : (!loop.scratch<d0xd2xbf16>, !loop.scratch<d2xd1xbf16>, !loop.tile<i32>, !loop.tile<i32>) -> !loop.tile<d0xd1xf32>
    loop.store %1, %z {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<6x32xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: scf.if
// CHECK: vector.load {{.*}} vector<32xbf16>
// CHECK: x86vector.avx512.dot
// CHECK: } else {
// CHECK: math.fma
// -----
// Windows of an image of bytes are runs of 24 of them: a row of a window each.
func.func @runs(%x: memref<5x5x8xi8>, %w: memref<18x16x4xi8>, %z: memref<3x16xi32>) {
  loop.kernel {symbols = [], domain = [3, 16, 72], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [2, 16, 1], vector = 1>} {
    %windows = loop.words %x {map = affine_map<(d0, d1, d2) -> (d2 floordiv 24, ((d2 floordiv 8) mod 3) + d0, d2 mod 8)>, interleaved = 2} : (memref<5x5x8xi8>) -> !loop.scratch<d0xd2xi8>
    %columns = loop.words %w {map = affine_map<(d0, d1, d2) -> (d2 floordiv 4, d1, d2 mod 4)>, interleaved = 2} : (memref<18x16x4xi8>) -> !loop.scratch<d2xd1xi8>
    %0 = loop.contract_bytes %windows, %columns {dim = 2, unsigned = "lhs"} : (!loop.scratch<d0xd2xi8>, !loop.scratch<d2xd1xi8>) -> !loop.tile<d0xd1xi32>
    loop.store %0, %z {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xi32>, memref<3x16xi32>) -> ()
    loop.end
  }
  func.return
}
// CHECK-NOT: memref.alloca
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: x86vector.avx512.dot_bytes
