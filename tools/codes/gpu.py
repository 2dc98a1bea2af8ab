"""Codes of kernels for GPUs, as text and as threads."""

TEXT = r'''
MLC0180 A kernel, its launch, or an operation of its threads is ill-formed.
example mlir:
    gpu.module @kernels {
      gpu.func @k() kernel attributes {known_block_size = [32, 0, 1]} {
        gpu.return
      }
    }
fix: give the kernel what the message asks for; `mlc ops gpu` describes the operations.

MLC0181 Threads of a kernel read and write the same memory in no order, or read what no thread wrote.
The interpreter follows every access; hardware would give one result or another.
example text:
    error[MLC0181]: memref.load: thread 0 of block 0 reads what thread 63 of block 0 writes: no barrier orders the two
    accesses to shared memory
fix: put a gpu.barrier between the two accesses if the threads are of one block; if they are not, make it two launches.

MLC0182 Some threads of a block do not come to a barrier that others wait at.
example text:
    error[MLC0182]: gpu.barrier: thread 4 of block 0 does not come to this barrier, which others of its block wait at
fix: move the barrier out of conditions and loops that go differently for threads of one block.

MLC0183 A shuffle does not have all threads of its warp, or an impossible width.
example text:
    error[MLC0183]: gpu.shuffle: thread 4 of block 0 does not take part, which others of its warp do
fix: move the shuffle out of conditions that go differently for threads of one warp; widths are powers of two up to 32.

MLC0547 The width of a shuffle is computed when the kernel runs.
example mlir gpu_to_nvvm:
    gpu.module @kernels {
      gpu.func @k(%x: f32, %n: i32) kernel {
        %0, %1 = gpu.shuffle down %x, %n, %n : f32
        gpu.return
      }
    }
fix: give the width as a constant.

MLC0548 A GPU has no instruction for an operation of a kernel.
example text:
    error[MLC0548]: llvm.intr.vector.reduce.fmaximum has no instruction on a GPU
fix: lower it to scalar operations before PTX is made.

MLC0549 PTX is asked for of a program without kernels.
example text:
    error[MLC0549]: the program has no kernel: nothing in it runs on a GPU
fix: compile a function that computes something, or another target.
'''
