"""Functions at many sizes: code for all sizes against code for each, with 0 and 1 among them.

Both are interpreted where sums have their order (the form `fixed`), from which on every pass keeps every bit; so no
machine code is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mlc.api import Compiled
from mlc.frontend import tree
from mlc.ir.diag import Error
from tests.public_case import Input

Array = np.ndarray[Any, Any]


def outcome(f: Callable[..., Any], args: Sequence[Any]) -> list[Array] | str:
    """The results of a call as arrays, or that it is refused."""
    try:
        return [np.asarray(x.numpy() if hasattr(x, "numpy") else x) for x in tree.leaves(f(*args))]
    except Error as error:
        return f"refused: {error.message}"


def difference(f: Callable[..., Any], calls: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Where a function compiled for all sizes gives something else than compiled for each."""
    general = Compiled(f, dynamic=True)
    for args in calls:
        got, want = outcome(general, args), outcome(Compiled(f, dynamic=False), args)
        shapes = [list(np.shape(x)) for x in tree.leaves(args)]
        if isinstance(got, str) or isinstance(want, str):
            if isinstance(got, str) != isinstance(want, str):
                yield f"{shapes}: {got} for all sizes, {want} for these"
        elif [(a.shape, a.dtype) for a in got] != [(b.shape, b.dtype) for b in want]:
            yield f"{shapes}: {[a.shape for a in got]} for all sizes, {[b.shape for b in want]} for these"
        elif wrong := next(((a, b) for a, b in zip(got, want) if not _alike(a, b)), None):
            yield f"{shapes}: {wrong[0].ravel()[:8]} for all sizes, {wrong[1].ravel()[:8]} for these"


def _alike(a: Array, b: Array) -> bool:
    """Equal, but for the order of sums over axes that are no neighbours, which short ones change."""
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    x, y = a.astype(np.float64), b.astype(np.float64)
    scale = np.max(np.abs(y), initial=0.0, where=np.isfinite(y))
    return np.allclose(x, y, rtol=1e-5, atol=1e-6 * float(scale), equal_nan=True)


def variants(args: Sequence[Any], seed: int) -> Iterator[list[Any]]:
    """Arguments like `args`, in which one size after the other is 0, 1, 2 and larger, wherever it stands."""
    rng = np.random.default_rng(seed)
    made = _made(args, rng)
    shapes = [np.shape(x) for x in tree.leaves(made) if isinstance(x, np.ndarray)]
    yield made
    for d in sorted({d for shape in shapes for d in shape}):
        for n in (0, 1, 2, d + 3):
            if n != d:
                yield tree.map(lambda x, d=d, n=n: _resized(x, d, n, rng), made)


def _made(x: Any, rng: np.random.Generator) -> Any:
    if isinstance(x, Input):
        return x.make(rng)
    return [_made(v, rng) for v in x] if isinstance(x, list | tuple) else x


def _resized(x: Any, d: int, n: int, rng: np.random.Generator) -> Any:
    """An array whose sizes d are n: its own elements, repeated where there are more."""
    if not isinstance(x, np.ndarray) or d not in x.shape:
        return x
    shape = [n if s == d else s for s in x.shape]
    return np.resize(x.ravel(), shape) if x.size else np.ones(shape, x.dtype)
