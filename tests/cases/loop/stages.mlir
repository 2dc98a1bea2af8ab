// test: pass loop_to_gpu
// tolerance: bits

// The same in stages of 4 terms, two of which are copied ahead: both factors lie in scratch memory as they do in theirs.
func.func @f(%x: memref<7x11xf32>, %y: memref<11x21xf32>, %z: memref<7x21xf32>) {
  loop.kernel {symbols = [], domain = [7, 21, 11], iterator_types = ["parallel", "parallel", "reduction"], schedule = #loop.schedule<tile = [2, 4, 4], vector = 1, lanes = 2, tiles_per_cta = 8, threads_per_cta = [2, 4]>} {
    %0 = loop.full {value = 0.0 : f32} : () -> !loop.tile<d0xd1xf32>
    %1 = loop.for %0 {dim = 2, stages = 3} : !loop.tile<d0xd1xf32> {
    ^bb0(%sum: !loop.tile<d0xd1xf32>):
      %rows = loop.scratch : !loop.scratch<d0xd2xf32>
      %columns = loop.scratch : !loop.scratch<d2xd1xf32>
      loop.pack %rows : (!loop.scratch<d0xd2xf32>) -> () {
        %2 = loop.load %x {map = affine_map<(d0, d1, d2) -> (d0, d2)>, operandSegmentSizes = [1, 0, 0]} : (memref<7x11xf32>) -> !loop.tile<d0xd2xf32>
        loop.yield %2 : (!loop.tile<d0xd2xf32>) -> ()
      }
      loop.pack %columns : (!loop.scratch<d2xd1xf32>) -> () {
        %3 = loop.load %y {map = affine_map<(d0, d1, d2) -> (d2, d1)>, operandSegmentSizes = [1, 0, 0]} : (memref<11x21xf32>) -> !loop.tile<d1xd2xf32>
        loop.yield %3 : (!loop.tile<d1xd2xf32>) -> ()
      }
      %4 = loop.for %sum {dim = 2, size = 2} : !loop.tile<d0xd1xf32> {
      ^bb1(%acc: !loop.tile<d0xd1xf32>):
        %5 = loop.load_scratch %rows : (!loop.scratch<d0xd2xf32>) -> !loop.tile<d0xd2xf32>
        %6 = loop.load_scratch %columns : (!loop.scratch<d2xd1xf32>) -> !loop.tile<d1xd2xf32>
        %7 = loop.contract %acc, %5, %6 {dim = 2} : (!loop.tile<d0xd1xf32>, !loop.tile<d0xd2xf32>, !loop.tile<d1xd2xf32>) -> !loop.tile<d0xd1xf32>
        loop.yield %7 : (!loop.tile<d0xd1xf32>) -> ()
      }
      loop.yield %4 : (!loop.tile<d0xd1xf32>) -> ()
    }
    loop.store %1, %z {map = affine_map<(d0, d1, d2) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]} : (!loop.tile<d0xd1xf32>, memref<7x21xf32>) -> ()
    loop.end
  }
  func.return
}
// CHECK: memref<96xf32, #gpu.address_space<workgroup>>
// CHECK: nvgpu.device_async_copy
// CHECK: nvgpu.device_async_create_group
// CHECK: scf.for
// CHECK: nvgpu.device_async_wait {{.*}}numGroups = 1
// CHECK: gpu.barrier
// CHECK: nvgpu.device_async_copy
