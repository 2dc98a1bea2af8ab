"""Products that sum over shared dimensions: matrix products and einsum, all by tensor.dot_general."""

# ruff: noqa: F403

from mlc.frontend.functions.contract.equations import *
from mlc.frontend.functions.contract.geometry import *
from mlc.frontend.functions.contract.products import *
from mlc.frontend.functions.contract.sums import *
