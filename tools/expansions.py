"""Check the expansions of operations one by one: decompositions of composites, formulas of elementary functions.

A program's own numbers seldom reach arguments for which a formula loses digits or overflows, and if they do, later
operations mask it. So each operation is expanded by itself and tested on numbers of all magnitudes.

- The decomposition of a composite agrees with its semantics within rounding, also on rows whose elements are all large,
  equal or infinite: a softmax of 1000s has no infinities.
- The formula of an elementary function is as close to the true value as dialects/tensor/ACCURACY.md says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from mlc import rounding
from mlc.dialects import func
from mlc.dialects.builtin import module as new_module
from mlc.dialects.tensor import linalg
from mlc.dialects.tensor.along_axis import AlongAxis
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.ir import sizes
from mlc.ir.core import Op, at_end
from mlc.ir.diag import Error, Loc
from mlc.ir.interp import Interpreter
from mlc.ir.passes import Step
from mlc.ir.types import FloatType, IntType, TensorType, to_numpy
from mlc.passes.fix_numerics import is_expanded
from mlc.passes.forms import is_composite
from mlc.tools.derivatives import alone
from mlc.tools.neighbours import neighbours, shown_options

Array = np.ndarray[Any, Any]

PASSES = ("decompose", "fix_numerics")
"""The passes whose expansions are checked."""
LARGEST = 1 << 14
"""Limit on the elements of a checked composite."""
SAMPLES = 300
"""Number of arguments of each of the four kinds for an elementary function."""
CLOSE = {"float16": (2e-3, 1e-5), "bfloat16": (2e-2, 1e-4), "float32": (1e-5, 1e-6), "float64": (1e-8, 1e-10)}
"""Relative and absolute tolerance of a decomposition."""
MORE = 4.0
"""Additional tolerance for float64 in units of the last place, since its reference, numpy, is not exact either."""


SORTED = "tensor.search_sorted"
"""Means something for numbers in order only. Left out is linear algebra, too, where any rounding may be magnified."""


def mistake(module: Op, step: Step, numbers: dict[str, int]) -> tuple[str, Loc] | None:
    """The first operation of `module` whose expansion by a pass differs from its meaning: a message and its location.

    numbers  what size symbols stand for
    """
    seen = set[Any]()
    for op in module.walk():
        types = tuple(v.type for v in op.operands)
        key = op.name, types, str(sorted((k, str(v)) for k, v in op.attrs.items() if k != "arg_names"))
        if key in seen or not types or op.regions:
            continue
        seen.add(key)
        message = None
        if step.transform.name == "decompose" and is_composite(op) and not (
                op.name == SORTED or type(op).__module__.startswith(linalg.__name__)):
            message = _of_composite(op, step, numbers) or _of_neighbours(op, step, numbers)
        elif step.transform.name == "fix_numerics" and is_expanded(op):
            message = _of_function(op, step)
        if message is not None:
            return f"{op.name} {message}", op.loc
    return None


# -- composites -------------------------------------------------------------------------------------------------------
def _zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.choice([0.0, -0.0], shape)


FILLS: tuple[Callable[[np.random.Generator, tuple[int, ...]], Array], ...] = (
    _zeros,
    lambda rng, shape: rng.standard_normal(shape),
    lambda rng, shape: rng.standard_normal(shape) * 1000,
    lambda rng, shape: rng.choice([0.0, -0.0, 1.0, -1.0, 2.5, -0.5, 100.0, -200.0, 7.0, -3.0], shape),
    lambda rng, shape: np.where(rng.random(shape) < 0.3, -np.inf, rng.choice([0.0, 1.0, -30.0], shape)),
    lambda rng, shape: np.full(shape, -np.inf),
)
"""Numbers for the operands of a composite, one way after the other. Of zeros, zeros have the signs that they had; what
underflows may be either."""
FINITE = 4
"""So many of them are finite; others are for what says what infinities mean."""


def _shapes(op: Op, numbers: dict[str, int]) -> list[tuple[int, ...]] | None:
    """The shapes of an operation's operands; None where they are no tensors of numbers, or nobody knows."""
    shapes = []
    for v in op.operands:
        if not isinstance(v.type, TensorType) or not isinstance(v.type.dtype, FloatType | IntType):
            return None
        try:
            shapes.append(tuple(sizes.evaluate(d, numbers) for d in v.type.shape))
        except (KeyError, ZeroDivisionError):
            return None
    return shapes


def _of_neighbours(op: Op, step: Step, numbers: dict[str, int]) -> str | None:
    """The same of the operation with other options."""
    shapes = _shapes(op, numbers)
    for other in neighbours(op, shapes) if shapes is not None else ():
        if (message := _of_composite(other, step, {})) is not None:
            return f"{message}, for {shown_options(other)}"
    return None


def _of_composite(op: Op, step: Step, numbers: dict[str, int]) -> str | None:
    if (shapes := _shapes(op, numbers)) is None:
        return None
    if sum(int(np.prod(s)) for s in shapes) > LARGEST:
        return None
    for fill in FILLS if isinstance(op, Elementwise | AlongAxis) else FILLS[:FINITE]:
        rng = np.random.default_rng(0)
        arrays = [_operand(fill, rng, s, v.type.dtype) for s, v in zip(shapes, op.operands)]
        try:
            inside, _, _ = alone(op, arrays, numbers)
            want = Interpreter(inside).run("main", [a.copy() for a in arrays])
            after = inside.clone()
            step.apply(after)
            got = Interpreter(after).run("main", [a.copy() for a in arrays])
        except (Error, np.linalg.LinAlgError):             # an index out of range, or none of these numbers are for it
            continue
        pairs = [*zip(map(np.asarray, got), map(np.asarray, want))]
        if all(_unlike(a, b, 0.0, signs=True) is None for a, b in pairs):
            continue
        for (a, b), slack in zip(pairs, rounding.spread(inside, "main", arrays, [b for _, b in pairs])):
            if message := _unlike(a, b, slack, signs=fill is _zeros):
                return f"becomes what gives {message}"
    return None


def _operand(fill: Callable[..., Array], rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    if isinstance(dtype, FloatType):
        with np.errstate(all="ignore"):
            return np.asarray(fill(rng, shape)).astype(to_numpy(dtype))
    return np.asarray(rng.integers(0, 2, shape)).astype(to_numpy(dtype))     # labels, and indices of what has two


def _unlike(got: Array, want: Array, slack: Array | float, signs: bool) -> str | None:
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} in place of {want.dtype}{list(want.shape)}"
    if got.dtype.name not in CLOSE:
        same = np.asarray(got == want)
    else:
        x, y = got.astype(np.float64), want.astype(np.float64)
        rtol, atol = CLOSE[got.dtype.name]
        with np.errstate(all="ignore"):
            same = np.isclose(x, y, rtol=rtol, atol=atol * max(1.0, float(np.max(
                np.abs(y), initial=0.0, where=np.isfinite(y)))), equal_nan=True)
            same |= (np.abs(x - y) <= slack) & (np.asarray(slack) > 0)
            if signs:
                same &= (x != 0) | (y != 0) | (np.signbit(x) == np.signbit(y))
    if np.all(same):
        return None
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{got[at]} in place of {want[at]} at {list(at)}"


# -- elementary functions ---------------------------------------------------------------------------------------------
def _of_function(op: Op, step: Step) -> str | None:
    """The same of an elementary function, whose formula is the same for all shapes, in units of the last place."""
    from mlc.tools import accuracy
    assert isinstance(op, Elementwise)
    name, format = op.name.removeprefix("tensor."), accuracy.FORMATS[to_numpy(op.operands[0].type.dtype).name]
    bound = _bounds().get(name, {}).get(format.name, op.ulp) + (MORE if format.name == "float64" else 0.0)
    xs = [x.reshape(-1) for x in next(iter(accuracy.arguments(
        name if name in accuracy.NAMES or len(op.operands) == 1 else "atan2", format, SAMPLES, False)))]
    ends = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.0, -3.0, 100.0])
    grid = [x.reshape(-1) for x in np.meshgrid(*[ends] * len(xs))]
    xs = [np.concatenate([x, more.astype(x.dtype)]) for x, more in zip(xs, grid)]
    inside = _flat(op, xs)
    after = inside.clone()
    step.apply(after)
    got, = Interpreter(after).run("main", [x.copy() for x in xs])
    errors = accuracy.errors(type(op).f, xs, np.asarray(got), format)
    i = int(np.argmax(errors))
    if errors[i] <= bound + 0.005:
        return None
    true = np.asarray(type(op).f(*(x[i:i + 1].astype(np.float64) for x in xs)))
    found, wanted = told_apart(float(got[i]), float(true[0]))
    return (f"of {', '.join(str(x[i]) for x in xs)} becomes {found} in place of {wanted}, "
            f"{errors[i]:.3g} units of the last place off; {bound:g} are promised")


def told_apart(a: float, b: float) -> tuple[str, str]:
    """Texts of two numbers, with enough digits to show their difference."""
    texts = ((f"{a:.{n}g}", f"{b:.{n}g}") for n in range(6, 18))
    return next((pair for pair in texts if pair[0] != pair[1]), (repr(a), repr(b)))


def _flat(op: Op, xs: Sequence[Array]) -> Op:
    """A module in which @main is the function of vectors."""
    module = new_module()
    main = func.function("main", [TensorType(x.shape, v.type.dtype) for x, v in zip(xs, op.operands)])
    module.body.block.insert(main)
    with at_end(main.block, op.loc):
        func.Return((type(op)(*main.args).results[0],))
    main.update_type()
    return module


@cache
def _bounds() -> dict[str, dict[str, float]]:
    from mlc.tools import accuracy
    return accuracy.bounds()
