// test: pass fix_numerics fuse bufferize tensor_to_loop coalesce_dimensions distribute
// tolerance: 1e-4
// sizes: B=5

// what lies side by side is read together, as far as rows hold multiples of it
func.func @pointwise(%x: tensor<6x42xf32>, %y: tensor<Bx40xf32>) -> (tensor<6x42xf32>, tensor<Bx40xf32>) {
  %0 = tensor.sqrt %x : tensor<6x42xf32>
  %1 = tensor.sqrt %y : tensor<Bx40xf32>
  func.return %0, %1 : tensor<6x42xf32>, tensor<Bx40xf32>
}
// CHECK: domain = [252], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [4], vector = 0, tiles_per_cta = 256
// CHECK: domain = ["40*B"], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [1], tiles_per_cta = 256
// -----
// a large product: 8 x 8 sums of a thread, boxes of 128 x 64, in stages of 16 terms; both factors are shared
func.func @product(%x: tensor<1024x24xf32>, %y: tensor<24x1024xf32>) -> tensor<1024x1024xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<1024x24xf32>, tensor<24x1024xf32>) -> tensor<1024x1024xf32>
  func.return %0 : tensor<1024x1024xf32>
}
// CHECK: schedule = #loop.schedule<tile = [8, 8, 16], vector = 1, lanes = 4, tiles_per_cta = 128, threads_per_cta = [16, 8]
// CHECK-SAME: "cta_tile(threads=[16, 8])", "tile_epilogue(size=4)", "stage(dim=2, size=16, unroll=4)", "promote_to_shared(side=lhs)", "promote_to_shared(side=rhs)"
// CHECK: loop.for {{.*}}dim = 2}
// CHECK-NEXT: ^bb
// CHECK-NEXT: loop.scratch : () -> !loop.scratch<d2xd1xf32>
// CHECK-NEXT: loop.scratch : () -> !loop.scratch<d2xd0xf32>
// CHECK-NEXT: loop.pack
// CHECK-NEXT: loop.load %x
// CHECK: loop.pack
// CHECK-NEXT: loop.load %y
// CHECK: loop.for {{.*}}dim = 2, size = 4}
// CHECK: loop.contract
// -----
// a sum in blocks goes through each of them in stages
func.func @long(%x: tensor<24x300xf32>, %y: tensor<300x40xf32>) -> tensor<24x40xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<24x300xf32>, tensor<300x40xf32>) -> tensor<24x40xf32>
  func.return %0 : tensor<24x40xf32>
}
// CHECK: schedule = #loop.schedule<tile = [1, 1, 256]
// CHECK: loop.for {{.*}}dim = 2}
// CHECK: loop.for {{.*}}dim = 2, size = 32}
// CHECK: loop.for {{.*}}dim = 2, size = 4}
// -----
// a small one has a thread for each sum
func.func @small(%x: tensor<13x21xf32>, %y: tensor<21x100xf32>) -> tensor<13x100xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<13x21xf32>, tensor<21x100xf32>) -> tensor<13x100xf32>
  func.return %0 : tensor<13x100xf32>
}
// CHECK: schedule = #loop.schedule<tile = [1, 1, 32], tiles_per_cta = 128, threads_per_cta = [16, 8]
// -----
// what fills no box, or adds up few terms, is not shared
func.func @tiny(%x: tensor<3x21xf32>, %y: tensor<21x5xf32>, %z: tensor<5x64xf32>) -> (tensor<3x5xf32>, tensor<3x64xf32>) {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<3x21xf32>, tensor<21x5xf32>) -> tensor<3x5xf32>
  %1 = tensor.dot_general %0, %z {batch = [], contract = [[1, 0]]} : (tensor<3x5xf32>, tensor<5x64xf32>) -> tensor<3x64xf32>
  func.return %0, %1 : tensor<3x5xf32>, tensor<3x64xf32>
}
// CHECK-NOT: panel
// CHECK: loop.end
// CHECK-NOT: panel
// -----
// of a product with one column, a factor that lies across the threads is read in the order of memory too
func.func @vector(%x: tensor<Bx64xf32>, %y: tensor<64xf32>) -> tensor<Bxf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<Bx64xf32>, tensor<64xf32>) -> tensor<Bxf32>
  func.return %0 : tensor<Bxf32>
}
// CHECK: threads_per_cta = [64]
// CHECK: loop.pack
// CHECK-NEXT: loop.load %x
// -----
// sums of 64 bits take two registers each
func.func @double(%x: tensor<1024x8xf64>, %y: tensor<8x1024xf64>) -> tensor<1024x1024xf64> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<1024x8xf64>, tensor<8x1024xf64>) -> tensor<1024x1024xf64>
  func.return %0 : tensor<1024x1024xf64>
}
// CHECK: schedule = #loop.schedule<tile = [4, 8, 16], vector = 1, lanes = 2
