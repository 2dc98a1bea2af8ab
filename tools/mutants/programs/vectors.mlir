// What vectors of two lengths become in the llvm dialect, which has shuffles of equal ones alone, and a parallel loop
// whose last step is a partial one, which is known when it runs; lanes that a masked load leaves as they were; a
// constant of two lanes.
func.func @main(%in: memref<f32>, %out: memref<f32>, %arena: memref<?xi8>, %errors: memref<1xi64>) attributes {interface = "(tensor<f32>) -> tensor<f32>", symbols = [], aliases = [-1], error_sites = [], work = "1", arena = "0"} {
  %x = memref.load %in[] : memref<f32>
  %y = func.call @vectors(%x) : (f32) -> f32
  memref.store %y, %out[] : memref<f32>
  func.return
}
func.func @main_arena_bytes() -> index {
  %none = arith.constant 0 : index
  func.return %none : index
}
func.func private @vectors(%x: f32) -> f32 {
  %first = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
  %second = arith.constant dense<[5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]> : vector<8xf32>
  %short = vector.broadcast %x : f32 to vector<4xf32>
  %long = vector.broadcast %x : f32 to vector<8xf32>
  %a = arith.mulf %short, %first : vector<4xf32>
  %b = arith.mulf %long, %second : vector<8xf32>
  %0 = vector.shuffle %a, %b [3, 4, 11, 0] : vector<4xf32>, vector<8xf32>
  %1 = vector.shuffle %b, %a [8, 7, 11, 0] : vector<8xf32>, vector<4xf32>
  %2 = vector.extract %0[1] : f32 from vector<4xf32>
  %3 = vector.extract %0[2] : f32 from vector<4xf32>
  %4 = vector.extract %1[2] : f32 from vector<4xf32>
  %5 = arith.subf %2, %3 : f32
  %6 = arith.mulf %5, %4 : f32
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %six = arith.constant 6 : index
  %seven = arith.constant 7 : index
  %nan = arith.cmpf une, %x, %x : f32
  %wide = arith.extui %nan : i1 to i64
  %more = arith.index_cast %wide : i64 to index
  %end = arith.addi %seven, %more : index
  %memory = memref.alloca() : memref<16xf32>
  memref.store %6, %memory[%six] : memref<16xf32>
  memref.store %6, %memory[%zero] : memref<16xf32>
  memref.store %6, %memory[%one] : memref<16xf32>
  memref.store %6, %memory[%two] : memref<16xf32>
  scf.parallel (%i) = (%zero) to (%end) step (%three) {
    memref.store %x, %memory[%i] : memref<16xf32>
  }
  %7 = memref.load %memory[%six] : memref<16xf32>
  %8 = arith.addf %6, %7 : f32
  %mask = vector.create_mask %three : vector<4xi1>
  %loaded = vector.maskedload %memory[%zero], %mask, %a : memref<16xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %9 = vector.extract %loaded[3] : f32 from vector<4xf32>
  %10 = arith.addf %8, %9 : f32
  %pair = arith.constant dense<[3.0, 5.0]> : vector<2xf32>
  %of_x = vector.broadcast %x : f32 to vector<2xf32>
  %scaled = arith.mulf %of_x, %pair : vector<2xf32>
  %last = vector.extract %scaled[1] : f32 from vector<2xf32>
  %11 = arith.addf %10, %last : f32
  func.return %11 : f32
}
