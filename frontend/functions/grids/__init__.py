"""Functions that lay tensors out: grids, stacks and splits along a named direction, rotations, diagonals."""

# ruff: noqa: F403

from mlc.frontend.functions.grids.combinatorial import *
from mlc.frontend.functions.grids.layout import *
from mlc.frontend.functions.grids.pieces import *
