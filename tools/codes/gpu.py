"""Error codes of GPU kernels: their IR, their execution by the interpreter, and the CUDA driver."""

TEXT = r'''
MLC0180 A GPU kernel, its launch, or a gpu operation is ill-formed.
example mlir:
    gpu.module @kernels {
      gpu.func @k() kernel attributes {known_block_size = [32, 0, 1]} {
        gpu.return
      }
    }
fix: give the kernel what the message asks for; `mlc ops gpu` describes the operations.

MLC0181 A kernel has a data race, or reads uninitialised memory.
The interpreter tracks every access; on hardware the result would be undefined.
example text:
    error[MLC0181]: memref.load: thread 0 of block 0 reads what thread 63 of block 0 writes: no barrier orders the two
    accesses to shared memory
fix: if the threads are in one block, put a gpu.barrier between the two accesses; otherwise split the kernel into two
launches.

MLC0182 Some threads of a block do not reach a barrier at which others wait.
example text:
    error[MLC0182]: gpu.barrier: thread 4 of block 0 does not reach this barrier, which others of its block wait at
fix: move the barrier out of control flow that diverges within a block.

MLC0183 A shuffle is executed with inactive threads in its warp, or has an invalid width.
example text:
    error[MLC0183]: gpu.shuffle: thread 4 of block 0 does not take part, which others of its warp do
fix: move the shuffle out of control flow that diverges within a warp; widths are powers of two up to 32.

MLC0184 A warp-level operation, or a copy to shared memory, does not support these types, shapes or sizes.
example mlir:
    func.func @f(%a: vector<4x2xf32>, %b: vector<2x2xf32>, %c: vector<2x2xf32>) {
      %0 = nvgpu.mma.sync (%a, %b, %c) {mmaShape = [16, 8, 16]}
        : (vector<4x2xf32>, vector<2x2xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      func.return
    }
fix: use one of those that the message lists.

MLC0185 A thread accesses shared memory that an asynchronous copy is still writing.
example text:
    error[MLC0185]: memref.load: thread 0 of block 0 reads what thread 0 of block 0 copies and has not waited for
fix: put the copies into a group, wait for it with nvgpu.device_async_wait, and add a gpu.barrier if other threads read
the data.

MLC0547 The width of a shuffle is not a constant.
example mlir gpu_to_nvvm:
    gpu.module @kernels {
      gpu.func @k(%x: f32, %n: i32) kernel {
        %0, %1 = gpu.shuffle down %x, %n, %n : f32
        gpu.return
      }
    }
fix: give the width as a constant.

MLC0548 An operation of a kernel has no GPU instruction.
example text:
    error[MLC0548]: llvm.intr.vector.reduce.fmaximum has no instruction on a GPU
fix: lower it to scalar operations before PTX is generated.

MLC0549 PTX is requested for a program without kernels.
example text:
    error[MLC0549]: the program has no kernel: nothing in it runs on a GPU
fix: compile a function that computes something, or choose another target.

MLC0580 cuda-python is not installed.
mlc calls the NVIDIA driver through it; nothing else needs it.
example text:
    error[MLC0580]: cuda-python is not installed (No module named 'cuda')
fix: pip install 'mlc[cuda]', or run on the CPU (target="host").

MLC0581 This machine has no NVIDIA driver, or the driver cannot be initialised.
example text:
    error[MLC0581]: this machine has no NVIDIA driver
fix: install the driver (nvidia-smi should list the GPU), or run on the CPU (target="host").

MLC0582 There is no GPU, or none with this ordinal.
example text:
    error[MLC0582]: there is no device cuda:2, of 2
fix: mlc.cuda.device_count() says how many there are; CUDA_VISIBLE_DEVICES may hide some.

MLC0583 A call to the CUDA driver failed.
example text:
    error[MLC0583]: copying to the device: CUDA_ERROR_INVALID_VALUE (invalid argument)
fix: the error name is CUDA's; unless memory or another program on the device is the cause, report it.

MLC0584 The driver rejects the generated PTX.
The messages of the driver's compiler are shown.
example text:
    error[MLC0584]: the driver rejects PTX: CUDA_ERROR_UNSUPPORTED_PTX_VERSION
fix: update the driver, or compile for an older architecture (target="cuda:sm_80").

MLC0585 The device is out of memory.
mlc released the memory that it had cached for reuse before it raised this error.
example text:
    error[MLC0585]: NVIDIA H200 has no 34359738368 bytes left: of 150754820096, 1052770304 are free, and mlc holds
    149685273600
fix: use smaller batches, drop tensors that are no longer needed, or donate arguments; other programs may hold memory,
too.

MLC0586 A forked process uses a GPU that its parent had used before the fork.
The state of the driver does not survive a fork.
example text:
    error[MLC0586]: a process that was forked from one that used a GPU cannot use it
fix: start processes with multiprocessing.get_context("spawn"), or fork before the first use.

MLC0587 A kernel failed on the device.
The driver rejects all further calls from this process.
example text:
    error[MLC0587]: waiting for the device: CUDA_ERROR_ILLEGAL_ADDRESS: a kernel went wrong, now or before
fix: report the program; calling mlc.cuda.synchronize() after every call shows which one failed.

MLC0588 A device cannot run this code.
The code is for a newer architecture or needs more shared memory, or the device is older than any that mlc supports.
example text:
    error[MLC0588]: NVIDIA A100 (sm_80) cannot run code made for cuda:sm_90
fix: use target="cuda", which compiles for the device that is present.

MLC0589 A launch has more blocks than a grid allows.
example text:
    error[MLC0589]: add: a grid has at most [2147483647, 65535, 65535] blocks, not [4398046511104, 1, 1]
fix: process the data in several calls.

MLC0590 The resource usage of kernels is requested, but ptxas is not installed.
ptxas assembles PTX, and reports how many registers each kernel uses; nothing else needs it.
example text:
    error[MLC0590]: ptxas, which reports the resources of kernels, is not installed
fix: pip install nvidia-cuda-nvcc.

MLC0591 NVIDIA's assembler rejects the generated PTX.
example text:
    error[MLC0591]: ptxas rejects the PTX for cuda:sm_90
fix: install a newer ptxas (pip install -U nvidia-cuda-nvcc); if that does not help, report it, with the PTX
(mlc compile --emit=ptx).
'''
