"""tensor, sharding rules: along which factors an operation can be divided among ranks.

A factor is a loop of an operation. An axis of an operand or the result that is divided along a factor has, on each
rank, the elements of a block of that loop; an axis without a factor is whole on every rank that computes. If a reduced
factor is divided, the ranks have partial results, which combine to the result. The rule of most operations follows from
their indexing maps; the others say it themselves. The notion is that of Shardy's `#sdy.op_sharding_rule`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from mlc.dialects.tensor.traits import Iteration
from mlc.ir.affine import dim, dims_of
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType

if TYPE_CHECKING:
    from mlc.dialects.tensor.base import TensorOp

Label = Hashable | None
"""A name of the factor of an axis; None for an axis that cannot be divided."""


@dataclass(frozen=True)
class ShardingRule:
    """Along which factors an operation can be divided.

    extents   the extent of each factor: it can be divided by the divisors of that
    operands  for each axis of each operand the number of its factor, or None
    result    the same for the result
    reduced   factors that the result does not have, over which operands are combined
    combines  the name of the combining kind of partial results
    """

    extents: tuple[int, ...] = ()
    operands: tuple[tuple[int | None, ...], ...] = ()
    result: tuple[int | None, ...] = ()
    reduced: frozenset[int] = frozenset()
    combines: str = ""


def labelled(op: TensorOp, operands: Sequence[Sequence[Label]], result: Sequence[Label], combines: str = "",
             extents: Mapping[Label, int] | None = None) -> ShardingRule:
    """The rule that gives axes of equal labels one factor.

    Labels of symbolic or differing sizes are dropped, unless their extents are given. A label that the result does not
    have is a reduced factor, and dropped if there is no kind by which partial results combine.
    """
    places = [(label, n) for v, labels in zip((*op.operands, op.results[0]), (*operands, result))
              for label, n in zip(labels, v.type.shape if isinstance(v.type, TensorType) else ())]
    found: dict[Label, Dim | None] = {}
    for label, n in places:
        found[label] = n if found.get(label, n) == n else None
    found |= extents or {}
    kept = [label for label, n in found.items() if label is not None and isinstance(n, int) and n > 1
            and (label in result or combines)]
    number = {label: i for i, label in enumerate(kept)}

    def numbered(labels: Sequence[Label]) -> tuple[int | None, ...]:
        return tuple(number.get(label) for label in labels)

    return ShardingRule(tuple(found[label] for label in kept), tuple(map(numbered, operands)),  # type: ignore[misc]
                        numbered(result), frozenset(number[label] for label in kept if label not in result), combines)


def undivided(op: TensorOp) -> ShardingRule:
    """The rule of an operation that every rank computes as a whole."""
    shapes = [(None,) * v.type.rank if isinstance(v.type, TensorType) else () for v in (*op.operands, *op.results)]
    return ShardingRule((), tuple(shapes[:len(op.operands)]), shapes[-1] if op.results else ())


def by_indexing_maps(op: TensorOp) -> ShardingRule:
    """The rule that follows from the indexing maps of an operation: its factors are the dimensions that every map has
    as a coordinate by itself or not at all."""
    if op.iteration in (Iteration.HOST, Iteration.COMPOSITE, Iteration.SCATTER) or len(op.results) != 1:
        return undivided(op)
    domain = op.iteration_domain()
    home = op.home(domain) if op.iteration.has_own_loops else domain.points
    maps = [] if home is None else op.operand_maps(home, domain)
    if home is None or any(m is None and v.type.rank for m, v in zip(maps, op.operands)):
        return undivided(op)
    number: dict[Dim | None, int] = {dim(d): d for d in range(len(domain.shape))}
    entries = [e for m in (*maps, home) if m is not None for e in m]
    blocked = dims_of(*(e for e in entries if e is not None and e not in number))
    if op.iteration is Iteration.SCAN:
        blocked |= set(domain.reduced)
    combines = op.combining_name() if op.iteration in (Iteration.REDUCE, Iteration.CONTRACT) else ""
    for d in range(len(domain.shape)):                     # a map that lacks it reads the same for all of its points
        among = [m is not None and dim(d) in m for m, v in zip(maps, op.operands) if v.type.rank]
        if not (all(among) if d in domain.reduced else any(among)):
            blocked.add(d)
    labels = [[None if e is None or e not in number or number[e] in blocked else number[e] for e in m or ()]
              for m in (*maps, home)]
    return labelled(op, labels[:-1], labels[-1], combines)


def by_axes(op: TensorOp, *without: int) -> ShardingRule:
    """The rule of an operation whose operands, those of the result's rank, correspond to it along all axes but some."""
    rank = op.results[0].type.rank
    labels = [None if axis in without else axis for axis in range(rank)]
    return labelled(op, [labels if v.type.rank == rank else [None] * v.type.rank for v in op.operands], labels)


def by_reshaping(op: TensorOp) -> ShardingRule:
    """The rule of a reshape: the first axes of groups with equally many elements have one factor."""
    old, new = op.operands[0].type.shape, op.results[0].type.shape
    labels: tuple[list[Label], list[Label]] = [None] * len(old), [None] * len(new)
    extents: dict[Label, int] = {}
    if not all(isinstance(n, int) and n > 0 for n in (*old, *new)):
        return undivided(op)
    i = j = 0
    while i < len(old) and j < len(new):
        first, (left, right) = (i, j), (old[i], new[j])
        i, j = i + 1, j + 1
        while left != right:                               # a group ends where both have as many elements
            if left < right:
                left, i = left * old[i], i + 1
            else:
                right, j = right * new[j], j + 1
        extents[first] = gcd(*(next((n for n in shape[a:b] if n > 1), 1)
                               for shape, a, b in ((old, first[0], i), (new, first[1], j))))
        for shape, a, b, names in ((old, first[0], i, labels[0]), (new, first[1], j, labels[1])):
            at = next((axis for axis in range(a, b) if shape[axis] > 1), None)
            if at is not None:
                names[at] = first
    return labelled(op, [labels[0]], labels[1], extents=extents)
