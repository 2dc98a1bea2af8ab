"""Compute attention to long sequences in blocks of queries.

takes  DIFFERENTIATED
gives  DIFFERENTIATED: what a target has a kernel for is `tensor.flash_attention`
why    the weights of all pairs of queries and keys take memory in proportion to the square of the length; those of a
       block stay in cache from one product to the next

An operation whose scores take more than `most` bytes becomes a loop over heads, and within it one over queries. Each
turn has an operation of the same kind on a part of the queries and all of their keys, so that nothing is added up
across blocks but the cotangents of keys and values. It is FlashAttention (Dao et al. 2022) but for that: a block there
has some keys only, and corrects what it has added up so far.

If it is causal, there is a loop for each quarter of the queries, which has no later keys than they. So keys and values
that have no part in a result are not read either: where they are NaN, it is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mlc.dialects import arith, tensor
from mlc.dialects.tensor.attention import Attention, AttentionGrad, scores_shape
from mlc.dialects.tensor.base import accumulator, cast, compare, full, reshape, select
from mlc.dialects.tensor.control import for_loop, from_index
from mlc.dialects.tensor.flash import FlashAttention, has_factor
from mlc.dialects.tensor.flash_grad import AttentionStatistics, FlashAttentionGrad
from mlc.ir.changes import allowed
from mlc.ir.core import Op, Value, before
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim
from mlc.ir.types import ScalarType, bf16, f16, f32, i1, i64, index, to_numpy
from mlc.passes.forms import DIFFERENTIATED

QUARTERS = 4
FEATURES, FEW_QUERIES = range(16, 129, 16), 32
"""Numbers of features of a query and of a value that a kernel for attention has tiles for, and queries below which most
of its rows would be empty."""
SMALL = 64
"""Rows that a kernel of the derivative takes at a time, or half as many of many features where shared memory is such
that attention takes no more keys: it has three panels and not two."""


def run(module: Op, most: int = 1 << 24, block: int = 1 << 21, fewest: int = 128, quarter: int = 128,
        times: int = 1, keys: int = 0) -> None:
    """Replace operations of static sizes whose scores take more than so many bytes by loops over blocks of them.

    block    bytes of the scores of a block, about
    keys     if not 0: how many keys a target's kernel takes at a time, which then computes what it can (has_kernel)
    fewest   queries of a block at least: keys are packed anew for each
    quarter  queries at least of what has a loop of its own if attention is causal
    times    how many times as much as queries, keys and values the scores take at least: where they take less, as those
             of one query, blocks save no memory
    """
    ops: list[Attention | AttentionGrad] = [*module.inside(Attention), *module.inside(AttentionGrad)]
    for op in ops:
        if keys and has_kernel(op) and allowed("kernel", op):
            with before(op, op.loc.through("block_attention")):
                op.replace_by(*_kernels(op, keys))
            continue
        static = all(isinstance(d, int) for x in (op.q, op.k, op.v) for d in x.type.shape)
        gives_mask = len(op.results) > 3 and op.results[3].uses
        if not static or gives_mask or _bytes(op, scores_shape(op)) <= max(most, times * sum(
                _bytes(op, x.type.shape) for x in (op.q, op.k, op.v))):
            continue
        if allowed("blocks", op):
            with before(op, op.loc.through("block_attention")):
                op.replace_by(*_Blocks(op, block, fewest, quarter).results())


def has_kernel(op: Attention | AttentionGrad) -> bool:
    """Whether tensor cores compute attention in one kernel, and its derivative in some: without a mask, with rows of
    whole pieces of memory, several keys, and a scale that f32 has; the latter of heads with keys of their own, with as
    many features as values have."""
    q, k, v = op.q.type, op.k.type, op.v.type
    static = all(isinstance(d, int) for x in (q, k, v) for d in x.shape)
    derived = isinstance(op, Attention) or (q.rank == k.rank and k.shape == v.shape)
    return (static and derived and op.mask is None and has_factor(op.scale) and q.dtype in (bf16, f16)
            and q.shape[-2] >= FEW_QUERIES and k.shape[-2] > 1 and q.shape[-1] in FEATURES and v.shape[-1] in FEATURES)


def _kernels(op: Attention | AttentionGrad, keys: int) -> list[Value]:
    """The results of an operation by kernels for it."""
    if isinstance(op, Attention):
        return [FlashAttention(op.q, op.k, op.v, op.scale, op.causal, keys).result]
    out, ct = (cast(x, f32) for x in (op.out, op.ct))
    delta = tensor.ReduceSum(out * ct, (op.q.type.rank - 1,)).result
    statistics = AttentionStatistics(op.q, op.k, op.scale, op.causal, keys).result
    wide = keys == SMALL and op.q.type.shape[-1] > FEATURES[-1] // 2
    block = SMALL // 2 if wide else SMALL

    def cotangent(of: str, unused: bool, like: Value) -> Value:
        dtype = op.results[0].type.dtype
        if unused:
            return _zeros(like.type.shape, dtype)
        found = FlashAttentionGrad(op.q, op.k, op.v, op.ct, statistics, delta, of, op.scale, op.causal, block).result
        return cast(found, dtype)

    return [cotangent(of, not r.uses, x) for of, r, x in zip("qkv", op.results, (op.q, op.k, op.v))]


def _bytes(op: Attention | AttentionGrad, shape: Sequence[Dim]) -> int:
    """The bytes of numbers of the type that scores have."""
    return prod(map(int, shape)) * to_numpy(accumulator(op.q.type.dtype)).itemsize


@dataclass
class _Part:
    """The operands for some of the heads, queries and keys."""

    q: Value
    k: Value
    v: Value
    mask: Value | None
    out: Value | None = None
    ct: Value | None = None

    @property
    def queries(self) -> int:
        return int(self.q.type.shape[-2])

    @property
    def keys(self) -> int:
        return int(self.k.type.shape[-2])

    def of_heads(self, starts: Mapping[int, Value], sizes: Mapping[int, int]) -> _Part:
        """By their place along each axis."""
        return self._each(lambda x: _piece(x, starts, sizes), lambda x: _piece(x, starts, sizes))

    def of_queries(self, start: Value, count: int) -> _Part:
        return self._each(lambda x: _piece(x, {x.type.rank - 2: start}, {x.type.rank - 2: count}), lambda x: x)

    def of_keys(self, count: int) -> _Part:
        """Of the first ones."""
        found = self._each(lambda x: x, lambda x: _piece(x, {}, {x.type.rank - 2: count}))
        if self.mask is not None:
            found.mask = _piece(self.mask, {}, {self.mask.type.rank - 1: count})
        return found

    def _each(self, of_queries: Callable[[Value], Value], of_keys: Callable[[Value], Value]) -> _Part:
        mask, out, ct = (None if x is None else of_queries(x) for x in (self.mask, self.out, self.ct))
        return _Part(of_queries(self.q), of_keys(self.k), of_keys(self.v), mask, out, ct)


@dataclass
class _Blocks:
    """An operation, computed in blocks. The others are the options of the pass."""

    op: Attention | AttentionGrad
    block: int
    fewest: int
    quarter: int

    def results(self) -> list[Value]:
        """All results, from a loop over heads."""
        op, heads = self.op, [int(d) for d in self.op.k.type.shape[:-2]]
        whole = _Part(op.q, op.k, op.v, self._mask(), *((op.out, op.ct) if isinstance(op, AttentionGrad) else ()))
        sizes = self._heads(heads)
        counts = [n // size for n, size in zip(heads, sizes)]

        def turn(i: Value, *results: Value) -> list[Value]:
            starts = _positions(i, counts, sizes)
            part = whole.of_heads(starts, dict(enumerate(sizes)))
            return [_put(x, y, starts) for x, y in zip(results, self._of_heads(part))]

        found = self._of_heads(whole) if prod(counts) == 1 else \
            for_loop(0, prod(counts), [_zeros(op.results[i].type.shape, op.results[i].type.dtype) for i in self.wanted],
                     turn)
        made = dict(zip(self.wanted, found))
        return [made[i] if i in made else _zeros(r.type.shape, r.type.dtype) for i, r in enumerate(op.results)]

    @property
    def wanted(self) -> list[int]:
        """The results that are computed: that of queries, and the sums that somebody uses."""
        return [i for i, r in enumerate(self.op.results[:3]) if i == 0 or r.uses]

    def _mask(self) -> Value | None:
        """The mask with all axes of the scores."""
        mask = self.op.mask
        if mask is None:
            return None
        return reshape(mask, (*[1] * (len(scores_shape(self.op)) - mask.type.rank), *mask.type.shape))

    def _heads(self, heads: Sequence[int]) -> list[int]:
        """The size of a block along each axis of heads."""
        room = self.block // _bytes(self.op, scores_shape(self.op)[len(heads):])
        sizes = list[int]()
        for n in reversed(heads):
            sizes.insert(0, _divisor(n, room))
            room //= n                                     # none if there are several blocks along this axis
        return sizes

    def _of_heads(self, part: _Part) -> Sequence[Value]:
        """The results of some heads, from loops over queries."""
        last, *others = reversed(self._quarters(part))
        into = self.op.q if isinstance(self.op, AttentionGrad) else part.v
        rows = _zeros((*part.q.type.shape[:-1], into.type.shape[-1]), self.op.q.type.dtype)
        rows, *sums = self._of_queries(part, *last, rows)
        for begin, count in others:
            rows, *added = self._of_queries(part.of_keys(min(begin + count, part.keys)), begin, count, rows)
            sums = [_put(x, _piece(x, {}, dict(enumerate(y.type.shape))) + y, {}) for x, y in zip(sums, added)]
        return [cast(x, self.op.results[i].type.dtype) for i, x in zip(self.wanted, [rows, *sums])]

    def _quarters(self, part: _Part) -> list[tuple[int, int]]:
        """The first query, and the number of queries, of each loop."""
        parts = QUARTERS if self.op.causal and part.queries >= QUARTERS * self.quarter else 1
        bounds = [part.queries * i // parts for i in range(parts + 1)]
        return [(begin, end - begin) for begin, end in zip(bounds, bounds[1:])]

    def _of_queries(self, part: _Part, begin: int, count: int, into: Value) -> Sequence[Value]:
        """`into` with the results of some queries in their place, and what is added up of all of them."""
        rows = self._rows(part, count)
        axis = part.q.type.rank - 2

        def turn(start: Value, count: int, into: Value, *sums: Value) -> list[Value]:
            of_queries, *of_keys = self._attention(part.of_queries(start, count), start)
            return [_put(into, cast(of_queries, into.type.dtype), {axis: start}),
                    *(x + y for x, y in zip(sums, of_keys))]

        keys = [(part.k, part.v)[i - 1] for i in self.wanted[1:]]
        results: Sequence[Value] = [into, *(_zeros(x.type.shape, accumulator(x.type.dtype)) for x in keys)]
        results = for_loop(0, count // rows, results, lambda i, *results: turn(_place(i, rows, begin), rows, *results))
        if rest := count % rows:
            results = turn(from_index(arith.constant(begin + count - rest, index)), rest, *results)
        return results

    def _rows(self, part: _Part, queries: int) -> int:
        """The queries of a block."""
        row = _bytes(self.op, (*part.q.type.shape[:-2], part.keys))
        fewest = max(1, self.fewest // prod(map(int, part.q.type.shape[part.k.type.rank - 2:-2])))
        limit = max(fewest, self.block // row)
        if queries <= limit:
            return queries
        rows = _divisor(queries, limit)
        return rows if 2 * rows > limit else limit // fewest * fewest

    def _attention(self, part: _Part, start: Value) -> Sequence[Value]:
        """The results of a block that begins with this query; those that are added up are not rounded before."""
        op, mask = self.op, self._causal_mask(part, start) if self.op.causal else part.mask
        if isinstance(op, Attention):
            return Attention(part.q, part.k, part.v, mask, op.scale).results
        assert part.out is not None and part.ct is not None
        results = AttentionGrad(part.q, part.k, part.v, part.out, part.ct, mask, op.scale, wide=True).results
        return [results[i] for i in self.wanted]

    def _causal_mask(self, part: _Part, start: Value) -> Value:
        """The mask of a block, which no later key than a query passes."""
        rank = part.q.type.rank
        queries, keys = ((*[1] * (rank - 2), *pair) for pair in ((part.queries, 1), (1, part.keys)))
        earlier = compare("ge", tensor.Iota(queries, rank - 2, i64).result + start,
                          tensor.Iota(keys, rank - 1, i64).result)
        if part.mask is None:
            return earlier
        return select(earlier, part.mask, full(False if part.mask.type.dtype == i1 else -math.inf, part.mask))


def _divisor(n: int, most: int) -> int:
    """The greatest divisor of n that is no more than `most`, or 1."""
    return next((d for d in range(min(n, most), 0, -1) if n % d == 0), 1)


def _positions(i: Value, counts: Sequence[int], sizes: Sequence[int]) -> dict[int, Value]:
    """Where block i of so many along each axis begins, along those that have several."""
    found = dict[int, Value]()
    for axis in reversed(range(len(counts))):
        if counts[axis] > 1:
            count, outer = arith.constant(counts[axis], index), prod(counts[:axis]) > 1
            found[axis] = _place(arith.RemUI(i, count).result if outer else i, sizes[axis])
            i = arith.DivUI(i, count).result if outer else i
    return found


def _place(i: Value, size: int, begin: int = 0) -> Value:
    """Where block i of this size begins."""
    place = arith.MulI(i, arith.constant(size, index)).result
    return from_index(arith.AddI(place, arith.constant(begin, index)).result if begin else place)


def _zeros(shape: Sequence[Dim], dtype: ScalarType) -> Value:
    return tensor.Full(0.0, tuple(shape), dtype).result


def _starts(x: Value, at: Mapping[int, Value]) -> tuple[Value, ...]:
    zero = from_index(arith.constant(0, index))
    return tuple(at.get(axis, zero) for axis in range(x.type.rank))


def _piece(x: Value, at: Mapping[int, Value], sizes: Mapping[int, Dim]) -> Value:
    """A part of x along some axes, from its beginning if not elsewhere; an axis of size 1, of a mask, is left."""
    shape = tuple(d if d == 1 else sizes.get(axis, d) for axis, d in enumerate(x.type.shape))
    return x if shape == x.type.shape else tensor.DynamicSlice(x, _starts(x, at), shape).result


def _put(x: Value, part: Value, at: Mapping[int, Value]) -> Value:
    return tensor.DynamicUpdateSlice(x, part, _starts(x, at)).result


PASS = Pass(run, takes=DIFFERENTIATED, gives=DIFFERENTIATED)
