"""Shapes of results at the corners, against PyTorch's: inputs of no dimensions, of no elements, of one for each.

The cases are those of test_public_functions.py, with what is left of their arrays. Nothing is compiled: what is
recorded has its shapes and element types.
"""
from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontend import tree
from mlc.frontend.trace import Trace
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import Error
from mlc.ir.types import TensorType, from_numpy
from tests.public_case import Array, Case, Input, look_up, torch_function
from tests.test_public_functions import CASES, as_torch

torch = pytest.importorskip("torch")

CORNERS: dict[str, Callable[[Array], Array]] = {
    "number": lambda a: np.array(a.reshape(-1)[0]) if a.size else a.reshape(-1)[:0],
    "one": lambda a: a[(slice(0, 1),) * a.ndim],
    "row": lambda a: a[:1] if a.ndim else a,
    "none": lambda a: a[(slice(0, 0),) * a.ndim] if a.ndim else a,
    "no rows": lambda a: a[:0] if a.ndim else a,
}
TORCH_REFUSES = (RuntimeError, LookupError, ValueError, TypeError, AttributeError, AssertionError, ArithmeticError)
LEFT_OUT = {
    "dynamic_slice": "not PyTorch's", "dynamic_update_slice": "not PyTorch's",
    "linalg.svd": "what stands for PyTorch's here has other defaults", "linalg.eigh": "it is made square first",
    "linalg.eigvalsh": "it is made square first", "bincount": "PyTorch forgets the type of weights that are none",
    "nn.functional.pixel_unshuffle": "PyTorch divides nothing where there is no image",
    "nn.functional.batch_norm": "PyTorch does not look at the running mean of no image",
    "nn.functional.one_hot": "recorded, it has to be told how many classes there are",
    "linalg.cond": "PyTorch does not look at whether nothing is square",
}
REFUSED = {
    ("gradient", "number"): "PyTorch gives no gradients", ("cholesky", "no rows"): "the matrix is not square",
    ("linalg.pinv", "no rows"): "a matrix that is not square is not Hermitian",
    ("median", "none"): "the middle of no integers", ("median", "no rows"): "the middle of no integers",
    ("nn.functional.scaled_dot_product_attention", "no rows"): "PyTorch does not look at the mask of no query",
}
"""Calls that only mlc refuses, by function and corner, with the reason."""
BY_ELEMENTS = ("MLC0350", "MLC0365")
"""Codes of what is refused since the shape would depend on elements, which are unknown while a function is recorded."""


def at(corner: str, x: Any, rng: np.random.Generator) -> Any:
    if isinstance(x, Input):
        return CORNERS[corner](x.make(rng))
    return [at(corner, v, rng) for v in x] if isinstance(x, list) else x


def shapes(x: Any) -> list[str]:
    leaves = x if isinstance(x, list | tuple) else [x]
    return [f"{str(y.dtype).split('.')[-1]}{list(y.type.shape if isinstance(y, Tracer) else y.shape)}" for y in leaves]


def difference(case: Case, corner: str) -> str:
    """Difference in the result shapes of a call; "" if there is none, or if PyTorch refuses it."""
    args = [at(corner, x, np.random.default_rng(0)) for x in case.args]
    try:
        wanted = shapes(torch_function(case.name)(*map(as_torch, args),
                                                  **{n: as_torch(x, n) for n, x in case.keywords.items()}))
    except TORCH_REFUSES:
        return ""
    arrays = [x for x in tree.leaves(args) if isinstance(x, np.ndarray)]
    trace = Trace("main")
    given = iter([trace.arg(TensorType(a.shape, from_numpy(a.dtype))) for a in arrays])
    try:
        with trace.recording():
            found = shapes(look_up(mlc, case.name)(*(_replaced(x, given) for x in args), **case.keywords))
    except Error as error:
        known = (case.name, corner) in REFUSED or error.code in BY_ELEMENTS
        return "" if known else f"{wanted} here: {error.message}"
    except Exception as error:                             # a defect, which is to be seen with the others
        return f"{wanted} here: {type(error).__name__}: {error}"
    return "" if len(found) == len(wanted) and all(map(fits, found, wanted)) else f"{wanted} here: {found}"


def fits(found: str, wanted: str) -> bool:
    """Whether a shape is the one that is wanted; data-dependent sizes are any."""
    return re.fullmatch(re.escape(found).replace(r"Size\(rows\)", r"\d+"), wanted) is not None


def _replaced(x: Any, given: Any) -> Any:
    if isinstance(x, np.ndarray):
        return next(given)
    return [_replaced(v, given) for v in x] if isinstance(x, list) else x


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["first", "every"])
@pytest.mark.parametrize("corner", CORNERS)
def test_shapes(corner: str, every: bool) -> None:
    """Of the first case of every function, or of all cases."""
    first = {case.name: case for case in reversed(CASES)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = [f"{case}: {found}" for case in (CASES if every else first.values())
                 if case.name not in LEFT_OUT and (found := difference(case, corner))]
    assert not wrong, f"{len(wrong)} cases:\n" + "\n".join(wrong)
