"""Reductions, scans and normalizations of the elements that a mask selects, under the names of torch.masked."""

# ruff: noqa: F403

from mlc.frontend.functions.masked.along import *
from mlc.frontend.functions.masked.reductions import *
