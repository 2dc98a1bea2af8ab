"""Reductions: sums, extrema, moments, norms, all and any."""

# ruff: noqa: F403

from mlc.frontend.functions.reduce.extrema import *
from mlc.frontend.functions.reduce.moments import *
from mlc.frontend.functions.reduce.sums import *
