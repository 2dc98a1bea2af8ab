"""The kernel library (backends/kernel_library.py): which operations it has, and how it is made.

    python -m mlc.tools.kernel_library FOLDER [--level LEVEL ...]

writes the library of each level to a folder; the build of a wheel does so (setup.py). `mlc cache warm` compiles the
same operations for this machine, into the compile cache.
"""
