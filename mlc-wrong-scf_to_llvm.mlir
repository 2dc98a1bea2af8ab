module {
  func.func @main(%m: memref<12xf32>) -> (f32, f32, f32) {
    %c0 = arith.constant 0 : index loc("tools/mutants/programs/vectors.mlir":3:3)
    %c4 = arith.constant 4 : index loc("tools/mutants/programs/vectors.mlir":4:3)
    %a = vector.load %m[%c0] : memref<12xf32>, vector<4xf32> loc("tools/mutants/programs/vectors.mlir":5:3)
    %b = vector.load %m[%c4] : memref<12xf32>, vector<8xf32> loc("tools/mutants/programs/vectors.mlir":6:3)
    %0 = vector.shuffle %a, %b [3, 4, 11, 0] : vector<4xf32>, vector<8xf32> loc("tools/mutants/programs/vectors.mlir":7:3)
    %1 = vector.shuffle %b, %a [8, 7, 11, 0] : vector<8xf32>, vector<4xf32> loc("tools/mutants/programs/vectors.mlir":8:3)
    %2 = vector.extract %0[1] : f32 from vector<4xf32> loc("tools/mutants/programs/vectors.mlir":9:3)
    %3 = vector.extract %0[2] : f32 from vector<4xf32> loc("tools/mutants/programs/vectors.mlir":10:3)
    %4 = vector.extract %1[2] : f32 from vector<4xf32> loc("tools/mutants/programs/vectors.mlir":11:3)
    func.return %2, %3, %4 : f32, f32, f32 loc("tools/mutants/programs/vectors.mlir":12:3)
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
      arg0: "12xf32 0x6CBF003E7F4607BEBDF2233FDFD5D63DA12109BFFD22B93E79E9A63FE673723FFE2734BF55F9A1BFEA8E1FBF6E45293D"
    }
  }
#-}
