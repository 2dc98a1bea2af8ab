// test: roundtrip

// the bounds of integers, booleans, and floats that no decimal spells
func.func @f(%y: memref<4xi64>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.full {value = 9223372036854775807} : () -> !loop.tile<d0xi64>
    %1 = loop.full {value = -128} : () -> !loop.tile<i8>
    %2 = loop.full {value = true} : () -> !loop.tile<i1>
    %3 = loop.full {value = 0x7F800000 : f32} : () -> !loop.tile<d0xf32>
    loop.store %0, %y {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xi64>, memref<4xi64>) -> ()
    loop.end
  }
  func.return
}
// CHECK: value = 9223372036854775807}
// CHECK: value = -128}
// CHECK: value = true}
// CHECK: value = 0x7F800000 : f32}
