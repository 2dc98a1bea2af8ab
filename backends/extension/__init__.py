"""Compiled functions as CPython extension modules: one file that needs Python and numpy, and nothing of mlc."""
