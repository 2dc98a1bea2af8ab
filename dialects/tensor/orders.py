"""Orders of summation in reductions and matrix products, which fix_numerics sets on the operation.

    None        the reference: floats in f64, rounded once at the end
    "chain"     sequentially, in row-major order of the reduced axes, starting from the identity element
    "lanes<L>"  L chains, L a power of two: lane l takes the elements l, l + L, l + 2L ..., starting from the identity
                element, and padded with it to the length of the others. Then a tree reduction:
                lane[i] = lane[i] ∘ lane[i + n/2] for i < n/2, with n = L, L/2 ... 2, and the result is lane[0].
    "lanes<L, S>"
                as lanes<L>, but each lane adds its elements in runs of S: a run starts from the identity element, its
                result is one term of a run of S runs, and so on; the 4th level is a single run. The elements after the
                last multiple of L are combined with the results of their lanes at the end.
    "blocks<B>" of a matrix product: the terms in blocks of B, each a chain of its own; the sums of blocks are added in
                ascending order to a total that starts from +0.0
    "mma<K, T>" of a matrix product in f32, of bf16 or f16 values for T = bf16 or f16, or of f32 truncated to TF32 (10
                bits of mantissa) for T = tf32: the terms in blocks of K. The products of a block, which are exact in
                f64, are added in f64 in ascending order, then to the total, which is rounded to f32 once per block.
                Tensor cores agree up to the last bits: they align the products of a block to the largest one, and
                truncate.
    "pairs<32>" of a matrix product in f32 of values of bf16: the terms in blocks of 32. Those at even places of a block
                are a chain, those at odd places another; the sum of both is added to the total. Subnormal numbers count
                as zeros with their signs: those of factors, of every step, and of the total. It is what the tiles of
                AMX compute.
    "quads<64>" of a matrix product in i32 of bytes, with or without sign: the terms in blocks of 64, as the tiles of
                AMX take them. The sum of integers has the same bits in every order.

A sum starts from +0.0, so that it is never -0.0 unless an operand's own rounding makes it so. A step of the chains of a
matrix product is fma(a, b, total), rounded once; its lanes have no runs, and L divides the number of terms. The
16-bit floats accumulate in f32 and are rounded at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.ir.core import Op
from mlc.ir.diag import IRError
from mlc.ir.exact import flushed, fma

Array = np.ndarray[Any, Any]


LEVELS = 4
"""Nesting levels of runs; the last level is a single run."""


def order_of(op: Op) -> str:
    """The order that a reduction, a scan or a product of matrices has; IRError if it has none."""
    order: str | None = op.attrs.get("order")
    if order is None:
        op.fail("has no order", code="MLC0145", hint='run fix-numerics, or write order = "chain"')
    return order


def lanes_of_product(op: Op) -> int:
    """Lanes that the terms of a product of matrices are added in; 1 for the other orders."""
    return lanes(order) if (order := order_of(op)).startswith("lanes") else 1


def lanes(order: str) -> int:
    """The number of chains: 1 for `chain`, L for `lanes<L>` and `lanes<L, S>`."""
    return _lanes_and_run(order)[0]


def run_length(order: str) -> int:
    """The length of the runs: S for `lanes<L, S>`, 0 if each lane is one chain."""
    return _lanes_and_run(order)[1]


def _lanes_and_run(order: str) -> tuple[int, int]:
    match = re.fullmatch(r"lanes<(\d{1,4})(, (\d{1,4}))?>", "lanes<1>" if order == "chain" else order)
    count, run = (int(match[1]), int(match[3] or 0)) if match else (0, 0)
    if count < 1 or count & (count - 1) or (match is not None and match[3] and run < 2):
        raise IRError(f"order {order!r} is neither chain nor lanes<L> nor lanes<L, S>, L a power of two, S > 1",
                      code="MLC0116")
    return count, run


def reduce_in_order(x: Array, axes: Sequence[int], order: str, combine: np.ufunc, identity: float) -> Array:
    """Reduce `axes` of x (in the accumulator type) by `combine`, with each step rounded to that type."""
    (count, run), last = _lanes_and_run(order), [*range(x.ndim - len(axes), x.ndim)]
    kept = [d for i, d in enumerate(x.shape) if i not in axes]
    length = int(np.prod([x.shape[i] for i in axes], dtype=np.int64))
    rows = _filled(np.moveaxis(x, axes, last).reshape([*kept, length, 1]), count, identity)[..., 0]
    if run == 0:
        return tree(_chain(rows, combine, identity), combine)
    whole = length // count
    chains = rows[..., :whole, :]
    for _ in range(LEVELS - 1):
        chains = _chain(_filled(chains, run, identity), combine, identity)
    chains = _chain(chains, combine, identity)
    if whole < rows.shape[-2]:
        chains = combine(chains, rows[..., whole, :])
    return tree(chains, combine)


def _filled(x: Array, count: int, identity: float) -> Array:
    """The rows of x in groups of `count`, padded with the identity: [.., n, k] -> [.., ceil(n / count), count, k]"""
    *kept, n, width = x.shape
    groups = -(-n // count)
    out = np.full([*kept, groups * count, width], identity, x.dtype)
    out[..., :n, :] = x
    return out.reshape([*kept, groups, count, width])


def _chain(x: Array, combine: np.ufunc, identity: float) -> Array:
    """Combine the rows of x sequentially, starting from the identity: [..., n, k] -> [..., k]."""
    start = np.full([*x.shape[:-2], 1, x.shape[-1]], identity, x.dtype)
    # A ufunc's `accumulate` is sequential, while its `reduce` may be pairwise.
    return np.asarray(combine.accumulate(np.concatenate([start, x], axis=-2), axis=-2)[..., -1, :])


def terms_in_block(order: str) -> int | None:
    """B of `blocks<B>`; None for the other orders."""
    match = re.fullmatch(r"blocks<([1-9]\d{0,4})>", order)
    return int(match[1]) if match else None


def terms_of_mma(order: str) -> tuple[int, str] | None:
    """K and T of `mma<K, T>`; None for the other orders."""
    match = re.fullmatch(r"mma<(16(?=, b?f16)|8(?=, tf32)), (bf16|f16|tf32)>", order)
    return (int(match[1]), match[2]) if match else None


def terms_of_pairs(order: str) -> int | None:
    """The terms of a block of `pairs<32>`; None for the other orders."""
    return 32 if order == "pairs<32>" else None


def terms_of_tiles(order: str) -> int | None:
    """The terms of a block of `pairs<32>` or `quads<64>`, as the tiles of AMX take; None for the other orders."""
    return 64 if order == "quads<64>" else terms_of_pairs(order)


def block_of_matrices(order: str) -> int | None:
    """The terms of a block of `mma<K, T>`, `pairs<32>` or `quads<64>`, of which products have whole ones; or None."""
    block = terms_of_mma(order)
    return terms_of_tiles(order) if block is None else block[0]


def tf32(x: Array) -> Array:
    """f32 truncated to TF32, as in tensor cores: without its last 13 bits."""
    truncated: Array = (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return truncated


def mma(total: Array, lhs: Array, rhs: Array) -> Array:
    """total[..] + the sum of lhs[.., k] * rhs[.., k], in f64 in ascending order, rounded to f32 once."""
    with np.errstate(all="ignore"):
        sums: Array = np.zeros((), np.float64)
        for k in range(lhs.shape[-1]):
            sums = sums + lhs[..., k].astype(np.float64) * rhs[..., k].astype(np.float64)
        return (total.astype(np.float64) + sums).astype(np.float32)


def pairs(total: Array, lhs: Array, rhs: Array) -> Array:
    """total[..] + the sums of lhs[.., k] * rhs[.., k] for even k and for odd k, one block of `pairs<32>`."""
    chains = []
    with np.errstate(all="ignore"):
        lhs, rhs = flushed(lhs.astype(np.float32)), flushed(rhs.astype(np.float32))
        for first in range(2):
            chain = np.zeros((), np.float32)
            for k in range(first, lhs.shape[-1], 2):
                chain = flushed(fma(lhs[..., k], rhs[..., k], chain))
            chains.append(chain)
        return flushed(flushed(total) + flushed(chains[0] + chains[1]))


def dot_in_order(lhs: Array, rhs: Array, order: str) -> Array:
    """result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, n, k], in f32 or f64, in the given order."""
    if (terms := terms_in_block(order)) is not None:
        total = np.zeros([lhs.shape[0], lhs.shape[1], rhs.shape[1]], lhs.dtype)
        for k in range(0, lhs.shape[-1], terms):
            total = total + dot_in_order(lhs[..., k: k + terms], rhs[..., k: k + terms], "chain")
        return total
    if (block := terms_of_mma(order)) is not None:
        total = np.zeros([lhs.shape[0], lhs.shape[1], rhs.shape[1]], np.float32)
        if block[1] == "tf32":
            lhs, rhs = tf32(lhs), tf32(rhs)
        for k in range(0, lhs.shape[-1], block[0]):
            total = mma(total, lhs[:, :, None, k: k + block[0]], rhs[:, None, :, k: k + block[0]])
        return total
    if (pair_terms := terms_of_pairs(order)) is not None:
        total = np.zeros([lhs.shape[0], lhs.shape[1], rhs.shape[1]], np.float32)
        for k in range(0, lhs.shape[-1], pair_terms):
            total = pairs(total, lhs[:, :, None, k: k + pair_terms], rhs[:, None, :, k: k + pair_terms])
        return total
    if (count := lanes(order)) > 1:
        chains = np.zeros([lhs.shape[0], lhs.shape[1], rhs.shape[1], count], lhs.dtype)
        for k in range(0, lhs.shape[-1], count):
            chains = np.asarray(fma(lhs[:, :, None, k: k + count], rhs[:, None, :, k: k + count], chains))
        return tree(chains, np.add)
    total = np.zeros([lhs.shape[0], lhs.shape[1], rhs.shape[1]], lhs.dtype)
    for k in range(lhs.shape[-1]):
        total = np.asarray(fma(lhs[:, :, None, k], rhs[:, None, :, k], total))
    return total


def tree(chains: Array, combine: Callable[..., Any]) -> Array:
    """Tree reduction of the last axis: combine the upper half into the lower until one lane remains."""
    with np.errstate(all="ignore"):
        while (half := chains.shape[-1] // 2) > 0:
            chains = combine(chains[..., :half], chains[..., half:])
    return np.asarray(chains[..., 0])
