"""Collectives whose result, or whose operand, is on one rank: the root, given by its position in the group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlc.backends.transport.collectives import position, reduce_scatter
from mlc.backends.transport.transport import Array, Group, Transport, wait_all, wait_for


def gather(t: Transport, group: Group, x: Array, root: int, timeout: float | None = None, tag: int | None = None,
           shapes: Sequence[tuple[int, ...]] | None = None) -> list[Array]:
    """The arrays of all positions, at the root; an empty list elsewhere.

    shapes  those of the arrays by position, known to the root; of none, all are like its own
    """
    tag, deadline, me = t.next_tag(group) if tag is None else tag, t.deadline(timeout), position(t, group)
    x = np.ascontiguousarray(x).reshape(x.shape)
    if me != root:
        wait_for("gather", group[root], t.send(group[root], tag, x), deadline)
        t.traffic.add("gather", x.nbytes)
        return []
    into = [np.empty(shape, x.dtype) for shape in shapes or [x.shape] * len(group)]
    into[me][...] = x
    wait_all("gather", {rank: t.receive(rank, tag, array) for rank, array in zip(group, into) if rank != t.rank},
             deadline)
    t.traffic.add("gather", 0)
    return into


def scatter(t: Transport, group: Group, pieces: Sequence[Array], into: Array, root: int, timeout: float | None = None,
            tag: int | None = None) -> Array:
    """The piece of the root for this position; `into` is an array like it, and only the root needs `pieces`."""
    tag, deadline = t.next_tag(group) if tag is None else tag, t.deadline(timeout)
    if position(t, group) != root:
        into = np.empty(into.shape, into.dtype)
        wait_for("scatter", group[root], t.receive(group[root], tag, into), deadline)
        t.traffic.add("scatter", 0)
        return into
    pieces = [np.ascontiguousarray(piece).reshape(piece.shape) for piece in pieces]
    wait_all("scatter", {rank: t.send(rank, tag, piece) for rank, piece in zip(group, pieces) if rank != t.rank},
             deadline)
    t.traffic.add("scatter", sum(piece.nbytes for piece in pieces) - pieces[root].nbytes)
    return pieces[root]


def reduce(t: Transport, group: Group, x: Array, kind: str, root: int, timeout: float | None = None,
           tag: int | None = None) -> Array | None:
    """The combination of the arrays of all ranks, at the root; None elsewhere.

    Each rank folds a part, as in an all_reduce, so that no rank has all of the work and the bits are the same.
    """
    tag, n = t.next_tag(group) if tag is None else tag, len(group)
    flat = np.ascontiguousarray(x).reshape(-1)
    bounds = [flat.size * p // n for p in range(n + 1)]
    pieces = [flat[start:end] for start, end in zip(bounds, bounds[1:])]
    mine = reduce_scatter(t, group, pieces, kind, timeout, tag)
    parts = gather(t, group, mine, root, timeout, tag, [piece.shape for piece in pieces])
    return np.concatenate(parts).reshape(x.shape) if parts else None
