"""Cases that compare public functions with PyTorch; test_public_functions.py runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, Any]

NN = "nn.functional."


# -- inputs -----------------------------------------------------------------------------------------------------------
@dataclass
class Input:
    """An array argument: made anew from a seed, differentiated if it holds floats."""

    make: Callable[[np.random.Generator], Array]


def F(*shape: int) -> Input:
    """Normally distributed floats."""
    return Input(lambda r: r.normal(size=shape).astype(np.float32))


def Z(*shape: int) -> Input:
    """Complex numbers with normally distributed parts."""
    return Input(lambda r: (r.normal(size=shape) + 1j * r.normal(size=shape)).astype(np.complex64))


def P(*shape: int) -> Input:
    """Floats from 0.1 to 2."""
    return Input(lambda r: r.uniform(0.1, 2, shape).astype(np.float32))


def U(low: float, high: float, *shape: int) -> Input:
    return Input(lambda r: r.uniform(low, high, shape).astype(np.float32))


def N(high: int, *shape: int, low: int = 0) -> Input:
    """Integers."""
    return Input(lambda r: r.integers(low, high, shape))


def B(*shape: int) -> Input:
    return Input(lambda r: r.integers(0, 2, shape).astype(bool))


def S(*shape: int) -> Input:
    """Signs: 1 and -1, as floats."""
    return Input(lambda r: (2 * r.integers(0, 2, shape) - 1).astype(np.float32))


def D(*shape: int) -> Input:
    """Probabilities along the last dimension."""
    def make(r: np.random.Generator) -> Array:
        x = r.uniform(0.1, 1, shape)
        return np.asarray(x / x.sum(-1, keepdims=True), np.float32)
    return Input(make)


def K(*values: Any, dtype: Any = np.float32) -> Input:
    """These numbers."""
    return Input(lambda r: np.array(values, dtype))


@dataclass
class Case:
    """f(*args, **keywords) here and in torch.

    constant   arguments that are not differentiated
    twice      whether second derivatives are compared, in the families where they are
    slow       what it shows is shown by cheaper cases too, but for a size or a combination
    """

    name: str
    args: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)
    constant: tuple[int, ...] = ()
    twice: bool = True
    slow: bool = False

    def __str__(self) -> str:
        shown = [str(a) for a in (*self.args, *self.keywords.values()) if not isinstance(a, Input | list | tuple)]
        return "-".join([self.name, *shown])


def C(name: str, *args: Any, constant: tuple[int, ...] = (), twice: bool = True, slow: bool = False,
      **keywords: Any) -> Case:
    return Case(name, args, keywords, constant, twice, slow)


def marked(cases: Iterable[Case], n: int = 1) -> list[Any]:
    """Cases as parameters of a test, of which the default run takes one in n of each function and names of keywords,
    the first with it: options lead other ways."""
    seen, out = Counter[tuple[str, ...]](), []
    for case in cases:
        key = case.name, *sorted(case.keywords)
        quick = not case.slow and seen[key] % n == 0
        seen[key] += not case.slow
        out.append(case if quick else pytest.param(case, marks=pytest.mark.slow))
    return out


def thinned(cases: Iterable[Any], n: int) -> list[Any]:
    """Parameters of a test, of which the default run takes one in n and `-m slow` the others."""
    return [pytest.param(case, marks=pytest.mark.slow) if i % n else case for i, case in enumerate(cases)]


def thinned_by(key: Callable[[Any], Any], cases: Sequence[Any], n: int) -> list[Any]:
    """The same, but one in n of those with each key, and one at least."""
    size, seen = Counter(map(key, cases)), Counter[Any]()
    out = []
    for case in cases:
        seen[key(case)] += 1
        nth, last = seen[key(case)], size[key(case)]
        out.append(case if nth % n == 0 or nth == last < n else pytest.param(case, marks=pytest.mark.slow))
    return out


def look_up(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module


def torch_function(name: str) -> Any:
    import torch

    from tests.torch_conventions import OWN
    own = OWN | {"detach": lambda x: x.detach(), "masked_fill": torch.Tensor.masked_fill,
                 "dynamic_slice": _dynamic_slice, "dynamic_update_slice": _dynamic_update_slice}
    return own.get(name) or look_up(torch, name)


def _piece(x: Any, starts: Any, sizes: Any) -> tuple[slice, ...]:
    at = (max(0, min(s, n - d)) for s, n, d in zip(starts, x.shape, sizes))
    return tuple(slice(a, a + d) for a, d in zip(at, sizes))


def _dynamic_slice(x: Any, starts: Any, sizes: Any) -> Any:
    return x[_piece(x, starts, sizes)]


def _dynamic_update_slice(x: Any, update: Any, starts: Any) -> Any:
    out = x.clone()
    out[_piece(x, starts, update.shape)] = update
    return out


def made(x: Any, rng: np.random.Generator) -> Any:
    """An argument, with an array in place of each Input."""
    return x.make(rng) if isinstance(x, Input) else [made(v, rng) for v in x] if isinstance(x, list) else x
