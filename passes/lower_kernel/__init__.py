"""Lowering of kernels on tiles to loops over scalars and vectors, shared by CPUs and the threads of a GPU."""
