"""Bounds on the effect of rounding on results: the interpreter with a random perturbation of every rounding.

A program that divides two nearly cancelled sums turns the last bit of its inputs into any digit of its output. So where
two results differ by more than a fixed tolerance, the same program is run a few times with noise in each operation that
rounds, no larger than its rounding may be; how far that carries its results is how far they may differ.

J. Vignes, "A stochastic arithmetic for reliable scientific computation", 1993.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.combining import CombiningKind
from mlc.dialects.tensor.elementwise import Elementwise, Rounding
from mlc.dialects.tensor.reduce import ReduceProd, ReduceSum
from mlc.dialects.tensor.scatter import Scattering
from mlc.ir.core import Op
from mlc.ir.interp import Frame, Interpreter, in_parts

Array = np.ndarray[Any, Any]

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52,
           "complex64": 2.0**-23, "complex128": 2.0**-52}
"""Of a complex number, either part is off by this share of its modulus: a product's may be."""
TRIALS, MANY, MARGIN = 4, 16, 4.0
"""Noisy runs, and their number where a sign may hang on a rounding; how many times the widest change is allowed."""

def spread(module: Op, entry: str, arrays: Sequence[Any], results: Sequence[Array],
           trials: int = TRIALS) -> list[Array]:
    """Bound on the effect of rounding, for each element of the results of `entry`, or each part of a complex one."""
    results = [in_parts(np.asarray(r)) for r in results]
    out = [np.zeros(np.shape(r)) for r in results]
    for seed in range(trials):
        moved = NoisyInterpreter(module, np.random.default_rng(seed)).run(entry, [np.array(a) for a in arrays])
        with np.errstate(all="ignore"):
            for total, a, b in zip(out, moved, results):
                np.maximum(total, _distance(in_parts(np.asarray(a)), b), out=total)
    return [MARGIN * total for total in out]


def _distance(a: Array, b: Array) -> Array:
    """How far two arrays are apart: not at all where both are the same infinity or NaN, infinitely if one of them is,
    and hardly where both are zeros of different signs."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    same = ((x == y) & (np.signbit(x) == np.signbit(y))) | (np.isnan(x) & np.isnan(y))
    change = np.where(same, 0.0, np.maximum(np.abs(x - y), np.finfo(np.float64).tiny))
    return np.where(np.isnan(change), np.inf, change)


class NoisyInterpreter(Interpreter):
    """Interpreter of the tensor level that perturbs each rounding by a random fraction of its maximal error."""

    def __init__(self, module: Op, random: np.random.Generator) -> None:
        super().__init__(module)
        self.random = random

    def another(self, module: Op) -> Interpreter:
        return NoisyInterpreter(module, self.random)

    def frame(self) -> Frame:
        return _NoisyFrame(self)


class _NoisyFrame(Frame):
    __slots__ = ()

    def step(self, op: Op) -> None:
        with self._near_operands(op) if hasattr(op, "decompose") else nullcontext():
            super().step(op)
        for result in op.results:
            value = self.env[result]
            if not isinstance(value, np.ndarray) or value.dtype.name not in EPSILON:
                continue
            if (error := self._error(op, value)) is not None:
                assert isinstance(self.interpreter, NoisyInterpreter)
                random = self.interpreter.random
                noise = _noise(random, value) * error
                moved = (_wide(value) + noise).astype(value.dtype)
                # a number that is rounding alone may be 0, of which a quotient or a remainder makes NaN
                gone = (np.abs(value) <= error) & (random.random(value.shape) < 0.25)
                moved = np.where(gone, np.zeros((), value.dtype), moved)
                if value.dtype.kind != "c" and np.isnan(value).any():     # its sign is the processor's affair
                    moved = np.where(np.isnan(value) & (random.random(value.shape) < 0.5), -value, moved)
                self.env[result] = np.where(noise == 0, value, moved)                # which keeps the sign of a zero

    @contextmanager
    def _near_operands(self, op: Op) -> Iterator[None]:
        """Within, the operands are off by a rounding: of standardized numbers that differ little, that is much."""
        assert isinstance(self.interpreter, NoisyInterpreter)
        given = {v: self.env[v] for v in op.operands}
        for v, x in given.items():
            if isinstance(x, np.ndarray) and x.dtype.name in EPSILON:
                noise = _noise(self.interpreter.random, x) * EPSILON[x.dtype.name]
                self.env[v] = (_wide(x) * (1.0 + noise)).astype(x.dtype)
        yield
        self.env.update(given)

    def _error(self, op: Op, value: Array) -> Array | None:
        """The rounding error that a result of `op` may have; None for operations that only move, choose or compare."""
        epsilon, size = EPSILON[value.dtype.name], np.abs(_wide(value))
        operands = self.all(op.operands)
        if (terms := _terms(op, operands)) is not None:
            total = size if _multiplies(op) else np.abs(op.ref(
                *(np.abs(x) if x.dtype.name in EPSILON else x for x in operands)).astype(np.float64))
            if isinstance(op, ReduceProd):
                total = np.where(_may_leave_the_range(operands[0], op.axes), np.nan, total)      # any number
            least = 0.0 if epsilon == EPSILON["float64"] else np.finfo(np.float32).smallest_subnormal
            return np.asarray(epsilon * np.sqrt(max(terms, 1)) * total + np.where(size == 0, least, 0.0) * (total > 0))
        if hasattr(op, "decompose"):
            return np.asarray(epsilon * (4 * size + size.max(initial=0.0, where=np.isfinite(size))))
        if isinstance(op, Elementwise) and op.rounding in (Rounding.ONCE, Rounding.WIDE) and any(
                x.dtype.name in EPSILON for x in operands):            # an integer is converted in one way
            return np.asarray(epsilon * (4 if op.rounding is Rounding.WIDE else 1) * size)
        return None


def _wide(x: Array) -> Array:
    """x in the widest type of its kind."""
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def _noise(random: np.random.Generator, x: Array) -> Array:
    """A number in [-1, 1) for each element of x, or for each part of a complex one."""
    noise = np.asarray(random.uniform(-1.0, 1.0, x.shape))
    return np.asarray(noise + 1j * random.uniform(-1.0, 1.0, x.shape)) if np.iscomplexobj(x) else noise


def _terms(op: Op, operands: Sequence[Array]) -> int | None:
    """How many numbers are added up, or multiplied, for one element of the result; None if that is not what op does."""
    shape = np.shape(operands[0]) if operands else ()         # an index has none: that of a loop, for one
    if isinstance(op, ReduceSum | ReduceProd):
        return int(math.prod(shape[a] for a in op.axes))
    if isinstance(op, tensor.DotGeneral):
        return int(math.prod(shape[i] for i, _ in op.contract))
    if isinstance(op, tensor.Cumulative) and op.kind in ("add", "mul"):
        return int(shape[op.axis])
    if isinstance(op, Scattering) and op.kind in ("add", "mul"):
        return 1 + int(operands[1].size)
    return None


def _may_leave_the_range(x: Array, axes: tuple[int, ...]) -> Array:
    """Whether there is an order of the factors in which a product overflows or underflows on the way."""
    range = np.finfo(np.float64 if EPSILON[x.dtype.name] == EPSILON["float64"] else np.float32)
    size = np.abs(_wide(x))
    factors = np.isfinite(size) & (size > 0)
    with np.errstate(all="ignore"):
        most = np.prod(np.maximum(size, 1.0), axes, where=factors)
        least = np.prod(np.minimum(size, 1.0), axes, where=factors)
    return np.asarray((most > range.max) | (least < range.tiny))


def _multiplies(op: Op) -> bool:
    return getattr(op, "combining", None) is CombiningKind.MUL
