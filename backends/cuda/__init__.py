"""NVIDIA GPUs: PTX for kernels in the llvm dialect, and the run time that launches them."""
