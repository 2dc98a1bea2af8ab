// test: pass fix_numerics{products=mma} fuse bufferize tensor_to_loop coalesce_dimensions distribute
// tolerance: 2e-2

// tensor cores: warps of 8 x 4 threads, 2 x 4 of them in a box; copies of two stages are under way while one is computed
func.func @product(%x: tensor<1024x16xbf16>, %y: tensor<16x2048xbf16>) -> tensor<1024x2048xbf16> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : (tensor<1024x16xbf16>, tensor<16x2048xbf16>) -> tensor<1024x2048xbf16>
  func.return %0 : tensor<1024x2048xbf16>
}
// CHECK: schedule = #loop.schedule<tile = [8, 8, 32], vector = 1, lanes = 2, tiles_per_cta = {{\d+}}, threads_per_cta = {{.*}}, threads_per_warp = [8, 4]
// CHECK-SAME: "stage(dim=2, size=32, unroll=16)", "promote_to_shared(side=lhs, last=2)", "promote_to_shared(side=rhs, last=1)", "pipeline(stages={{[2-4]}})"
// CHECK: !loop.scratch<d2xd1xbf16>
// CHECK: !loop.scratch<d0xd2xbf16>
// CHECK: loop.mma
// -----
// what is computed before it is shared is not copied ahead
func.func @computed(%x: tensor<32x16xbf16>, %y: tensor<16x32xbf16>) -> tensor<32x32xbf16> {
  %0 = tensor.neg %x : tensor<32x16xbf16>
  %1 = tensor.dot_general %0, %y {batch = [], contract = [[1, 0]]} : (tensor<32x16xbf16>, tensor<16x32xbf16>) -> tensor<32x32xbf16>
  func.return %1 : tensor<32x32xbf16>
}
// CHECK: threads_per_warp = [8, 4]
// CHECK-NOT: ahead
