"""Meshes of ranks as devices: a tensor on `mesh:0` is divided among the ranks, and so is the code that computes it.

`array` has the arrays, `meshes` the meshes of this process, `program` the program of one rank, `carry_out` its
collectives, and `executable` and `toolchain` the interface that every kind of device implements.
"""
