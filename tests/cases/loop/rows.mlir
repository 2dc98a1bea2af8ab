// test: pass loop_to_gpu
// tolerance: bits
// sizes: B=3 N=300

// A thread loads three blocks of its row, then adds them in order; two whole blocks and a partial one are left.
func.func @several_blocks(%x: memref<3x1350xf32>, %y: memref<3x1350xf32>) {
  loop.kernel {symbols = [], domain = [3, 1350], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 64], vector = 1, lanes = 1, tiles_per_cta = 1>} {
    %zeros = loop.full {value = 0.0 : f32} : !loop.tile<d0xd1xf32>
    %sums = loop.for %zeros {dim = 1, unroll = 3} : !loop.tile<d0xd1xf32> {
    ^bb0(%acc: !loop.tile<d0xd1xf32>):
      %x0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<3x1350xf32>) -> !loop.tile<d0xd1xf32>
      %inside = loop.in_bounds {dim = 1} : !loop.tile<d1xi1>
      %1 = loop.map %inside, %x0 : (!loop.tile<d1xi1>, !loop.tile<d0xd1xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb1(%c: i1, %v: f32):
        %z = arith.constant 0.0 : f32
        %s = arith.select %c, %v, %z : f32
        loop.yield %s : (f32) -> ()
      }
      %2 = loop.map %acc, %1 : !loop.tile<d0xd1xf32> {
      ^bb2(%a: f32, %v2: f32):
        %t = arith.addf %a, %v2 : f32
        loop.yield %t : (f32) -> ()
      }
      loop.yield %2 : (!loop.tile<d0xd1xf32>) -> ()
    }
    %total = loop.reduce %sums {dim = 1, kind = "add"} : (!loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32>
    loop.for {dim = 1, unroll = 2} {
      %3 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<3x1350xf32>) -> !loop.tile<d0xd1xf32>
      %4 = loop.map %3, %total : (!loop.tile<d0xd1xf32>, !loop.tile<d0xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb3(%u: f32, %w: f32):
        %d = arith.subf %u, %w : f32
        loop.yield %d : (f32) -> ()
      }
      loop.store %4, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<3x1350xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// CHECK: scf.for
// CHECK-NOT: addf
// CHECK: memref.load
// CHECK-NOT: addf
// CHECK: memref.load
// CHECK-NOT: addf
// CHECK: memref.load
// CHECK: addf
// CHECK: addf
// CHECK: addf
// CHECK: scf.yield
// -----
// A row in registers is loaded once: there is no loop, nor is memory read after the first store.
func.func @in_registers(%x: memref<3x300xf32>, %y: memref<3x300xf32>) {
  loop.kernel {symbols = [], domain = [3, 300], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 32], vector = 1, lanes = 1, tiles_per_cta = 1>} {
    %row = loop.scratch {registers = true} : !loop.scratch<d0xd1xf32>
    %zeros = loop.full {value = 0.0 : f32} : !loop.tile<d0xd1xf32>
    %sums = loop.for %zeros {dim = 1, run = 2, kinds = ["add"], unroll = 4} : !loop.tile<d0xd1xf32> {
    ^bb0(%acc: !loop.tile<d0xd1xf32>):
      %x0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<3x300xf32>) -> !loop.tile<d0xd1xf32>
      loop.store_scratch %x0, %row : (!loop.tile<d0xd1xf32>, !loop.scratch<d0xd1xf32>) -> ()
      %inside = loop.in_bounds {dim = 1} : !loop.tile<d1xi1>
      %1 = loop.map %inside, %x0 : (!loop.tile<d1xi1>, !loop.tile<d0xd1xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb1(%c: i1, %v: f32):
        %z = arith.constant 0.0 : f32
        %s = arith.select %c, %v, %z : f32
        loop.yield %s : (f32) -> ()
      }
      %2 = loop.map %acc, %1 : !loop.tile<d0xd1xf32> {
      ^bb2(%a: f32, %v2: f32):
        %t = arith.addf %a, %v2 : f32
        loop.yield %t : (f32) -> ()
      }
      loop.yield %2 : (!loop.tile<d0xd1xf32>) -> ()
    }
    %total = loop.reduce %sums {dim = 1, kind = "add"} : (!loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32>
    loop.for {dim = 1, unroll = 3} {
      %3 = loop.load_scratch %row : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
      %4 = loop.map %3, %total : (!loop.tile<d0xd1xf32>, !loop.tile<d0xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb3(%u: f32, %w: f32):
        %d = arith.subf %u, %w : f32
        loop.yield %d : (f32) -> ()
      }
      loop.store %4, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<3x300xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// CHECK-NOT: scf.for
// the result may lie where the operand does: it is written when all threads have read
// CHECK: gpu.barrier
// CHECK: memref.store
// CHECK-NOT: memref.load
// CHECK: gpu.return
// -----
// Two groups take turns with runs of two blocks; the fifth run is short, and the partial block is added last.
func.func @groups(%x: memref<3x300xf32>, %y: memref<3x300xf32>) {
  loop.kernel {symbols = [], domain = [3, 300], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 32], vector = 1, lanes = 1, tiles_per_cta = 1, groups_per_tile = 2, blocks_per_group = 2>} {
    %row = loop.scratch {registers = true} : !loop.scratch<d0xd1xf32>
    %zeros = loop.full {value = 0.0 : f32} : !loop.tile<d0xd1xf32>
    %sums = loop.for %zeros {dim = 1, run = 2, kinds = ["add"], unroll = 2} : !loop.tile<d0xd1xf32> {
    ^bb0(%acc: !loop.tile<d0xd1xf32>):
      %x0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<3x300xf32>) -> !loop.tile<d0xd1xf32>
      loop.store_scratch %x0, %row : (!loop.tile<d0xd1xf32>, !loop.scratch<d0xd1xf32>) -> ()
      %inside = loop.in_bounds {dim = 1} : !loop.tile<d1xi1>
      %1 = loop.map %inside, %x0 : (!loop.tile<d1xi1>, !loop.tile<d0xd1xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb1(%c: i1, %v: f32):
        %z = arith.constant 0.0 : f32
        %s = arith.select %c, %v, %z : f32
        loop.yield %s : (f32) -> ()
      }
      %2 = loop.map %acc, %1 : !loop.tile<d0xd1xf32> {
      ^bb2(%a: f32, %v2: f32):
        %t = arith.addf %a, %v2 : f32
        loop.yield %t : (f32) -> ()
      }
      loop.yield %2 : (!loop.tile<d0xd1xf32>) -> ()
    }
    %total = loop.reduce %sums {dim = 1, kind = "add"} : (!loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32>
    loop.for {dim = 1, unroll = 1} {
      %3 = loop.load_scratch %row : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
      %4 = loop.map %3, %total : (!loop.tile<d0xd1xf32>, !loop.tile<d0xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb3(%u: f32, %w: f32):
        %d = arith.subf %u, %w : f32
        loop.yield %d : (f32) -> ()
      }
      loop.store %4, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<3x300xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// CHECK: known_block_size = [64, 1, 1]
// -----
// The same with the row in shared memory.
func.func @in_shared_memory(%x: memref<3x300xf32>, %y: memref<3x300xf32>) {
  loop.kernel {symbols = [], domain = [3, 300], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 32], vector = 1, lanes = 1, tiles_per_cta = 1, groups_per_tile = 2, blocks_per_group = 2>} {
    %row = loop.scratch : !loop.scratch<d0xd1xf32>
    %zeros = loop.full {value = 0.0 : f32} : !loop.tile<d0xd1xf32>
    %sums = loop.for %zeros {dim = 1, run = 2, kinds = ["add"], unroll = 2} : !loop.tile<d0xd1xf32> {
    ^bb0(%acc: !loop.tile<d0xd1xf32>):
      %x0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<3x300xf32>) -> !loop.tile<d0xd1xf32>
      loop.store_scratch %x0, %row : (!loop.tile<d0xd1xf32>, !loop.scratch<d0xd1xf32>) -> ()
      %inside = loop.in_bounds {dim = 1} : !loop.tile<d1xi1>
      %1 = loop.map %inside, %x0 : (!loop.tile<d1xi1>, !loop.tile<d0xd1xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb1(%c: i1, %v: f32):
        %z = arith.constant 0.0 : f32
        %s = arith.select %c, %v, %z : f32
        loop.yield %s : (f32) -> ()
      }
      %2 = loop.map %acc, %1 : !loop.tile<d0xd1xf32> {
      ^bb2(%a: f32, %v2: f32):
        %t = arith.addf %a, %v2 : f32
        loop.yield %t : (f32) -> ()
      }
      loop.yield %2 : (!loop.tile<d0xd1xf32>) -> ()
    }
    %total = loop.reduce %sums {dim = 1, kind = "add"} : (!loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32>
    loop.for {dim = 1, unroll = 1} {
      %3 = loop.load_scratch %row : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
      %4 = loop.map %3, %total : (!loop.tile<d0xd1xf32>, !loop.tile<d0xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb3(%u: f32, %w: f32):
        %d = arith.subf %u, %w : f32
        loop.yield %d : (f32) -> ()
      }
      loop.store %4, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<3x300xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
// All groups have a run at once, which is the only one, and the last one's is short.
func.func @more_groups(%x: memref<2x360xf32>, %y: memref<2x360xf32>) {
  loop.kernel {symbols = [], domain = [2, 360], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 32], vector = 1, lanes = 1, tiles_per_cta = 1, groups_per_tile = 3, blocks_per_group = 4>} {
    %row = loop.scratch {registers = true} : !loop.scratch<d0xd1xf32>
    %zeros = loop.full {value = 0.0 : f32} : !loop.tile<d0xd1xf32>
    %sums = loop.for %zeros {dim = 1, run = 4, kinds = ["add"], unroll = 4} : !loop.tile<d0xd1xf32> {
    ^bb0(%acc: !loop.tile<d0xd1xf32>):
      %x0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<2x360xf32>) -> !loop.tile<d0xd1xf32>
      loop.store_scratch %x0, %row : (!loop.tile<d0xd1xf32>, !loop.scratch<d0xd1xf32>) -> ()
      %inside = loop.in_bounds {dim = 1} : !loop.tile<d1xi1>
      %1 = loop.map %inside, %x0 : (!loop.tile<d1xi1>, !loop.tile<d0xd1xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb1(%c: i1, %v: f32):
        %z = arith.constant 0.0 : f32
        %s = arith.select %c, %v, %z : f32
        loop.yield %s : (f32) -> ()
      }
      %2 = loop.map %acc, %1 : !loop.tile<d0xd1xf32> {
      ^bb2(%a: f32, %v2: f32):
        %t = arith.addf %a, %v2 : f32
        loop.yield %t : (f32) -> ()
      }
      loop.yield %2 : (!loop.tile<d0xd1xf32>) -> ()
    }
    %total = loop.reduce %sums {dim = 1, kind = "add"} : (!loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32>
    loop.for {dim = 1, unroll = 3} {
      %3 = loop.load_scratch %row : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
      %4 = loop.map %3, %total : (!loop.tile<d0xd1xf32>, !loop.tile<d0xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb3(%u: f32, %w: f32):
        %d = arith.subf %u, %w : f32
        loop.yield %d : (f32) -> ()
      }
      loop.store %4, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<2x360xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
// A thread takes a point of two rows; the last row is alone.
func.func @several_rows(%x: memref<3x70xf32>, %y: memref<3x70xf32>) {
  loop.kernel {symbols = [], domain = [3, 70], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [2, 32], vector = 1, lanes = 1, tiles_per_cta = 1>} {
    %row = loop.scratch {registers = true} : !loop.scratch<d0xd1xf32>
    %zeros = loop.full {value = 0.0 : f32} : !loop.tile<d0xd1xf32>
    %sums = loop.for %zeros {dim = 1, unroll = 2} : !loop.tile<d0xd1xf32> {
    ^bb0(%acc: !loop.tile<d0xd1xf32>):
      %x0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<3x70xf32>) -> !loop.tile<d0xd1xf32>
      loop.store_scratch %x0, %row : (!loop.tile<d0xd1xf32>, !loop.scratch<d0xd1xf32>) -> ()
      %inside = loop.in_bounds {dim = 1} : !loop.tile<d1xi1>
      %1 = loop.map %inside, %x0 : (!loop.tile<d1xi1>, !loop.tile<d0xd1xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb1(%c: i1, %v: f32):
        %z = arith.constant 0.0 : f32
        %s = arith.select %c, %v, %z : f32
        loop.yield %s : (f32) -> ()
      }
      %2 = loop.map %acc, %1 : !loop.tile<d0xd1xf32> {
      ^bb2(%a: f32, %v2: f32):
        %t = arith.addf %a, %v2 : f32
        loop.yield %t : (f32) -> ()
      }
      loop.yield %2 : (!loop.tile<d0xd1xf32>) -> ()
    }
    %total = loop.reduce %sums {dim = 1, kind = "add"} : (!loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32>
    loop.for {dim = 1, unroll = 2} {
      %3 = loop.load_scratch %row : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32>
      %4 = loop.map %3, %total : (!loop.tile<d0xd1xf32>, !loop.tile<d0xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb3(%u: f32, %w: f32):
        %d = arith.subf %u, %w : f32
        loop.yield %d : (f32) -> ()
      }
      loop.store %4, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<3x70xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
// Of a row of unknown length, the groups take as many turns as there are runs.
func.func @symbolic(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %b = memref.dim %x, %zero : memref<?x?xf32>
  %n = memref.dim %x, %one : memref<?x?xf32>
  loop.kernel %b, %n {symbols = ["B", "N"], domain = ["B", "N"], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 32], vector = 1, lanes = 1, tiles_per_cta = 1, groups_per_tile = 2, blocks_per_group = 4>} : (index, index) -> () {
    %zeros = loop.full {value = 0.0 : f32} : !loop.tile<d0xd1xf32>
    %sums = loop.for %zeros {dim = 1, run = 4, kinds = ["add"], unroll = 3} : !loop.tile<d0xd1xf32> {
    ^bb0(%acc: !loop.tile<d0xd1xf32>):
      %x0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<?x?xf32>) -> !loop.tile<d0xd1xf32>
      %inside = loop.in_bounds {dim = 1} : !loop.tile<d1xi1>
      %1 = loop.map %inside, %x0 : (!loop.tile<d1xi1>, !loop.tile<d0xd1xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb1(%c: i1, %v: f32):
        %z = arith.constant 0.0 : f32
        %s = arith.select %c, %v, %z : f32
        loop.yield %s : (f32) -> ()
      }
      %2 = loop.map %acc, %1 : !loop.tile<d0xd1xf32> {
      ^bb2(%a: f32, %v2: f32):
        %t = arith.addf %a, %v2 : f32
        loop.yield %t : (f32) -> ()
      }
      loop.yield %2 : (!loop.tile<d0xd1xf32>) -> ()
    }
    %total = loop.reduce %sums {dim = 1, kind = "add"} : (!loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32>
    loop.for {dim = 1, unroll = 2} {
      %3 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<?x?xf32>) -> !loop.tile<d0xd1xf32>
      %4 = loop.map %3, %total : (!loop.tile<d0xd1xf32>, !loop.tile<d0xf32>) -> !loop.tile<d0xd1xf32> {
      ^bb3(%u: f32, %w: f32):
        %d = arith.subf %u, %w : f32
        loop.yield %d : (f32) -> ()
      }
      loop.store %4, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<?x?xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
// Four groups share the runs of columns, a thread of each per column; the first group stores the sums.
func.func @columns(%x: memref<101x8xf32>, %y: memref<8xf32>) {
  loop.kernel {symbols = [], domain = [8, 101], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1], tiles_per_cta = 4, groups_per_tile = 4, blocks_per_group = 4>} {
    %start = loop.full {value = 0.0 : f32} : !loop.tile<d0xf32>
    %sum = loop.for %start {dim = 1, run = 4, kinds = ["add"], unroll = 3} : !loop.tile<d0xf32> {
    ^bb0(%acc: !loop.tile<d0xf32>):
      %v = loop.load %x {map = affine_map<(d0, d1) -> (d1, d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<101x8xf32>) -> !loop.tile<d0xd1xf32>
      %f = loop.fold %acc, %v {dim = 1, kind = "add"} : (!loop.tile<d0xf32>, !loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32>
      loop.yield %f : (!loop.tile<d0xf32>) -> ()
    }
    loop.store %sum, %y {map = affine_map<(d0, d1) -> (d0)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xf32>, memref<8xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: known_block_size = [16, 1, 1]
// -----
// The same of columns of unknown length.
func.func @symbolic_columns(%x: memref<?x8xf32>, %y: memref<8xf32>) {
  %zero = arith.constant 0 : index
  %k = memref.dim %x, %zero : memref<?x8xf32>
  loop.kernel %k {symbols = ["N"], domain = [8, "N"], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1], tiles_per_cta = 4, groups_per_tile = 2, blocks_per_group = 4>} : (index) -> () {
    %start = loop.full {value = 0.0 : f32} : !loop.tile<d0xf32>
    %sum = loop.for %start {dim = 1, run = 4, kinds = ["add"], unroll = 3} : !loop.tile<d0xf32> {
    ^bb0(%acc: !loop.tile<d0xf32>):
      %v = loop.load %x {map = affine_map<(d0, d1) -> (d1, d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<?x8xf32>) -> !loop.tile<d0xd1xf32>
      %f = loop.fold %acc, %v {dim = 1, kind = "add"} : (!loop.tile<d0xf32>, !loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32>
      loop.yield %f : (!loop.tile<d0xf32>) -> ()
    }
    loop.store %sum, %y {map = affine_map<(d0, d1) -> (d0)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xf32>, memref<8xf32>) -> ()
    loop.end
  }
  func.return
}
