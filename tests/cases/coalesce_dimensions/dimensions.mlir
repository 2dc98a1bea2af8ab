// test: pass coalesce_dimensions
// tolerance: bits

// two dimensions that every buffer has whole and side by side are one
func.func @legal(%x: memref<4x5xf32>, %y: memref<4x5xf32>) {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 1]>} {
    %0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<4x5xf32>) -> !loop.tile<d0xd1xf32>
    loop.store %0, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<4x5xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: loop.kernel {symbols = [], domain = [20], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1]
// CHECK: loop.load %{{\d+}} {map = affine_map<(d0) -> (d0)>
// -----
// a symbolic outer size is no obstacle
func.func @outer(%x: memref<?x5xf32>, %y: memref<?x5xf32>) {
  %c0 = arith.constant 0 : index
  %B = memref.dim %x, %c0 : memref<?x5xf32>
  loop.kernel %B {symbols = ["B"], domain = ["B", 5], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 1]>} : (index) -> () {
    %0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<?x5xf32>) -> !loop.tile<d0xd1xf32>
    loop.store %0, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<?x5xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: domain = ["5*B"], iterator_types = ["parallel"]
// -----
// a symbolic inner size is: the buffer's type does not say that it is as wide as the domain
func.func @inner(%x: memref<4x?xf32>, %y: memref<4x?xf32>) {
  %c1 = arith.constant 1 : index
  %B = memref.dim %x, %c1 : memref<4x?xf32>
  loop.kernel %B {symbols = ["B"], domain = [4, "B"], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 1]>} : (index) -> () {
    %0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<4x?xf32>) -> !loop.tile<d0xd1xf32>
    loop.store %0, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<4x?xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: domain = [4, "B"], iterator_types = ["parallel", "parallel"]
// -----
// nor may a buffer be wider than the domain
func.func @wider(%x: memref<4x6xf32>, %y: memref<4x5xf32>) {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 1]>} {
    %0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<4x6xf32>) -> !loop.tile<d0xd1xf32>
    loop.store %0, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<4x5xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: domain = [4, 5], iterator_types = ["parallel", "parallel"]
// -----
// a row that is read for every d0 keeps d1 apart, and so does one number per row; the others merge
func.func @some(%x: memref<3x4x5xf32>, %r: memref<3xf32>, %y: memref<3x4x5xf32>) {
  loop.kernel {symbols = [], domain = [3, 4, 5], iterator_types = ["parallel", "parallel", "parallel"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<3x4x5xf32>) -> !loop.tile<d0xd1xd2xf32>
    %1 = loop.load %r {map = affine_map<(d0, d1, d2) -> (d0)>, operandSegmentSizes = [1, 0, 0]} : (memref<3xf32>) -> !loop.tile<d0xf32>
    %2 = loop.map %0, %1 : (!loop.tile<d0xd1xd2xf32>, !loop.tile<d0xf32>) -> !loop.tile<d0xd1xd2xf32> {
    ^bb0(%a: f32, %b: f32):
      %3 = arith.addf %a, %b : f32
      loop.yield %3 : (f32) -> ()
    }
    loop.store %2, %y {map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xd2xf32>, memref<3x4x5xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: domain = [3, 20], iterator_types = ["parallel", "parallel"]
// CHECK: loop.load %{{\d+}} {map = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: loop.load %r {map = affine_map<(d0, d1) -> (d0)>
// -----
// a kernel that has a schedule keeps its dimensions
func.func @scheduled(%x: memref<4x5xf32>, %y: memref<4x5xf32>) {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 1], steps = ["by hand"]>} {
    %0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<4x5xf32>) -> !loop.tile<d0xd1xf32>
    loop.store %0, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<4x5xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: domain = [4, 5], iterator_types = ["parallel", "parallel"]
// -----
// scratch memory follows the dimensions of its tiles
func.func @scratch(%x: memref<3x4x5xf32>, %y: memref<3x4x5xf32>) {
  loop.kernel {symbols = [], domain = [3, 4, 5], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %buffer = loop.scratch : !loop.scratch<d2xd0xd1xf32>
    loop.for {dim = 2} {
      %0 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<3x4x5xf32>) -> !loop.tile<d0xd1xd2xf32>
      loop.store_scratch %0, %buffer : (!loop.tile<d0xd1xd2xf32>, !loop.scratch<d2xd0xd1xf32>) -> ()
      loop.yield
    }
    loop.for {dim = 2} {
      %1 = loop.load_scratch %buffer : (!loop.scratch<d2xd0xd1xf32>) -> !loop.tile<d0xd1xd2xf32>
      loop.store %1, %y {map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xd2xf32>, memref<3x4x5xf32>) -> ()
      loop.yield
    }
    loop.end
  }
  func.return
}
// CHECK: domain = [12, 5], iterator_types = ["parallel", "reduction"]
// CHECK: loop.scratch : () -> !loop.scratch<d1xd0xf32>
// -----
// a schedule that has been chosen stays as it is
func.func @chosen(%x: memref<4x5xf32>, %y: memref<4x5xf32>) {
  loop.kernel {symbols = [], domain = [4, 5], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 1], thread_dims = 1, grain_size = 2>} {
    %0 = loop.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<4x5xf32>) -> !loop.tile<d0xd1xf32>
    loop.store %0, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<4x5xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: domain = [4, 5], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [1, 1], thread_dims = 1, grain_size = 2>
// -----
// a word of two elements is coalesced with its neighbours in memory, so that they fill vectors: what is read is gathered
func.func @words(%x: memref<16x8xf32>, %y: memref<4x16x2xf32>) {
  loop.kernel {symbols = [], domain = [4, 16, 2], iterator_types = ["parallel", "parallel", "parallel"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d1, 2*d0 + d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<16x8xf32>) -> !loop.tile<d0xd1xd2xf32>
    loop.store %0, %y {map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xd2xf32>, memref<4x16x2xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: domain = [4, 32]
// CHECK: loop.load {{.*}} affine_map<(d0, d1) -> (d1 floordiv 2, (d1 mod 2) + 2*d0)>
// -----
// the elements of a window are added as they were
func.func @pooled(%x: memref<6x4xf32>, %y: memref<3x2xf32>) {
  loop.kernel {symbols = [], domain = [3, 2, 2], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xd1xf32>
    %1 = loop.for %0 {dim = 2} : !loop.tile<d0xd1xf32> {
    ^bb0(%acc: !loop.tile<d0xd1xf32>):
      %2 = loop.load %x {map = affine_map<(d0, d1, d2) -> (2*d0 + d2, 2*d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<6x4xf32>) -> !loop.tile<d0xd1xd2xf32>
      %3 = loop.fold %acc, %2 {dim = 2, kind = "add"} : (!loop.tile<d0xd1xf32>, !loop.tile<d0xd1xd2xf32>) -> !loop.tile<d0xd1xf32>
      loop.yield %3 : (!loop.tile<d0xd1xf32>) -> ()
    }
    loop.store %1, %y {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<3x2xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: domain = [3, 2, 2]
