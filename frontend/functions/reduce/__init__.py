"""Functions that take dimensions away: sums, extrema, moments, norms, truth of all or any."""

# ruff: noqa: F403

from mlc.frontend.functions.reduce.extrema import *
from mlc.frontend.functions.reduce.moments import *
from mlc.frontend.functions.reduce.sums import *
