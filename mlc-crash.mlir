module {
  func.func @main(%x: memref<1x4096xf32>, %y: memref<4096x4096xf32>, %out0: memref<1x4096xf32>, %arena: memref<?xi8>, %errors: memref<2xi64>) attributes {interface = "(tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>", symbols = [], aliases = [-1], error_sites = [], work = "16777216"} {
    loop.kernel {symbols = [], domain = [1, 4096, 4096], parallel = 2, tile = [1, 1, 256], label = "dot_general"} {
      %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xd1xf32>
      %1 = loop.for %0 {dim = 2} : !loop.tile<d0xd1xf32> {
      ^bb2(%arg0: !loop.tile<d0xd1xf32>):
        %2 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xd1xf32>
        %3 = loop.for %2 {dim = 2} : !loop.tile<d0xd1xf32> {
        ^bb3(%arg1: !loop.tile<d0xd1xf32>):
          %4 = loop.load %x {map = ["d0", "d2"], operandSegmentSizes = [1, 0, 0]} : (memref<1x4096xf32>) -> !loop.tile<d0xd2xf32>
          %5 = loop.load %y {map = ["d2", "d1"], operandSegmentSizes = [1, 0, 0]} : (memref<4096x4096xf32>) -> !loop.tile<d1xd2xf32>
          %6 = loop.contract %arg1, %4, %5 {dim = 2} : (!loop.tile<d0xd1xf32>, !loop.tile<d0xd2xf32>, !loop.tile<d1xd2xf32>) -> !loop.tile<d0xd1xf32>
          loop.yield %6 : (!loop.tile<d0xd1xf32>) -> ()
        }
        %7 = loop.map %arg0, %3 : !loop.tile<d0xd1xf32> {
        ^bb4(%arg2: f32, %arg3: f32):
          %8 = arith.addf %arg2, %arg3 : f32
          loop.yield %8 : (f32) -> ()
        }
        loop.yield %7 : (!loop.tile<d0xd1xf32>) -> ()
      }
      loop.store %1, %out0 {map = [0, "d1"], operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<1x4096xf32>) -> ()
      loop.end
    }
    func.return
  }
  func.func @main_arena_bytes() -> index {
    %0 = arith.constant 0 : index
    func.return %0 : index
  }
}

{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(vectorize)",
      disable_threading: true,
      verify_each: true
    }
  }
#-}
