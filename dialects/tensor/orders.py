"""The orders in which reductions and products add, as fix_numerics writes them on the operation.

    None        the reference: floats in f64, rounded once at the end
    "chain"     one element after the other, in row-major order of the reduced axes, starting from the identity
    "lanes<L>"  L chains, L a power of two: lane l takes the elements l, l + L, l + 2L ..., each lane starting from the
                identity and all of them equally long, the identity standing for elements past the end. Then
                lane[i] = lane[i] ∘ lane[i + n/2] for i < n/2, with n = L, L/2 ... 2, and the result is lane[0].
    "blocks<B>" of a product of matrices: the terms in blocks of B, each a chain of its own; the blocks' sums are added
                in ascending order to a total that starts from +0.0

A sum starts from +0.0, so that it is never -0.0 unless an operand's own rounding makes it so. In a product of
matrices a step is fma(a, b, lane), rounded once. The 16-bit floats accumulate in f32 and are rounded at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.ir.diag import IRError
from mlc.ir.exact import fma

Array = np.ndarray[Any, Any]


def lanes(order: str) -> int:
    """The number of chains: 1 for `chain`, L for `lanes<L>`."""
    if order == "chain":
        return 1
    match = re.fullmatch(r"lanes<(\d{1,4})>", order)
    count = int(match[1]) if match else 0
    if count < 1 or count & (count - 1):
        raise IRError(f"order {order!r} is neither chain nor lanes<L>, L a power of two", code="MLC0116")
    return count


def reduce_in_order(x: Array, axes: Sequence[int], order: str, combine: np.ufunc, identity: float) -> Array:
    """Reduce `axes` of x (of the accumulator's type) by `combine`, each step rounded to that type."""
    count, last = lanes(order), [*range(x.ndim - len(axes), x.ndim)]
    kept = [d for i, d in enumerate(x.shape) if i not in axes]
    length = int(np.prod([x.shape[i] for i in axes], dtype=np.int64))
    steps = -(-length // count)
    rows = np.moveaxis(x, axes, last).reshape([*kept, length])
    padded = np.full([*kept, (steps + 1) * count], identity, x.dtype)
    padded[..., count: count + length] = rows
    # A ufunc's `accumulate` is the sequential chain, where its `reduce` may work in pairs.
    chains = combine.accumulate(padded.reshape([*kept, steps + 1, count]), axis=-2)[..., -1, :]
    return _tree(chains, combine)


def terms_in_block(order: str) -> int | None:
    """B of `blocks<B>`; None for the other orders."""
    match = re.fullmatch(r"blocks<([1-9]\d{0,4})>", order)
    return int(match[1]) if match else None


def dot_in_order(lhs: Array, rhs: Array, order: str) -> Array:
    """result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, n, k], in f32 or f64, by chains of fma."""
    if (terms := terms_in_block(order)) is not None:
        total = np.zeros([lhs.shape[0], lhs.shape[1], rhs.shape[1]], lhs.dtype)
        for k in range(0, lhs.shape[-1], terms):
            total = total + dot_in_order(lhs[..., k: k + terms], rhs[..., k: k + terms], "chain")
        return total
    count = lanes(order)
    length = lhs.shape[-1]
    shape = [lhs.shape[0], lhs.shape[1], rhs.shape[1], count]
    chains = np.zeros(shape, lhs.dtype)
    for k in range(0, length, count):
        width = min(count, length - k)          # a missing element leaves its lane as it is: fma(0, 0, lane) == lane
        a, b = lhs[:, :, None, k: k + width], rhs[:, None, :, k: k + width]
        chains[..., :width] = fma(a, b, chains[..., :width])
    return _tree(chains, np.add)


def _tree(chains: Array, combine: Callable[..., Any]) -> Array:
    """The lanes of the last axis combined, the upper half onto the lower until one remains."""
    with np.errstate(all="ignore"):
        while (half := chains.shape[-1] // 2) > 0:
            chains = combine(chains[..., :half], chains[..., half:])
    return np.asarray(chains[..., 0])
