"""Check rewrites one by one: both sides of each are interpreted on special values of floats and integers.

The arguments of a program seldom contain the negative zero, infinity or two equal numbers that expose a wrong rule. So
the few operations before a rewrite are run again, with special values in place of their inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.reduce import Reduce
from mlc.ir import sizes
from mlc.ir.core import Op, Value
from mlc.ir.diag import Error
from mlc.ir.interp import Frame, Interpreter
from mlc.ir.types import FloatType, IndexType, IntType, TensorType, to_numpy

Array = np.ndarray[Any, Any]

DEPTH, LARGEST = 4, 1 << 14
"""Number of dependent operations before a rewrite that are run again, and limit on the elements of a value."""
FLOATS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5, -2.5, 0.5, 1e-40, -3.0, 3e38, 7.0, 1.0)
"""Special values of floats; the first of them are for short arrays."""
TRIALS = 3


class Firings:
    """Watches rewrites, and records the first one whose sides differ."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self.numbers = numbers
        self.wrong: tuple[str, int, str] | None = None
        """(rule at place, which firing, how the sides differ)"""

    def __call__(self, op: Op, values: Sequence[Value], rule: str, number: int) -> None:
        if self.wrong is None and (message := difference(op, values, self.numbers)) is not None:
            self.wrong = f"{rule} at {op.loc}", number, message


def difference(op: Op, values: Sequence[Value], numbers: dict[str, int]) -> str | None:
    """How the replacements of the results of `op` differ from them; None if they agree, or it is unknown."""
    order, leaves = _slice(op, values)
    if any(_shape(v, numbers) is None for v in leaves) or any(inner.regions for inner in order):
        return None
    exact = not any(isinstance(inner, Reduce | tensor.DotGeneral | tensor.Cumulative) or hasattr(inner, "decompose")
                    for inner in order)
    for trial in range(TRIALS):
        frame = Frame(Interpreter(_Nothing()))             # type: ignore[arg-type]
        frame.sizes.update(numbers)
        rng = np.random.default_rng(trial)
        for v in leaves:
            frame.env[v] = _peculiar(v, numbers, rng)
        try:
            with np.errstate(all="ignore"):
                for inner in order:
                    frame.step(inner)
        except (Error, ArithmeticError, LookupError, NotImplementedError, TypeError, ValueError):
            continue                                       # an index out of range, or an unbound size
        for result, value in zip(op.results, values):
            if (message := _unlike(frame.env[value], frame.env[result], exact)) is not None:
                return message
    return None


class _Nothing:
    """A module without functions."""

    def __init__(self) -> None:
        self.regions = [self]
        self.block: list[Op] = []


def _slice(op: Op, values: Sequence[Value]) -> tuple[list[Op], list[Value]]:
    """The operations that compute both sides, in topological order, and their input values: those of the operation's
    block and of the blocks around it, which a rule may look at, too.
    """
    depth: dict[Op, int] = {}
    around = [op.parent]
    while (outer := around[-1].parent_op if around[-1] is not None else None) is not None:
        around.append(outer.parent)
    work = [(op, 0), *((v.op, 0) for v in values if v.op is not None)]
    while work:
        current, level = work.pop()
        if (current.parent not in around and current.operands) or depth.get(current, DEPTH + 1) <= level:
            continue
        depth[current] = level
        work += [(v.op, level + 1) for v in current.operands
                 if v.op is not None and (level < DEPTH or not v.op.operands) and v.op.pure and not v.op.regions]
    read = [v for inner in depth for v in inner.operands] + list(values)
    leaves = list(dict.fromkeys(v for v in read if v.op is None or v.op not in depth))
    return _sorted(depth), leaves


def _sorted(ops: dict[Op, int]) -> list[Op]:
    out: dict[Op, None] = {}
    work = [(op, False) for op in ops]
    while work:
        op, ready = work.pop()
        if ready:
            out[op] = None
        elif op not in out:
            work.append((op, True))
            work += [(v.op, False) for v in op.operands if v.op is not None and v.op in ops and v.op not in out]
    return list(out)


def _shape(value: Value, numbers: dict[str, int]) -> tuple[int, ...] | None:
    """The numbers of a leaf's shape; None where it is no tensor or scalar, has too many elements, or nobody knows."""
    if isinstance(value.type, FloatType | IntType | IndexType):
        return ()
    if not isinstance(value.type, TensorType):
        return None
    try:
        shape = tuple(sizes.evaluate(d, numbers) for d in value.type.shape)
    except (KeyError, ZeroDivisionError):
        return None
    return shape if int(np.prod(shape)) <= LARGEST else None


def _peculiar(value: Value, numbers: dict[str, int], rng: np.random.Generator) -> Any:
    """An array or scalar of a value's type; the first trial has no numbers in it that make any sum one of NaNs."""
    shape, type = _shape(value, numbers), value.type
    assert shape is not None
    dtype = type.dtype if isinstance(type, TensorType) else type
    if isinstance(dtype, IndexType):
        return int(rng.integers(0, 9))
    kind = to_numpy(dtype)
    if isinstance(dtype, FloatType):
        with np.errstate(all="ignore"):
            x = np.asarray(rng.choice(FLOATS, shape)).astype(kind)
    elif kind == np.bool_:
        x = np.asarray(rng.integers(0, 2, shape)).astype(kind)
    else:
        info = np.iinfo(kind)
        x = np.asarray(rng.choice([0, 1, 2, 3, info.max, info.min, info.max // 2, 7], shape)).astype(kind)
    return x if isinstance(type, TensorType) else x[()]


def _unlike(got: Any, want: Any, exact: bool) -> str | None:
    """Where two values differ; NaNs are equal, zeros of different signs are not, only sums may round differently."""
    a, b = np.asarray(got), np.asarray(want)
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{list(a.shape)} in place of {b.dtype}{list(b.shape)}"
    if a.dtype.kind in "biu":
        same = a == b
    else:
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            close = (x == y) if exact else np.isclose(x, y, rtol=1e-2, atol=1e-2) | ~np.isfinite(x) | ~np.isfinite(y)
            same = close & ((np.signbit(x) == np.signbit(y)) | (x != 0)) | np.isnan(x) & np.isnan(y)
    if np.all(same):
        return None
    at = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
    return f"{a[at]} in place of {b[at]} at {list(at)}"
