"""Further checks of a program: with the lowering for other hardware, and with special values.

A fault of one schedule does not show in another, nor a fault with infinities if there are none. So a module is lowered
a second time, and run on its own arguments with some of their elements replaced, in rounds: each argument, also a
scalar, holds each number of PECULIAR in some round. A round uses few of the numbers, the first one ordinary ones, since
a NaN masks any other fault in a sum, and an overflow masks one in a formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.ir.core import Op
from mlc.ir.machine import Cpu
from mlc.ir.passes import Step
from mlc.passes import pipeline

if TYPE_CHECKING:
    from mlc.backends.target import Target

Array = np.ndarray[Any, Any]

PECULIAR: tuple[tuple[float, ...], ...] = (
    (0.0, 1.0, 100.0, -3.0), (-0.0, -1.0, 0.5, -200.0, 2.5), (math.inf, 1e4), (-math.inf, 0.0), (math.nan, -1e4))
"""Special values for elementary functions, grouped by round, if the arrays are large enough."""
ENDS = (1e-40, -1e-310, 3e38, -1e300, 65504.0, 3e-8, 1 + 2.0**-8 + 2.0**-30, 1 + 2.0**-11 + 2.0**-30)
"""Denormals and numbers near the maximum of some float type: a round of their own, since their squares overflow. The
last two lie just above the middle of two numbers of bfloat16 and of float16, and in it once they are float32."""
INTEGERS = (0, -1, 2**24 + 2**16 + 1, 2**60 + 2**36 + 1, -2**63, 2**63 - 1, 129, 1, 31, 32, -7, 255, 3)
"""Special values for integers, with the limits of their type; used as indices, they make program and code raise. Two
lie just above the middle of two numbers of bfloat16, or float32, and in it once they are float32, or float64."""
INTEGER_ROUNDS = 3
"""The most rounds in which whole arrays are exchanged by them: the smallest may hold the first numbers alone."""
SHARE, EQUAL = 0.12, 0.15
"""The least fraction of an array that is replaced by them, and the fraction replaced by other elements of the array."""
SCHEDULED = "parallelize"
"""The pass after which all kernels have schedules, so that no later pass makes choices."""
L2_BYTES, L3_BYTES = 1 << 12, 1 << 13
"""Caches so small that the factors of small products exceed them, and are packed and split."""


def narrow_target() -> Target:
    """The model of a machine with narrower vectors whose code runs here; or of this one."""
    from mlc.backends.cpu.targets import LEVELS, host
    return next((t for t in LEVELS.values() if host().runs(t) and t.vector_bits < host().vector_bits), host())


def other_steps(module: Op) -> list[Step]:
    """The remaining passes to the llvm level, configured for narrower vectors, smaller caches and larger workloads.

    There are none where the module has its schedules already.
    """
    machine = narrow_target().machine
    assert isinstance(machine, Cpu)
    steps = pipeline.remaining(module, "llvm", replace(machine, l2_bytes=L2_BYTES, l3_bytes=L3_BYTES))
    if not any(step.transform.name == SCHEDULED for step in steps):
        return []
    return [Step(s.transform, (("worth", 1),)) if s.transform.name == SCHEDULED else s for s in steps]


def rounds(arrays: Sequence[Any], together: bool = False) -> Iterator[list[Array]]:
    """Arguments in which some elements are PECULIAR or ENDS, then INTEGERS, in as many rounds as the smallest needs.

    A part of each group comes first, in case that there is no time for all. With `together` all are one group, and
    there is one round, in which only large arrays hold all of them.
    """
    given = [np.array(a) for a in arrays]
    floats, whole = ([i for i, x in enumerate(given) if x.size and is_kind(x)] for is_kind in (_is_float, _is_whole))
    groups = [*PECULIAR, ENDS] if floats else []
    groups = [sum(PECULIAR, ())] if together and floats else groups
    counts = [1 if together else max(math.ceil(len(group) / _capacity(given[i])) for i in floats) for group in groups]
    for round, number in sorted((round, number) for number, count in enumerate(counts) for round in range(count)):
        group, rng = groups[number], np.random.default_rng([number, round])
        yield [_exchanged(x, [group[(round * _capacity(x) + k + i) % len(group)] for k in range(_capacity(x))], rng)
               if i in floats else x.copy() for i, x in enumerate(given)]
    if not whole:
        return
    count = min(INTEGER_ROUNDS, math.ceil(len(INTEGERS) / min(given[i].size for i in whole)))
    for round, part in [(0, SHARE)] if together else [*((round, 1.0) for round in range(count)), (count, SHARE)]:
        yield [_exchanged(x, [INTEGERS[(round * x.size + k + i % 2) % len(INTEGERS)] for k in range(len(INTEGERS))],
                          np.random.default_rng([i, round]), part) if i in whole else x.copy()
               for i, x in enumerate(given)]


def _is_float(x: Array) -> bool:
    return bool(x.dtype.kind == "f" or x.dtype.name == "bfloat16")


def _is_whole(x: Array) -> bool:
    return x.dtype.kind in "iu"


def _capacity(x: Array, part: float = SHARE) -> int:
    """How many elements of an array are exchanged in a round: two, if that leaves as many as they are."""
    return max(1 + (x.size > 3), int(x.size * part))


def _exchanged(x: Array, numbers: Sequence[float], rng: np.random.Generator, part: float = SHARE) -> Array:
    """An array with these numbers, as its type has them, at places of it that nobody chose, and some equal elements."""
    flat = np.where(rng.random(x.size) < EQUAL, rng.permutation(x.reshape(-1)), x.reshape(-1))
    at = rng.permutation(x.size)[: _capacity(x, part)]
    with np.errstate(all="ignore"):
        flat[at] = np.resize(np.array(numbers, np.float64).astype(x.dtype) if _is_float(x) else
                             np.array([_within(int(n), x.dtype) for n in numbers], x.dtype), len(at))
    return flat.reshape(x.shape)


def _within(number: int, dtype: np.dtype[Any]) -> int:
    """The nearest number of a type."""
    info = np.iinfo(dtype)
    return min(max(number, int(info.min)), int(info.max))
