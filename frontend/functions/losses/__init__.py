"""Losses, under the names of torch.nn.functional. Each reduces to its mean unless told otherwise."""

# ruff: noqa: F403

from mlc.frontend.functions.losses.classification import *
from mlc.frontend.functions.losses.linear import *
from mlc.frontend.functions.losses.margins import *
from mlc.frontend.functions.losses.regression import *
from mlc.frontend.functions.losses.sequences import *
