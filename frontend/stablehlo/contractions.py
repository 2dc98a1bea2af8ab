"""Matrix products and convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.frontend.dtypes import of_ir
from mlc.frontend.stablehlo.elementwise import converted, full
from mlc.frontend.stablehlo.moving import padded, spread
from mlc.frontend.stablehlo.table import row
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step


@row("stablehlo.dot_general")
def dot_general(step: Step, x: Any, y: Any) -> Any:
    """A batch of matrix products: batch dimensions, then the free ones of either operand."""
    dims = step.op.need("dot_dimension_numbers")
    if not isinstance(dims, dict):
        step.op.wrong("dot_dimension_numbers is no #stablehlo.dot")
    batch = [list(dims.get(f"{side}_batching_dimensions", ())) for side in ("lhs", "rhs")]
    summed = [list(dims.get(f"{side}_contracting_dimensions", ())) for side in ("lhs", "rhs")]
    for axes, z in zip((batch[0] + summed[0], batch[1] + summed[1]), (x, y)):
        if len(set(axes)) != len(axes) or any(not isinstance(a, int) or not 0 <= a < len(z.shape) for a in axes):
            step.op.wrong(f"{axes} are no dimensions of {len(z.shape)}")
    if len(batch[0]) != len(batch[1]) or len(summed[0]) != len(summed[1]):
        step.op.wrong("the operands have different numbers of dimensions that are summed or of a batch")
    wanted = of_ir(step.op.array.dtype)
    return product(converted(x, wanted), converted(y, wanted), batch, summed)


def product(x: Any, y: Any, batch: Sequence[Sequence[int]], summed: Sequence[Sequence[int]]) -> Any:
    """The product over axes of two tensors of one dtype."""
    free = [[a for a in range(len(z.shape)) if a not in (*b, *s)] for z, b, s in zip((x, y), batch, summed)]
    left = O["permute"](x, [*batch[0], *free[0], *summed[0]])
    right = O["permute"](y, [*batch[1], *summed[1], *free[1]])
    around = tuple(x.shape[a] for a in batch[0])
    rows, columns = tuple(x.shape[a] for a in free[0]), tuple(y.shape[a] for a in free[1])
    inner = math.prod(x.shape[a] for a in summed[0])
    left = O["reshape"](left, (*around, math.prod(rows), inner))
    right = O["reshape"](right, (*around, inner, math.prod(columns)))
    if x.dtype.name == "bool":
        found = O["any"](O["logical_and"](O["unsqueeze"](left, -1), O["unsqueeze"](right, -3)), -2)
    else:
        found = O["matmul"](left, right)
    return O["reshape"](found, (*around, *rows, *columns))


@row("stablehlo.dot")
def dot(step: Step, x: Any, y: Any) -> Any:
    wanted = of_ir(step.op.array.dtype)
    return O["matmul"](converted(x, wanted), converted(y, wanted))


@row("stablehlo.convolution")
def convolution(step: Step, x: Any, w: Any) -> Any:
    count = len(x.shape) - 2
    return convolved(step, x, w, pairs(step, step.op.get("padding"), count))


@row("stablehlo.dynamic_conv")
def dynamic_convolution(step: Step, x: Any, w: Any, padding: Any) -> Any:
    flat = step.known(2)
    return convolved(step, x, w, list(zip(flat[::2], flat[1::2])))


def pairs(step: Step, found: Any, count: int) -> list[tuple[int, int]]:
    """Padding before and behind each dimension."""
    if found is None:
        return [(0, 0)] * count
    rows = found.tolist() if hasattr(found, "tolist") else found
    if not isinstance(rows, list | tuple):
        rows = [[rows, rows]] * count                      # a splat
    if len(rows) != count or any(not isinstance(r, list | tuple) or len(r) != 2
                                 or not all(isinstance(n, int) for n in r) for r in rows):
        step.op.wrong(f"padding is no pair of integers for each of {count} dimensions")
    return [(a, b) for a, b in rows]


def convolved(step: Step, x: Any, w: Any, padding: Sequence[Any]) -> Any:
    """mlc's convolution of operands whose dimensions are brought into its order: batch, features, space."""
    op, count = step.op, len(x.shape) - 2
    lhs, rhs, out = _layouts(step, count)
    wanted = of_ir(op.array.dtype)
    x = converted(O["permute"](x, lhs), wanted)
    w = converted(O["permute"](w, rhs), wanted)
    strides, gaps = op.ints("window_strides", [1] * count), op.ints("lhs_dilation", [1] * count)
    dilation = op.ints("rhs_dilation", [1] * count)
    reversal = op.get("window_reversal") or [False] * count
    flags = reversal.tolist() if hasattr(reversal, "tolist") else list(reversal)
    if any(len(p) != count for p in (strides, gaps, dilation, flags, padding)) \
            or any(n < 1 for n in (*strides, *gaps, *dilation)):
        op.wrong(f"its window is none of {count} dimensions")
    if axes := [2 + i for i, f in enumerate(flags) if f]:
        w = O["flip"](w, axes)
    zero = full(0, x)
    for i, gap in enumerate(gaps):
        x = spread(x, zero, 2 + i, gap - 1)
    low, high = [0, 0, *(p[0] for p in padding)], [0, 0, *(p[1] for p in padding)]
    x = padded(step, x, zero, low, high, [0] * (count + 2))
    groups, batches = int(op.get("feature_group_count", 1)), int(op.get("batch_group_count", 1))
    if groups < 1 or batches < 1 or (groups > 1 and batches > 1):
        op.wrong("the numbers of groups are positive, and one of them is 1")
    if batches > 1:                                        # the groups of the batch are groups of features
        x = _split_batch(x, batches)
        groups = batches
    found = _sum_of_products(x, w, strides, dilation, groups)
    inverse = [out.index(a) for a in range(count + 2)]
    return O["permute"](found, inverse)


def _split_batch(x: Any, groups: int) -> Any:
    n, c, *space = x.shape
    x = O["reshape"](x, (groups, n // groups, c, *space))
    x = O["permute"](x, [1, 0, 2, *range(3, 3 + len(space))])
    return O["reshape"](x, (n // groups, groups * c, *space))


def _sum_of_products(x: Any, w: Any, strides: Sequence[int], dilation: Sequence[int], groups: int) -> Any:
    """A convolution without padding of (batch, features, space) by (features, features of a group, window)."""
    count = len(strides)
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
    sizes = [_windows(n, span, s) for n, span, s in zip(x.shape[2:], spans, strides)]
    if 1 <= count <= 3 and x.dtype.is_floating_point and 0 not in (*x.shape, *w.shape, *sizes):
        return O[f"conv{count}d"](x, w, None, list(strides), 0, list(dilation), groups)
    n, features = x.shape[0], w.shape[0]
    x = O["reshape"](x, (n, groups, x.shape[1] // groups, *x.shape[2:]))
    w = O["reshape"](w, (groups, features // groups, *w.shape[1:]))
    found = full(0, x) if count else None
    import itertools
    for at in itertools.product(*(range(k) for k in w.shape[3:])):
        part = x[(slice(None),) * 3 + tuple(slice(i * d, i * d + (m - 1) * s + 1, s) if m else slice(0, 0)
                                            for i, d, s, m in zip(at, dilation, strides, sizes))]
        column = w[(slice(None),) * 3 + at]
        term = product(column, part, [[0], [1]], [[2], [2]])  # groups, features, batch, space
        found = term if found is None or not found.shape else O["add"](found, term)
    assert found is not None
    found = O["permute"](found, [2, 0, 1, *range(3, 3 + count)]) if found.shape else O["broadcast_to"](
        found, (n, groups, features // groups, *sizes))
    return O["reshape"](found, (n, features, *sizes))


def _windows(n: Any, span: int, stride: int) -> Any:
    """The number of windows along a dimension."""
    return max((n - span) // stride + 1, 0) if isinstance(n, int) else (n - span) // stride + 1


def _layouts(step: Step, count: int) -> tuple[list[int], list[int], list[int]]:
    """The dimensions of input, kernel and output in mlc's order."""
    found = step.op.need("dimension_numbers")
    orders = []
    try:
        for part, letters in zip(found, ("bf", "oi", "bf")):
            orders.append([part.index(x) for x in (*letters, *range(count))])
    except (ValueError, AttributeError):
        step.op.wrong("the dimension numbers are those of another convolution")
    return orders[0], orders[1], orders[2]
