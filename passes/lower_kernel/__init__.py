"""Kernels on tiles as loops around scalars and vectors: what CPUs and the threads of a GPU share."""
