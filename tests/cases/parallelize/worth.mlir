// test: pass fix_numerics fuse bufferize tensor_to_loop coalesce_dimensions vectorize{machine=vector_bits:128;vector_registers:16} parallelize{worth=100}
// tolerance: 1e-4
// sizes: B=5 N=70

// 16 points a block, 4 bytes read and written each, one operation: 2.56 ns
func.func @small(%x: tensor<640xf32>) -> tensor<640xf32> {
  %0 = tensor.abs %x : tensor<640xf32>
  func.return %0 : tensor<640xf32>
}
// CHECK-NOT: parallelize
// -----
func.func @large(%x: tensor<2000xf32>) -> tensor<2000xf32> {
  %0 = tensor.abs %x : tensor<2000xf32>
  func.return %0 : tensor<2000xf32>
}
// CHECK: thread_dims = 1, grain_size = {{\d+}}, steps = {{.*}}parallelize(thread_dims=1, grain_size={{\d+}})"]>, label = "abs"
// -----
// how long a row takes is not known
func.func @rows(%x: tensor<BxNxf32>) -> tensor<Bxf32> {
  %0 = tensor.reduce_max %x {axes = [1]} : (tensor<BxNxf32>) -> tensor<Bxf32>
  func.return %0 : tensor<Bxf32>
}
// CHECK: thread_dims = 1, grain_size = "{{.*}}floordiv{{.*}}"
// -----
// one value that is stored in all elements is written as often
func.func @filled(%y: tensor<1x64xf32>) -> tensor<400x64xf32> {
  %i = tensor.constant dense<[3]> : tensor<1xi64>
  %0 = tensor.full 0.0 : tensor<400x64xf32>
  %1 = tensor.scatter %0, %i, %y {axis = 0} : (tensor<400x64xf32>, tensor<1xi64>, tensor<1x64xf32>) -> tensor<400x64xf32>
  func.return %1 : tensor<400x64xf32>
}
// CHECK: domain = [64, 400, 1]
// CHECK-SAME: parallelize(thread_dims=1, grain_size=1)
