"""Reductions of windows by a region, and the scattering to what a window selects.

The elements of a window are combined along one dimension after the other, in spans that double: the windows of 1, 2, 4,
... elements, which make up any number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.frontend.stablehlo.calls import custom
from mlc.frontend.stablehlo.contractions import pairs
from mlc.frontend.stablehlo.elementwise import full, over_elements
from mlc.frontend.stablehlo.moving import padded
from mlc.frontend.stablehlo.reductions import Body, elementwise, kind_of
from mlc.frontend.stablehlo.scattering import add_each
from mlc.frontend.stablehlo.table import row
from mlc.frontend.symint import plain_sizes
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step


@row("stablehlo.reduce_window")
def reduce_window(step: Step, *operands: Any) -> tuple[Any, ...]:
    op, count = step.op, len(operands) // 2
    xs, inits = list(operands[:count]), operands[count:]
    if not xs or len(operands) % 2:
        op.wrong("it has no initial value for each operand")
    rank = len(xs[0].shape)
    window = op.ints("window_dimensions")
    strides, base = op.ints("window_strides", [1] * rank), op.ints("base_dilations", [1] * rank)
    dilation, padding = op.ints("window_dilations", [1] * rank), pairs(step, op.get("padding"), rank)
    if any(tuple(x.shape) != tuple(xs[0].shape) for x in xs) or any(len(x.shape) for x in inits):
        op.wrong("its operands have different sizes, or an initial value is no number")
    if any(len(p) != rank for p in (window, strides, base, dilation)) \
            or any(n < 1 for n in (*window, *strides, *base, *dilation)):
        op.wrong(f"its window is none of {rank} dimensions")
    xs = [padded(step, x, init, [p[0] for p in padding], [p[1] for p in padding], [b - 1 for b in base])
          for x, init in zip(xs, inits)]
    body = elementwise(step.body())
    if count == 1 and kind_of(op.regions[0], xs[0].dtype) == "sum" and xs[0].dtype.name in ("float16", "bfloat16"):
        wide = windows(lambda a, b: (O["add"](a, b),), [O["cast"](xs[0], "float32")], window, strides, dilation)
        return body(O["broadcast_to"](inits[0], wide[0].shape), O["cast"](wide[0], xs[0].dtype))
    found = windows(body, xs, window, strides, dilation)
    return body(*(O["broadcast_to"](init, x.shape) for init, x in zip(inits, found)), *found)


CUMULATIVE = {"sum": lambda x, axis: O["cumsum"](x, axis), "prod": lambda x, axis: O["cumprod"](x, axis),
              "amax": lambda x, axis: O["cummax"](x, axis)[0], "amin": lambda x, axis: O["cummin"](x, axis)[0]}
"""Cumulative operations, by the reductions whose kind they have."""


@custom("stablehlo.dynamic_reduce_window")
def dynamic_reduce_window(step: Step, x: Any, init: Any, *more: Any) -> Any:
    """Windows of as many elements as a dimension has, which begin before the first or end behind the last."""
    op, rank = step.op, len(x.shape)
    if len(more) != 5:
        op.wrong(f"it has {len(more) + 2} operands, and takes 7")
    window, *steps, padding = (step.known(i) for i in range(2, 7))
    if any(not _same(n, 1) for numbers in steps for n in numbers) or len(window) != rank or len(padding) != 2 * rank:
        op.refuse("windows other than those of cumulative operations")
    axes = [a for a, n in enumerate(window) if not _same(n, 1)]
    around = list(zip(padding[::2], padding[1::2]))
    others = [pair for a, pair in enumerate(around) if a not in axes]
    n = x.shape[axes[0]] if len(axes) == 1 else 0
    if len(axes) != 1 or not _same(window[axes[0]], n) or any(not _same(d, 0) for pair in others for d in pair):
        op.refuse("windows other than those of cumulative operations")
    low, high = around[axes[0]]
    backward = _same(low, 0) and _same(high, n - 1)
    names = op.get("called_computations")
    single = isinstance(names, list | tuple) and len(names) == 1
    function = step.interpreter.functions.get(str(names[0])) if single else None
    forward = _same(high, 0) and _same(low, n - 1)
    if not (backward or forward) or function is None or function.body is None:
        op.refuse("windows other than those of cumulative operations")
    kind = kind_of(function.body, x.dtype)
    if kind not in CUMULATIVE:
        op.refuse("windows whose combination is no sum, product, maximum or minimum")
    found = O["flip"](x, (axes[0],)) if backward else x
    found = CUMULATIVE[kind](found, axes[0])
    found = O["flip"](found, (axes[0],)) if backward else found
    return elementwise(lambda *xs: step.interpreter.call(function, xs))(O["broadcast_to"](init, x.shape), found)[0]


def _same(a: Any, b: Any) -> bool:
    """Whether two sizes are known to be equal."""
    return bool(plain_sizes(a) == plain_sizes(b))


def windows(body: Body, xs: Sequence[Any], window: Sequence[int], strides: Sequence[int],
            dilation: Sequence[int]) -> tuple[Any, ...]:
    """Combinations of the elements of each window, in row-major order: the last dimension first."""
    found = tuple(xs)
    for axis, (size, stride, step) in reversed(list(enumerate(zip(window, strides, dilation)))):
        found = _along(body, found, axis, size, step)
        found = tuple(x[(slice(None),) * axis + (slice(None, None, stride),)] if stride > 1 else x for x in found)
    return found


def _along(body: Body, xs: tuple[Any, ...], axis: int, size: int, step: int) -> tuple[Any, ...]:
    """The windows of `size` elements, `step` apart, along an axis."""
    length = max(xs[0].shape[axis] - (size - 1) * step, 0)

    def part(ys: tuple[Any, ...], start: int, n: int) -> tuple[Any, ...]:
        return tuple(y[(slice(None),) * axis + (slice(start, start + n),)] for y in ys)

    if not length:
        return part(xs, 0, 0)
    spans, span = xs, 1                                    # what the elements of windows of `span` combine to
    done: tuple[Any, ...] | None = None
    covered = 0
    while True:
        if size & span:
            piece = part(spans, covered * step, length)
            done = piece if done is None else body(*done, *piece)
            covered += span
        if covered == size:
            assert done is not None
            return done
        n = spans[0].shape[axis] - span * step
        spans = body(*part(spans, 0, n), *part(spans, span * step, n))
        span *= 2


@row("stablehlo.select_and_scatter")
def select_and_scatter(step: Step, x: Any, source: Any, init: Any) -> Any:
    """Each element of the source goes to the element that the first region selects in a window of the operand."""
    op, rank = step.op, len(x.shape)
    window = op.ints("window_dimensions", [1] * rank)
    strides, padding = op.ints("window_strides", [1] * rank), pairs(step, op.get("padding"), rank)
    if len(window) != rank or len(strides) != rank or any(n < 1 for n in (*window, *strides)):
        op.wrong(f"its window is none of {rank} dimensions")
    low, high = [p[0] for p in padding], [p[1] for p in padding]
    count = math.prod(x.shape)
    numbers = O["reshape"](O["arange"](count), x.shape)
    nowhere = full(-1, numbers)                            # the number of an element of the padding
    values = padded(step, x, init if init.dtype is x.dtype else full(0, x), low, high, [0] * rank)
    numbers = padded(step, numbers, nowhere, low, high, [0] * rank)
    chooses = step.body(0)

    def better(a: Any, i: Any, b: Any, j: Any) -> tuple[Any, ...]:
        first = over_elements(chooses, (a, b))[0]
        none = full(-1, i)
        keep = O["where"](O["eq"](i, none), O["zeros_like"](first), O["logical_or"](first, O["eq"](j, none)))
        return O["where"](keep, a, b), O["where"](keep, i, j)

    _, chosen = windows(better, (values, numbers), window, strides, [1] * rank)
    if tuple(chosen.shape) != tuple(source.shape):
        op.wrong(f"there are {list(map(str, chosen.shape))} windows, and the source has {list(map(str, source.shape))}")
    start = O["broadcast_to"](init, (count,))
    found = add_each(step.body(1), op.regions[1], (start,), O["reshape"](chosen, (-1,)),
                     (O["reshape"](source, (-1,)),))[0]
    return O["reshape"](found, x.shape)
