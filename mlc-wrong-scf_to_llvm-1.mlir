module {
  func.func @main(%x: f32) -> (f32, f32, f32) {
    %first = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32> loc("tools/mutants/programs/vectors.mlir":3:3)
    %second = arith.constant dense<[5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]> : vector<8xf32> loc("tools/mutants/programs/vectors.mlir":4:3)
    %short = vector.broadcast %x : f32 to vector<4xf32> loc("tools/mutants/programs/vectors.mlir":5:3)
    %long = vector.broadcast %x : f32 to vector<8xf32> loc("tools/mutants/programs/vectors.mlir":6:3)
    %a = arith.mulf %short, %first : vector<4xf32> loc("tools/mutants/programs/vectors.mlir":7:3)
    %b = arith.mulf %long, %second : vector<8xf32> loc("tools/mutants/programs/vectors.mlir":8:3)
    %0 = vector.shuffle %a, %b [3, 4, 11, 0] : vector<4xf32>, vector<8xf32> loc("tools/mutants/programs/vectors.mlir":9:3)
    %1 = vector.shuffle %b, %a [8, 7, 11, 0] : vector<8xf32>, vector<4xf32> loc("tools/mutants/programs/vectors.mlir":10:3)
    %2 = vector.extract %0[1] : f32 from vector<4xf32> loc("tools/mutants/programs/vectors.mlir":11:3)
    %3 = vector.extract %0[2] : f32 from vector<4xf32> loc("tools/mutants/programs/vectors.mlir":12:3)
    %4 = vector.extract %1[2] : f32 from vector<4xf32> loc("tools/mutants/programs/vectors.mlir":13:3)
    func.return %2, %3, %4 : f32, f32, f32 loc("tools/mutants/programs/vectors.mlir":14:3)
  } loc("tools/mutants/programs/vectors.mlir":2:1)
} loc("tools/mutants/programs/vectors.mlir":1:1)

{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(scf_to_llvm)",
      disable_threading: true,
      verify_each: true
    },
    mlc_check: {
      entry: "main",
      exact: true,
      arg0: "f32 0x6CBF003E"
    }
  }
#-}
