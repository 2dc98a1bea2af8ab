// test: pass fix_numerics fuse bufferize tensor_to_loop coalesce_dimensions vectorize
// tolerance: 1e-4
// sizes: B=5

// the coalesced dimension in four registers of 512 bits
func.func @pointwise(%x: tensor<Bx40xf32>) -> tensor<Bx40xf32> {
  %0 = tensor.sqrt %x : tensor<Bx40xf32>
  func.return %0 : tensor<Bx40xf32>
}
// CHECK: domain = ["40*B"], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [64], vector = 0, steps = ["tile(dim=0, size=64, vector=True)"]>, label = "sqrt"
// -----
// a short dimension takes no more lanes than it fills
func.func @short(%x: tensor<5xf32>, %y: tensor<20xf64>) -> (tensor<5xf32>, tensor<20xf64>) {
  %0 = tensor.sqrt %x : tensor<5xf32>
  %1 = tensor.sqrt %y : tensor<20xf64>
  func.return %0, %1 : tensor<5xf32>, tensor<20xf64>
}
// CHECK: domain = [5], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [16]
// CHECK: domain = [20], iterator_types = ["parallel"], schedule = #loop.schedule<tile = [32]
// what is written along one dimension and read along another goes in squares that are transposed in registers
func.func @transposed(%x: tensor<50x70xf32>, %b: tensor<50xf32>) -> tensor<70x50xf32> {
  %0 = tensor.transpose %x {perm = [1, 0]} : (tensor<50x70xf32>) -> tensor<70x50xf32>
  %1 = tensor.add %0, %b : (tensor<70x50xf32>, tensor<50xf32>) -> tensor<70x50xf32>
  func.return %1 : tensor<70x50xf32>
}
// CHECK: domain = [70, 50], iterator_types = ["parallel", "parallel"], schedule = #loop.schedule<tile = [16, 16], vector = 1
// -----
// a contraction keeps rows x vectors of columns; its sum is no vector dimension
func.func @product(%x: tensor<Bx7xf32>, %y: tensor<7x70xf32>) -> tensor<Bx70xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<Bx7xf32>, tensor<7x70xf32>) -> tensor<Bx70xf32>
  func.return %0 : tensor<Bx70xf32>
}
// CHECK: domain = ["B", 70, 7], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [8, 48, 1], vector = 1, lanes = 16
// -----
// a reduction by lanes comes with its vector dimension, a chain runs across vectors of results
func.func @sums(%x: tensor<5x70xf32>) -> (tensor<5xf32>, tensor<70xf32>) {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<5x70xf32>) -> tensor<5xf32>
  %1 = tensor.reduce_sum %x {axes = [0]} : (tensor<5x70xf32>) -> tensor<70xf32>
  func.return %0, %1 : tensor<5xf32>, tensor<70xf32>
}
// CHECK: domain = [5, 70], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [1, 64], vector = 1
// CHECK: domain = [70, 5], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [64, 1], vector = 0
// -----
// few lanes of rows that are not contiguous are vectors along what is
func.func @channels(%x: tensor<14x14x70xf32>) -> tensor<70xf32> {
  %0 = tensor.transpose %x {perm = [2, 0, 1]} : (tensor<14x14x70xf32>) -> tensor<70x14x14xf32>
  %1 = tensor.reduce_sum %0 {axes = [1, 2]} : (tensor<70x14x14xf32>) -> tensor<70xf32>
  func.return %1 : tensor<70xf32>
}
// CHECK: domain = [70, 196], iterator_types = ["parallel", "reduction"], schedule = #loop.schedule<tile = [16, 16], vector = 0
// -----
// the updates of a row come one by one, unless neighbours in memory get theirs from the same row of updates
func.func @updates(%x: tensor<8x40xf32>, %i: tensor<8x30xi64>, %u: tensor<8x30xf32>) -> tensor<8x40xf32> {
  %0 = tensor.constant dense<3> : tensor<8x30xi64>
  %1 = tensor.minimum %i, %0 : tensor<8x30xi64>
  %2 = tensor.maximum %1, %0 : tensor<8x30xi64>
  %3 = tensor.scatter_along %x, %2, %u {axis = 1} : (tensor<8x40xf32>, tensor<8x30xi64>, tensor<8x30xf32>) -> tensor<8x40xf32>
  func.return %3 : tensor<8x40xf32>
}
// CHECK: domain = [8, 40, 30], iterator_types = ["parallel", "reduction", "reduction"], schedule = #loop.schedule<tile = [1, 1, 1]>
// -----
// a factor that lies across the vectors is packed for many rows: squares of it are transposed in registers
func.func @linear(%x: tensor<Bx24xf32>, %w: tensor<20x24xf32>) -> tensor<Bx20xf32> {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 1]]} : (tensor<Bx24xf32>, tensor<20x24xf32>) -> tensor<Bx20xf32>
  func.return %0 : tensor<Bx20xf32>
}
// CHECK: "strip_mine(dim=0, size={{\d+}})", "pack(side=rhs, vector=1, size=16)"
// CHECK: loop.scratch : () -> !loop.scratch<d2xd1xf32>
// CHECK-NEXT: loop.for {dim = 2, size = 16}
// CHECK: loop.store_scratch
// CHECK: loop.for {dim = 0, size =
// CHECK: loop.load_scratch
// -----
// a factor of one row is read once: transposed, not packed
func.func @row(%x: tensor<1x24xf32>, %w: tensor<20x24xf32>) -> tensor<1x20xf32> {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 1]]} : (tensor<1x24xf32>, tensor<20x24xf32>) -> tensor<1x20xf32>
  func.return %0 : tensor<1x20xf32>
}
// CHECK: schedule = #loop.schedule<tile = [1, 16, 16], vector = 1
// CHECK-NOT: loop.scratch
// -----
// a long sum goes in parts; what comes after it is computed once, in the end
func.func @long(%x: tensor<24x800xf32>, %y: tensor<800x96xf32>, %b: tensor<96xf32>) -> tensor<24x96xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<24x800xf32>, tensor<800x96xf32>) -> tensor<24x96xf32>
  %1 = tensor.add %0, %b : (tensor<24x96xf32>, tensor<96xf32>) -> tensor<24x96xf32>
  func.return %1 : tensor<24x96xf32>
}
// CHECK: "spill_accumulator()"
// CHECK: loop.store_scratch
// CHECK: loop.for {dim = 2} {
// CHECK: loop.contract
// CHECK: loop.for {dim = 0, size =
// CHECK-NEXT: loop.load_scratch
// CHECK: loop.load %b
// CHECK: loop.store
// -----
// the left factor, read down its columns by many panels, is packed along its own rows
func.func @gradient(%x: tensor<900x80xf32>, %g: tensor<900x96xf32>) -> tensor<80x96xf32> {
  %0 = tensor.dot_general %x, %g {batch = [], contract = [[0, 0]]} : (tensor<900x80xf32>, tensor<900x96xf32>) -> tensor<80x96xf32>
  func.return %0 : tensor<80x96xf32>
}
// CHECK: "pack(side=lhs, vector=0, size=16)"
// CHECK: loop.scratch : () -> !loop.scratch<d2xd0xf32>
// CHECK-NEXT: loop.for {dim = 2}
// CHECK-NEXT: loop.for {dim = 0, size = 16, vector = true}
// -----
// the nine elements of each window are unrolled, in tiles of rows whose windows overlap
func.func @windows(%x: tensor<2x12x20xf32>, %w: tensor<2x3x3xf32>) -> tensor<2x10x18xf32> {
  %0 = tensor.windows %x {axis = 1, size = 3, stride = 1, dilation = 1} : (tensor<2x12x20xf32>) -> tensor<2x10x3x20xf32>
  %1 = tensor.windows %0 {axis = 3, size = 3, stride = 1, dilation = 1} : (tensor<2x10x3x20xf32>) -> tensor<2x10x3x18x3xf32>
  %2 = tensor.reshape %w : tensor<2x3x3xf32> to tensor<2x1x3x1x3xf32>
  %3 = tensor.mul %1, %2 : (tensor<2x10x3x18x3xf32>, tensor<2x1x3x1x3xf32>) -> tensor<2x10x3x18x3xf32>
  %4 = tensor.reduce_sum %3 {axes = [2, 4], order = "chain"} : (tensor<2x10x3x18x3xf32>) -> tensor<2x10x18xf32>
  func.return %4 : tensor<2x10x18xf32>
}
// CHECK: domain = [2, 10, 18, 9], {{.*}}schedule = #loop.schedule<tile = [1, 4, 32, 9], vector = 2, steps = ["unroll(dim=3, size=9)", "tile(dim=1, size=4)", "tile(dim=2, size=32, vector=True)"]>
// -----
// columns that fill a panel are masked in the last one: the same code for all panels
func.func @columns_of_a_panel(%x: tensor<40x70xf32>, %y: tensor<70x3001xf32>) -> tensor<40x3001xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<40x70xf32>, tensor<70x3001xf32>) -> tensor<40x3001xf32>
  func.return %0 : tensor<40x3001xf32>
}
// CHECK: vector = 1, lanes = 16, masked = [1], steps = ["tile(dim=1, size=48, vector=True, lanes=16, masked=True)"
// -----
// a factor in panels is read from them, and not packed
func.func @panels(%x: tensor<40x70xf32>, %w: tensor<7x70x16xf32>) -> tensor<40x100xf32> {
  %0 = tensor.unpack %w {axis = 1, size = 100} : (tensor<7x70x16xf32>) -> tensor<70x100xf32>
  %1 = tensor.dot_general %x, %0 {batch = [], contract = [[1, 0]]} : (tensor<40x70xf32>, tensor<70x100xf32>) -> tensor<40x100xf32>
  func.return %1 : tensor<40x100xf32>
}
// CHECK: domain = [40, 100, 70]
// CHECK-SAME: vector = 1, lanes = 16
// CHECK-NOT: pack(side=rhs
// CHECK: loop.contract
// -----
// one row reads a matrix of 16 bits as it lies in memory
func.func @row(%x: tensor<1x64xf32>, %w: tensor<40x64xf16>) -> tensor<1x40xf32> {
  %0 = tensor.cast %w : tensor<40x64xf16> to tensor<40x64xf32>
  %1 = tensor.dot_general %x, %0 {batch = [], contract = [[1, 1]]} : (tensor<1x64xf32>, tensor<40x64xf32>) -> tensor<1x40xf32>
  func.return %1 : tensor<1x40xf32>
}
// CHECK: domain = [1, 40, 64], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [1, 1, 32], vector = 2, lanes = 16, steps = ["tile(dim=1, size=1)"]>
// -----
// several rows read several of its rows at a time, of which the next ones are prefetched, a line of cache each
func.func @rows(%x: tensor<16x64xf32>, %w: tensor<40x64xf16>) -> tensor<16x40xf32> {
  %0 = tensor.cast %w : tensor<40x64xf16> to tensor<40x64xf32>
  %1 = tensor.dot_general %x, %0 {batch = [], contract = [[1, 1]]} : (tensor<16x64xf32>, tensor<40x64xf32>) -> tensor<16x40xf32>
  func.return %1 : tensor<16x40xf32>
}
// CHECK: "tile(dim=1, size=3)"
// CHECK-SAME: "prefetch_tiles(dim=1
// CHECK-NOT: loop.scratch
// CHECK: loop.prefetch
// CHECK: loop.prefetch
// CHECK: loop.prefetch
// CHECK-NOT: loop.prefetch
// -----
// indices of 64 bits that are the same for all lanes take no vectors: rows of 64 lie in four registers
func.func @scattered(%x: tensor<50x64xf32>, %y: tensor<3x64xf32>) -> tensor<50x64xf32> {
  %i = tensor.constant dense<[3, 0, 3]> : tensor<3xi64>
  %0 = tensor.scatter %x, %i, %y {axis = 0} : (tensor<50x64xf32>, tensor<3xi64>, tensor<3x64xf32>) -> tensor<50x64xf32>
  func.return %0 : tensor<50x64xf32>
}
// CHECK: schedule = #loop.schedule<tile = [64, 1, 1], vector = 0
