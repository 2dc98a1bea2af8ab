"""Pooling: one number for each window of the last dimensions."""

# ruff: noqa: F403

from mlc.frontend.functions.pooling.adaptive import *
from mlc.frontend.functions.pooling.fractional import *
from mlc.frontend.functions.pooling.indexed import *
from mlc.frontend.functions.pooling.sliding import *
from mlc.frontend.functions.pooling.unpooling import *
