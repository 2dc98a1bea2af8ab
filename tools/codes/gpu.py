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
    error[MLC0182]: gpu.barrier: thread 4 of block 0 does not reach this barrier, which others of its block wait at
fix: move the barrier out of conditions and loops that go differently for threads of one block.

MLC0183 A shuffle does not have all threads of its warp, or an impossible width.
example text:
    error[MLC0183]: gpu.shuffle: thread 4 of block 0 does not take part, which others of its warp do
fix: move the shuffle out of conditions that go differently for threads of one warp; widths are powers of two up to 32.

MLC0184 An operation of a warp, or a copy to shared memory, does not exist for its types, shape or sizes.
example mlir:
    func.func @f(%a: vector<4x2xf32>, %b: vector<2x2xf32>, %c: vector<2x2xf32>) {
      %0 = nvgpu.mma.sync (%a, %b, %c) {mmaShape = [16, 8, 16]}
        : (vector<4x2xf32>, vector<2x2xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      func.return
    }
fix: take one of those that the message names.

MLC0185 A thread reads or writes what is being copied to shared memory, before the copy has been waited for.
example text:
    error[MLC0185]: memref.load: thread 0 of block 0 reads what thread 0 of block 0 copies and has not waited for
fix: make a group of the copies, wait for it with nvgpu.device_async_wait, and put a gpu.barrier after that if other
threads read.

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

MLC0580 cuda-python is not installed.
It is how mlc speaks to the driver of NVIDIA GPUs; nothing else needs it.
example text:
    error[MLC0580]: cuda-python is not installed (No module named 'cuda')
fix: pip install 'mlc[cuda]', or leave the work to the CPU (target="host").

MLC0581 This machine has no driver for NVIDIA GPUs, or one that does not start.
example text:
    error[MLC0581]: this machine has no NVIDIA driver
fix: install the driver (nvidia-smi should list the GPU), or leave the work to the CPU (target="host").

MLC0582 There is no GPU, or none of this number.
example text:
    error[MLC0582]: there is no device cuda:2, of 2
fix: mlc.cuda.device_count() says how many there are; CUDA_VISIBLE_DEVICES may hide some.

MLC0583 A call of the driver failed.
example text:
    error[MLC0583]: copying to the device: CUDA_ERROR_INVALID_VALUE (invalid argument)
fix: the name is CUDA's; where it is no matter of memory or of another program on the device, report it.

MLC0584 The driver refuses PTX that was made for it.
Its own compiler's messages are shown.
example text:
    error[MLC0584]: the driver rejects PTX: CUDA_ERROR_UNSUPPORTED_PTX_VERSION
fix: update the driver, or compile for an older architecture (target="cuda:sm_80").

MLC0585 The device's memory is used up.
What was kept for later use has been given back before this is raised.
example text:
    error[MLC0585]: NVIDIA H200 has no 34359738368 bytes left: of 150754820096, 1052770304 are free, and mlc holds
    149685273600
fix: use smaller batches, drop tensors that are done with, or donate arguments; other programs may hold memory, too.

MLC0586 A process was forked from one that used a GPU.
The driver's state does not survive that.
example text:
    error[MLC0586]: a process that was forked from one that used a GPU cannot use it
fix: start processes anew, with multiprocessing.get_context("spawn"), or fork before the first use.

MLC0587 A kernel went wrong on the device.
After that the driver refuses everything in this process.
example text:
    error[MLC0587]: waiting for the device: CUDA_ERROR_ILLEGAL_ADDRESS: a kernel went wrong, now or before
fix: report the program; mlc.cuda.synchronize() after every call finds the one that did it.

MLC0588 A device cannot run some code.
It is made for a newer architecture, needs more shared memory, or the device is older than all that mlc knows.
example text:
    error[MLC0588]: NVIDIA A100 (sm_80) cannot run code made for cuda:sm_90
fix: use target="cuda", which compiles for the device that is there.

MLC0589 A launch has more blocks than a grid can have.
example text:
    error[MLC0589]: add: a grid has at most [2147483647, 65535, 65535] blocks, not [4398046511104, 1, 1]
fix: split the data.

MLC0590 The resources of kernels are requested, and ptxas is not installed.
It assembles PTX for a GPU, and says how many registers each kernel takes; nothing else needs it.
example text:
    error[MLC0590]: ptxas, which reports the resources of kernels, is not installed
fix: pip install nvidia-cuda-nvcc.

MLC0591 NVIDIA's assembler refuses PTX that was made for it.
example text:
    error[MLC0591]: ptxas rejects the PTX for cuda:sm_90
fix: install a newer one (pip install -U nvidia-cuda-nvcc); else report it, with the PTX (mlc compile --emit=ptx).
'''
