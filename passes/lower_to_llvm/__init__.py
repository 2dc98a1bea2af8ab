"""Operations as those of the llvm dialect: what code for CPUs and kernels for GPUs share."""
