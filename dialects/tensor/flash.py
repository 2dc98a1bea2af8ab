"""tensor, attention a block of keys at a time, which targets with a kernel for it compute in place of the composite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from mlc.dialects.tensor.attention import Attention, AttentionGrad
from mlc.dialects.tensor.base import Array, TensorOp, again, rounded, shape_text, with_batch_axis
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain
from mlc.dialects.tensor.orders import mma
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.exact import fma
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, bf16, f16


class Blockwise(TensorOp):
    """An operation on scores of which tensor cores compute a block at a time.

    block      rows that are taken at a time of the operand that a loop goes through
    copied     the number of operands, the first ones, whose rows are copied to shared memory
    composite  the same but for rounding, in operations that all machines have
    """

    cost = Cost.EXPENSIVE
    iteration = Iteration.CONTRACT
    moves_elements = False
    checked_operand = None
    copied: ClassVar[int]

    @property
    def factor(self) -> float:
        """c = scale * log2(e), rounded to f32, by which scores are exponents of 2."""
        return factor_of(self.attrs["scale"])

    def check_blocks(self) -> None:
        """Refuse a scale or a block that kernels do not have."""
        scale, block = self.attrs["scale"], self.attrs["block"]
        if not has_factor(scale) or block < 1 or block & (block - 1):
            self.refuse(f"scale = {scale} and block = {block}: a positive number that f32 has, and a power of two",
                        "MLC0113")

    def composite(self) -> Value:
        raise NotImplementedError

    @property
    def others(self) -> Value:
        """The operand whose rows a loop goes through."""
        return self.operands[1]

    def iteration_domain(self) -> IterationDomain:
        """The dimensions of the result, then the rows that a loop goes through, then the terms of a score."""
        shape = self.result.type.shape
        return IterationDomain((*shape, *self.others.type.shape[-2:]), (len(shape), len(shape) + 1))

    def combining_name(self) -> str:
        return "add"

    def home(self, domain: IterationDomain) -> tuple[Dim, ...]:
        return tuple(domain.points[d] for d in domain.parallel)

    def fold(self) -> Value | Array | None:
        arrays = self.constants()
        return None if arrays is None else np.asarray(self.ref(*arrays))

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return again(self, with_batch_axis(batch_size, operands, batched))  # type: ignore[no-any-return]


class FlashAttention(Blockwise, name="tensor.flash_attention"):
    """result[b, f, i] = the attention of query i to k[b] and v[b], a `block` of keys at a time, by tensor cores

    For each block of keys, in ascending order, with c = scale * log2(e) rounded to f32:

        s[j] = q[b, f, i] . k[b, j], or -inf if `causal` and j > i
        m' = max(m, max of s), t = m', or 0 if m' is -inf, r = 2^((m - t) * c)
        w[j] = 2^((s[j] - t) * c)
        l' = l * r + the sum of w, as a tree
        o' = o * r + the sum of w[j], rounded to the type of v, times v[b, j]

    and at last o / l, or 0 if l is. It begins with m = -inf, l = o = 0. Products are sums in f64, rounded to f32 once;
    hardware differs from that, and from 2^x, in the last bits. This is FlashAttention-2 (Dao 2023).

        %r = tensor.flash_attention %q, %k, %v {scale = 0.5} : (tensor<2x4xbf16>, tensor<3x4xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16>
    """  # noqa: E501

    q: Value
    k: Value
    v: Value
    scale: float
    causal: bool = False
    block: int = 64
    format = "$q `,` $k `,` $v attr-dict `:` functional-type"
    copied = 3

    def infer(self) -> TensorType:
        q, k, v = (x.type for x in self.operands)
        if not q.dtype == k.dtype == v.dtype or q.dtype not in (bf16, f16) or min(q.rank, k.rank, v.rank) < 2:
            self.refuse(f"takes matrices of bf16 or f16, not {q}, {k} and {v}", "MLC0113")
        batch = k.shape[:-2]
        if q.shape[: len(batch)] != batch or q.rank < k.rank or (
                q.shape[-1] != k.shape[-1] or v.shape[:-1] != k.shape[:-1]):
            shapes = ", ".join(shape_text(t.shape) for t in (q, k, v))
            self.refuse(f"queries, keys and values of shapes {shapes} do not fit", "MLC0115",
                        symbols=sizes.differing((*q.shape[: len(batch)], q.shape[-1], *v.shape[:-1]),
                                                (*batch, k.shape[-1], *k.shape[:-1])))
        self.check_blocks()
        return q.with_shape((*q.shape[:-1], v.shape[-1]))  # type: ignore[no-any-return]

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        if domain != self.iteration_domain():
            return (None,) * 3
        key, term = (domain.points[d] for d in domain.reduced)
        batch = at[: self.k.type.rank - 2]
        return (*at[:-1], term), (*batch, key, term), (*batch, key, at[-1])

    def ref(self, q: Any, k: Any, v: Any) -> Array:
        extra = (slice(None),) * (k.ndim - 2) + (None,) * (q.ndim - k.ndim)
        q, k, v = np.asarray(q), np.asarray(k)[extra], np.asarray(v)[extra]
        rows, count = q.shape[:-1], k.shape[-2]
        top = np.full((*rows, 1), -np.inf, np.float32)
        total, sums = np.zeros((*rows, 1), np.float32), np.zeros((*rows, v.shape[-1]), np.float32)
        with np.errstate(all="ignore"):
            for start in range(0, count, self.block):
                top, total, sums = self._step(q, k, v, start, top, total, sums)
            found = sums / np.where(total == 0, np.float32(1), total)
        return rounded(found, self.q.type.dtype)

    def _step(self, q: Array, k: Array, v: Array, start: int, top: Array, total: Array,
               sums: Array) -> tuple[Array, Array, Array]:
        """The largest score, the sum of weights and that of values after one more block of keys."""
        stop, c = min(start + self.block, k.shape[-2]), np.float32(self.factor)
        k, v = k[..., start: stop, :], v[..., start: stop, :]
        scores = np.full((*q.shape[:-1], self.block), -np.inf, np.float32)
        zero = np.zeros((*q.shape[:-1], stop - start), np.float32)
        scores[..., : stop - start] = mma(zero, q[..., :, None, :], k[..., None, :, :])
        if self.causal:
            later = np.arange(start, start + self.block) > np.arange(q.shape[-2])[:, None]
            scores = np.where(later, np.float32(-np.inf), scores)
        higher = np.maximum(top, scores.max(-1, keepdims=True))
        shift = np.where(higher == -np.inf, np.float32(0), higher)
        rate = exp2((top - shift) * c)
        weights = exp2((scores - shift) * c)
        narrow = rounded(weights, self.v.type.dtype)[..., : stop - start]
        return higher, fma(total, rate, tree(weights)), mma(
            sums * rate, narrow[..., None, :], np.swapaxes(v, -1, -2)[..., None, :, :])

    def composite(self) -> Value:
        return Attention(self.q, self.k, self.v, None, self.scale, self.causal).result

    def vjp(self, ct: Value) -> list[Value | None]:
        return list(AttentionGrad(self.q, self.k, self.v, self.result, ct, None, self.scale, self.causal).results)


def factor_of(scale: float) -> float:
    """By what scores are exponents of 2."""
    with np.errstate(over="ignore"):
        return float(np.float32(scale * math.log2(math.e)))


def has_factor(scale: float) -> bool:
    """Whether that is a positive number: with 0 a score of -inf would be NaN, and with an infinite one a score of 0."""
    return 0 < factor_of(scale) < math.inf


def exp2(x: Array) -> Array:
    """2^x in f32, correctly rounded but for ties that f64 does not tell."""
    return np.exp2(x.astype(np.float64)).astype(np.float32)


def tree(x: Array) -> Array:
    """The sum along the last axis, whose halves are added until one is left."""
    while x.shape[-1] > 1:
        low, high = np.split(x, 2, axis=-1)
        x = low + high
    return x


