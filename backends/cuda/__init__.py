"""NVIDIA GPUs: PTX from kernels in the llvm dialect."""
