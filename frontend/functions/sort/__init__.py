"""Functions that sort, or pick by rank: all by tensor.argsort, which is stable and puts NaN last.

Values are the elements at the positions found, so derivatives go to them. Where PyTorch leaves open which of equal
elements is picked, here it is the first.
"""

# ruff: noqa: F403

from mlc.frontend.functions.sort.order import *
from mlc.frontend.functions.sort.quantiles import *
from mlc.frontend.functions.sort.search import *
