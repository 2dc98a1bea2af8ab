"""Further checks of a program: the lowering that other hardware would choose, and other numbers.

A fault of one schedule does not show in another, nor one of an infinity where there is none. So a module is lowered a
second time, and run on its own arguments with some of their elements exchanged, in rounds: each argument holds each
number of PECULIAR in some round, also one that is a scalar. Few numbers go into one round, ordinary ones into the
first: a NaN hides whatever else happens to a sum, and an overflow excuses a formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.ir.core import Op
from mlc.ir.passes import Step
from mlc.passes import pipeline

if TYPE_CHECKING:
    from mlc.backends.target import Target

Array = np.ndarray[Any, Any]

PECULIAR: tuple[tuple[float, ...], ...] = (
    (0.0, 1.0, 100.0, -3.0), (-0.0, -1.0, 0.5, -200.0, 2.5), (math.inf, 1e4), (-math.inf, 0.0), (math.nan, -1e4))
"""Numbers that some formula of some function has trouble with: those of one round each, where arrays have the room."""
ENDS = (1e-40, -1e-310, 3e38, -1e300, 65504.0, 3e-8)
"""Denormal, or next to the greatest, of some float: a round by themselves, as what a formula squares overflows."""
INTEGERS = (0, -1, 1, -2**63, 2**63 - 1, 31, 32, -7, 255, 3)
"""The same for integers, the ends of their type among them; where they are indices, a program and its code raise."""
SHARE, EQUAL = 0.12, 0.15
"""Which part of an array is exchanged for them, at the least; and which part for other elements of it."""
SCHEDULED = "parallelize"
"""The pass after which kernels have their schedules: nothing below chooses."""


def narrow_target() -> Target:
    """A machine with narrower vectors than this one, whose code runs here; or this one."""
    from mlc.backends.cpu.targets import LEVELS, host
    return next((t for t in LEVELS.values() if host().runs(t) and t.vector_bits < host().vector_bits), host())


def other_steps(module: Op) -> list[Step]:
    """The passes from where a module stands to the llvm level, as they would be for narrower vectors and more work.

    There are none where the module has its schedules already.
    """
    steps = pipeline.remaining(module, "llvm", narrow_target().machine)
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
    for part in (SHARE,) if whole and together else (1.0, SHARE) if whole else ():
        yield [_exchanged(x, INTEGERS[i % 2:], np.random.default_rng(i), part) if i in whole else x.copy()
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
    """The number of a type that is next to this one."""
    info = np.iinfo(dtype)
    return min(max(number, int(info.min)), int(info.max))
