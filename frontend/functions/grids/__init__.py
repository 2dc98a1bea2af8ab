"""Functions that lay tensors out: grids, stacks and cuts along a named direction, turns, diagonals."""

# ruff: noqa: F403

from mlc.frontend.functions.grids.combinatorial import *
from mlc.frontend.functions.grids.layout import *
from mlc.frontend.functions.grids.pieces import *
