"""Where the elements of a tensor are, on a device that has several places for them, as a mesh of ranks."""

from __future__ import annotations

import numpy as np

from mlc.frontend.autograd.copy_node import same_elements
from mlc.frontend.tensor import Tensor, wrap
from mlc.frontend.trace import state


def placed(x: Tensor, like: Tensor) -> Tensor:
    """A tensor in the place of another one of its shape; itself, if it is elsewhere or there is only one place."""
    old, made = like._array, x._array
    here = state.trace is not None or isinstance(old, np.ndarray) or isinstance(made, np.ndarray)
    if here or old.device != made.device or old.shape != made.shape:
        return x
    array = made.placed_like(old)
    return x if array is made else same_elements(wrap(array), x)
