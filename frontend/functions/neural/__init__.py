"""Activations, normalisation and layers as functions, under the names of torch.nn.functional."""

# ruff: noqa: F403

from mlc.frontend.functions.neural.bags import *
from mlc.frontend.functions.neural.dropping import *
from mlc.frontend.functions.neural.in_place import *
from mlc.frontend.functions.neural.layers import *
from mlc.frontend.functions.neural.piecewise import *
from mlc.frontend.functions.neural.smooth import *
