// test: verify

func.func @f() {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1]>} { // error: error[MLC0150]: loop.kernel: schedule: tile = [1] has 1 sizes, the domain has 2 dimensions
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [0]>} { // error: error[MLC0150]: loop.kernel: schedule: tile = [0]: tile sizes are positive
    loop.end
  }
  func.return
}
// -----
func.func @f(%n: index) {
  loop.kernel %n {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} : (index) -> () { // error: error[MLC0150]: loop.kernel: one index operand per symbol
    loop.end
  }
  func.return
}
// -----
func.func @f(%n: index) {
  loop.kernel %n {symbols = ["B"], domain = ["B + C"], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} : (index) -> () { // error: error[MLC0150]: loop.kernel: the domain names C
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.load %x {map = affine_map<(d0) -> (d0, 0)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<d0xf32> // error: error[MLC0151]: loop.load: 2 expressions for a buffer of 1 dimensions
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.load %x {map = affine_map<(d0, d1, d2, d3) -> (d3)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<d3xf32> // error: error[MLC0155]: loop.load: affine_map<(d0, d1, d2, d3) -> (d3)> takes 4 dimensions, the domain of the kernel has 1
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.load %x {map = affine_map<(d0)[N] -> (N)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<f32> // error: error[MLC0155]: loop.load: N is not a symbol of the kernel
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.load %x {map = affine_map<(d0, t0) -> (t0)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<f32> // error: error[MLC0155]: loop.load: affine_map<(d0, t0) -> (t0)> takes 1 index tiles, but there are 0
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>, %y: memref<4xi32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.load %x {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<d0xf32>
    loop.store %0, %y {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xf32>, memref<4xi32>) -> () // error: error[MLC0151]: loop.store: !loop.tile<d0xf32> does not fit a buffer memref<4xi32>
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1]>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xf32>
    %1 = loop.for %0 {dim = 1} : !loop.tile<d0xf32> { // error: error[MLC0152]: loop.for: initial values
    ^bb0(%a: !loop.tile<d0xf32>):
      %2 = loop.full {value = 0.0 : f32} : () -> !loop.tile<f32>
      loop.yield %2 : (!loop.tile<f32>) -> ()
    }
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1]>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xf32>
    %1 = loop.reduce %0 {dim = 1, kind = "add"} : (!loop.tile<d0xf32>) -> !loop.tile<d0xf32> // error: error[MLC0151]: loop.reduce: !loop.tile<d0xf32> does not span d1
    loop.end
  }
  func.return
}
// -----
// lanes are halved until one is left
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 6], vector = 1>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xd1xf32>
    %1 = loop.reduce %0 {dim = 1, kind = "add"} : (!loop.tile<d0xd1xf32>) -> !loop.tile<d0xf32> // error: error[MLC0151]: loop.reduce: blocks of 6 points of d1 are not a power of two
    loop.end
  }
  func.return
}
// -----
// a loop within a block has blocks that divide it
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 4]>} {
    loop.for {dim = 1, size = 3} { // error: error[MLC0152]: loop.for: blocks of 3 do not divide the enclosing block of 4
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
// what is carried along a dimension lies in its block
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 64], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 16], vector = 1>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d1xf32>
    %1 = loop.for %0 {dim = 1, size = 8} : !loop.tile<d1xf32> { // error: error[MLC0152]: loop.for: carries tiles along d1: their size is the kernel's, not 8
    ^bb0(%a: !loop.tile<d1xf32>):
      loop.yield %a : (!loop.tile<d1xf32>) -> ()
    }
    loop.end
  }
  func.return
}
// -----
// what runs give is combined, each tile by its kind
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 64], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1]>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xf32>
    %1 = loop.for %0 {dim = 1, run = 8} : !loop.tile<d0xf32> { // error: error[MLC0152]: loop.for: runs of 8 blocks take a kind per tile
    ^bb0(%a: !loop.tile<d0xf32>):
      loop.yield %a : (!loop.tile<d0xf32>) -> ()
    }
    loop.end
  }
  func.return
}
// -----
// a value lies in the vectors of one dimension
func.func @f(%x: memref<4x8xf32>) {
  loop.kernel {symbols = [], domain = [4, 8], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [4, 8], vector = 1>} {
    loop.for {dim = 0, size = 4, vector = true} { // error: error[MLC0152]: loop.for: vectors along d0 cannot be mixed with those of the kernel
      %0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<4x8xf32>) -> !loop.tile<d0xd1xf32>
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 64], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1], thread_dims = 2>} { // error: error[MLC0150]: loop.kernel: schedule: thread_dims = 2, but 1 dimensions are parallel
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.scratch : !loop.scratch<d0xi1> // error: error[MLC0151]: loop.scratch: !loop.scratch<d0xi1> is not scratch memory; store i1 values as i8
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 1]>} {
    %0 = loop.scratch : !loop.scratch<d0xf32>
    %1 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d1xf32>
    loop.store_scratch %1, %0 : (!loop.tile<d1xf32>, !loop.scratch<d0xf32>) -> () // error: error[MLC0151]: loop.store_scratch: !loop.tile<d1xf32> does not fit !loop.scratch<d0xf32>
    loop.end
  }
  func.return
}
// -----
// what is kept for all of a dimension is recalled inside of its loop
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1]>} {
    %0 = loop.scratch : !loop.scratch<d1xf32>
    %1 = loop.load_scratch %0 : (!loop.scratch<d1xf32>) -> !loop.tile<d1xf32> // error: error[MLC0151]: loop.load_scratch: d1 has no coordinate outside of a loop.for
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: !loop.tile<f32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.load_scratch %x : (!loop.tile<f32>) -> !loop.tile<f32> // error: error[MLC0151]: loop.load_scratch: !loop.tile<f32> is not scratch memory
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.index {map = affine_map<(d0, t0) -> (t0)>} : () -> !loop.tile<index> // error: error[MLC0155]: loop.index: affine_map<(d0, t0) -> (t0)> takes 1 index tiles, but there are 0
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: f32) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.fold %x, %x {dim = 0, kind = "add"} : f32 // error: error[MLC0151]: loop.fold: f32 is not a tile
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>) {
  %0 = loop.load %x {map = affine_map<() -> (0)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<f32> // error: error[MLC0150]: loop.load: is outside of a kernel
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.full {value = 300} : () -> !loop.tile<d0xi8> // error: error[MLC0151]: loop.full: 300 is not a value of i8
    loop.end
  }
  func.return
}
// -----
func.func @f(%n: index) {
  loop.kernel %n {symbols = ["d0"], domain = ["d0"], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} : (index) -> () { // error: error[MLC0150]: loop.kernel: d0 names a coordinate, an index tile or another size
    loop.end
  }
  func.return
}
// -----
// a dimension for loops has a coordinate only inside of its loop
func.func @f(%x: memref<4x8xf32>) {
  loop.kernel {symbols = [], domain = [4, 8], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1]>} {
    %0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<4x8xf32>) -> !loop.tile<d0xd1xf32> // error: error[MLC0151]: loop.load: d1 has no coordinate outside of a loop.for
    loop.end
  }
  func.return
}
// -----
// what a map does to elements is all it does
func.func @f(%x: memref<4xf32>, %i: index) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.load %x {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<d0xf32>
    %1 = loop.map %0 : (!loop.tile<d0xf32>) -> !loop.tile<d0xf32> {
    ^bb0(%a: f32):
      memref.store %a, %x[%i] : memref<4xf32> // error: error[MLC0151]: memref.store: is not arithmetic on elements of the map's tiles
      loop.yield %a : f32
    }
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>, %i: index, %a: f32) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    memref.store %a, %x[%i] : memref<4xf32> // error: error[MLC0150]: memref.store: is not an operation on tiles
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["reduction"], schedule = #loop.schedule<tile = [1]>} {
    loop.for {dim = 0} {
      %0 = loop.load %x {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<d0xf32>
      %1 = loop.scan %0, %0 {dim = 0, kind = "add"} : !loop.tile<d0xf32> // error: error[MLC0151]: loop.scan: !loop.tile<d0xf32> does not accumulate
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1], tiles_per_cta = 4, threads_per_cta = [4]>} {
    %0 = loop.load %x {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<d0xf32>
    %1 = loop.scratch : !loop.scratch<d0xf32>
    loop.pack %1 : (!loop.scratch<d0xf32>) -> () {
      %2 = loop.map %0 : (!loop.tile<d0xf32>) -> !loop.tile<d0xf32> { // error: error[MLC0151]: loop.map: uses !loop.tile<d0xf32> of points that belong to another thread
      ^bb0(%a: f32):
        loop.yield %a : (f32) -> ()
      }
      loop.yield %2 : (!loop.tile<d0xf32>) -> ()
    }
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %1 = loop.scratch : !loop.scratch<d0xf32>
    loop.pack %1 : (!loop.scratch<d0xf32>) -> () {
      %3 = loop.load %x {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<d0xf32>
      loop.store %3, %x {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xf32>, memref<4xf32>) -> () // error: error[MLC0151]: loop.store: is not pointwise, as operations within loop.pack must be
      loop.yield %3 : (!loop.tile<d0xf32>) -> ()
    }
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %1 = loop.scratch : !loop.scratch<d0xf32>
    loop.pack %1 : (!loop.scratch<d0xf32>) -> () { // error: error[MLC0151]: loop.pack: !loop.tile<d0xindex> does not fit !loop.scratch<d0xf32>
      %2 = loop.index {map = affine_map<(d0) -> (d0)>} : () -> !loop.tile<d0xindex>
      loop.yield %2 : (!loop.tile<d0xindex>) -> ()
    }
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 4], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 1], tiles_per_cta = 8, threads_per_cta = [2, 2]>} { // error: error[MLC0150]: loop.kernel: schedule: threads_per_cta = [2, 2] does not arrange 8 threads along 2 parallel dimensions
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>, %y: memref<4xbf16>) {
  loop.kernel {symbols = [], domain = [4, 16], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 16]>} {
    loop.for {dim = 1} {
      %0 = loop.load %x {map = affine_map<(d0, d1) -> (d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<d0xf32>
      %y0 = loop.load %y {map = affine_map<(d0, d1) -> (d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xbf16>) -> !loop.tile<d0xbf16>
      %1 = loop.mma %0, %0, %y0 {dim = 1} : (!loop.tile<d0xf32>, !loop.tile<d0xf32>, !loop.tile<d0xbf16>) -> !loop.tile<d0xf32> // error: error[MLC0151]: loop.mma: !loop.tile<d0xf32> and !loop.tile<d0xbf16> are not both of bf16, of f16 or of f32
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [64, 64], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [2, 2], tiles_per_cta = 64, threads_per_cta = [8, 8], threads_per_warp = [4, 4]>} { // error: error[MLC0150]: loop.kernel: schedule: threads_per_warp = [4, 4] does not divide threads_per_cta = [8, 8] into warps
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [64, 64], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [2, 8], vector = 1, lanes = 4, tiles_per_cta = 64, threads_per_cta = [8, 8], epilogue_tile = 6>} { // error: error[MLC0150]: loop.kernel: schedule: epilogue_tile = 6: vectors of 4 lanes that divide the tile along `vector`, of a CTA tile
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [64, 64], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [2, 8], vector = 1, tiles_per_cta = 64, threads_per_cta = [8, 8], epilogue_tile = 1>} { // error: error[MLC0150]: loop.kernel: schedule: epilogue_tile = 1: vectors of 8 lanes that divide the tile along `vector`, of a CTA tile
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [64, 64], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [2, 8], vector = 1, tiles_per_cta = 8, threads_per_cta = [8]>} { // error: error[MLC0150]: loop.kernel: schedule: vector = 1 is a reduction dimension, along which no CTA tile lies
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["reduction"], schedule = #loop.schedule<tile = [1]>} {
    loop.for {dim = 0, stages = 2} { // error: error[MLC0152]: loop.for: 2 stages need panels, or blocks that nested loops iterate over
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["reduction", "parallel"], schedule = #loop.schedule<tile = [1, 1]>} { // error: error[MLC0150]: loop.kernel: iterator_types = ['reduction', 'parallel'] does not fit the domain
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1, 1]>} { // error: error[MLC0150]: loop.kernel: iterator_types = ['parallel'] does not fit the domain
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1], vector = 1>} { // error: error[MLC0150]: loop.kernel: schedule: vector = 1 is neither one of 1 dimensions nor -1
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1], lanes = -4>} { // error: error[MLC0150]: loop.kernel: schedule: lanes = -4 is negative
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1], thread_dims = 1, grain_size = 0>} { // error: error[MLC0150]: loop.kernel: schedule: grain_size = 0 is not positive
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1], thread_dims = 1, grain_size = "B + 1">} { // error: error[MLC0150]: loop.kernel: schedule: grain_size = B + 1 names B, which is not a symbol of the kernel
    loop.end
  }
  func.return
}
// -----
// a block of no points is the kernel's error, also where a loop goes through it
func.func @f() {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [0]>} { // error: error[MLC0150]: loop.kernel: schedule: tile = [0]: tile sizes are positive
    loop.for {dim = 0} {
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1000000000]>} { // error: error[MLC0150]: loop.kernel: schedule: tile = [1000000000]: tile sizes are positive, and at most 65536
    loop.end
  }
  func.return
}
// -----
// parallel points are independent: how many of them a block has is no matter of what they compute
func.func @f(%x: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<f32>
    %1 = loop.for %0 {dim = 0} : !loop.tile<f32> { // error: error[MLC0152]: loop.for: carries tiles along d0, which is a parallel dimension
    ^bb0(%a: !loop.tile<f32>):
      loop.yield %a : (!loop.tile<f32>) -> ()
    }
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<f32>
    %1 = loop.load %x {map = affine_map<(d0) -> (d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<d0xf32>
    %2 = loop.fold %0, %1 {dim = 0, kind = "add"} : (!loop.tile<f32>, !loop.tile<d0xf32>) -> !loop.tile<f32> // error: error[MLC0151]: loop.fold: combines along d0, which is a parallel dimension
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 5], vector = 1, masked = [1]>} { // error: error[MLC0150]: loop.kernel: schedule: masked = [1]: only vectors of 1 parallel dimensions are masked
    loop.end
  }
  func.return
}
// -----
func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [3, 5], vector = 1, masked = [0]>} { // error: error[MLC0150]: loop.kernel: schedule: masked = [0], but there are accesses along d0 that are no vectors along d1
    %0 = loop.load %x {map = affine_map<(d0, d1) -> (d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<4xf32>) -> !loop.tile<d0xf32>
    loop.store %0, %y {map = affine_map<(d0, d1) -> (d0)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xf32>, memref<4xf32>) -> ()
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 256], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 64], vector = 1, groups_per_tile = 2, blocks_per_group = 4>} { // error: error[MLC0150]: loop.kernel: schedule: groups_per_tile = 2 needs lanes that are threads
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 256], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 64], ctas_at_once = -1>} { // error: error[MLC0150]: loop.kernel: schedule: groups_per_tile = 1, blocks_per_group = 0, ctas_at_once = -1
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 640], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 64], vector = 1, lanes = 1, tiles_per_cta = 1, groups_per_tile = 2, blocks_per_group = 4>} {
    %0 = loop.full {value = 0.0 : f32} : !loop.tile<d0xd1xf32>
    %1 = loop.for %0 {dim = 1, run = 2, kinds = ["add"]} : !loop.tile<d0xd1xf32> { // error: error[MLC0152]: loop.for: 2 groups of threads each take 4 blocks at a time, but a run has 2
    ^bb0(%a: !loop.tile<d0xd1xf32>):
      loop.yield %a : (!loop.tile<d0xd1xf32>) -> ()
    }
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 640, 3], iterator_types = ["parallel", "reduction", "reduction"], schedule = #loop.schedule<tile = [1, 64, 1], vector = 1, lanes = 1, tiles_per_cta = 1, groups_per_tile = 2, blocks_per_group = 4>} {
    loop.for {dim = 2} { // error: error[MLC0152]: loop.for: 2 groups of threads share the blocks of d1
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 640], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 64]>} {
    loop.for {dim = 1, unroll = 65} { // error: error[MLC0152]: loop.for: unroll = 65: up to 64 blocks
      loop.yield
    }
    loop.end
  }
  func.return
}
// -----
func.func @f(%n: index) {
  loop.kernel %n {symbols = ["N"], domain = [4, "N"], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 64], vector = 1, lanes = 1>} : (index) -> () {
    %0 = loop.scratch {registers = true} : !loop.scratch<d0xd1xf32> // error: error[MLC0151]: loop.scratch: a row in registers lies along the vector dimension, whose extent is known, not d1
    loop.end
  }
  func.return
}
// -----
func.func @f() {
  loop.kernel {symbols = [], domain = [4, 640], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 64], vector = 1, lanes = 1, tiles_per_cta = 4>} {
    %0 = loop.scratch {registers = true} : !loop.scratch<d0xd1xf32>
    loop.for {dim = 1} {
      %1 = loop.load_scratch %0 : (!loop.scratch<d0xd1xf32>) -> !loop.tile<d0xd1xf32> // error: error[MLC0151]: loop.load_scratch: accesses a row in registers outside of an unrolled loop over d1
      loop.yield
    }
    loop.end
  }
  func.return
}
