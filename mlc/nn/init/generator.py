"""Random generator of initial values, one per thread, and the context that leaves the values out."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from mlc.frontend.arguments import coded
from mlc.frontend.axes import plain_int
from mlc.ir.diag import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

Generator = np.random.Generator


class _State(threading.local):
    shapes_only = False

    def __init__(self) -> None:
        self.generator: Generator = np.random.default_rng()


state = _State()


@coded
def manual_seed(seed: int) -> Generator:
    """Seed this thread's generator of initial values and of the keys of dropout.

    Unlike torch.manual_seed it has no part in `mlc.random`, whose functions take keys.

    Args:
        seed: Integer of at least 0.

    Returns:
        The new generator, a numpy.random.Generator.

    Raises:
        UserError: `seed` is negative (MLC0360).
        UserTypeError: `seed` is no integer (MLC0355).

    Example:
        >>> _ = mlc.manual_seed(0)
        >>> nn.Linear(1, 2).bias
        tensor([-0.918053  , -0.96694475], dtype=mlc.float32, requires_grad=True)
        >>> _ = mlc.manual_seed(0)
        >>> nn.Linear(1, 2).bias
        tensor([-0.918053  , -0.96694475], dtype=mlc.float32, requires_grad=True)
    """
    if plain_int(seed, "seed") < 0:
        raise UserError(f"seed = {seed}, expected at least 0", code="MLC0360")
    state.generator = np.random.default_rng(seed)
    return state.generator


def default_generator() -> Generator:
    """This thread's generator, which modules draw their initial values from.

    Returns:
        A numpy.random.Generator; before `mlc.manual_seed` one that the operating system has seeded.

    Example:
        >>> mlc.manual_seed(0) is nn.init.default_generator()
        True
    """
    return state.generator


@contextmanager
def shapes_only() -> Iterator[None]:
    """Context in which parameters have shapes and dtypes, but all elements are one 0 that takes no memory.

    It makes large models quickly, to count their parameters or to load a state into them.

    Returns:
        A context manager.

    Example:
        >>> with nn.init.shapes_only():
        ...     model = nn.Linear(10**5, 10**5)
        >>> model.num_parameters()
        10000100000
    """
    saved, state.shapes_only = state.shapes_only, True
    try:
        yield
    finally:
        state.shapes_only = saved
