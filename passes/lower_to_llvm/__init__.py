"""Lowering of operations to the llvm dialect, shared by code for CPUs and kernels for GPUs."""
