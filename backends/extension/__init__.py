"""Compiled functions as CPython extension modules: one file that depends on Python and numpy, but not on mlc."""
