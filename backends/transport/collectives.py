"""Collectives over a group: a tuple of ranks, the caller among them, whose order defines the positions.

Results are deterministic: a reduction is a left fold in ascending position (`fold`), whatever carries the messages. The
bytes on the wire are those of the theory, for n ranks and arrays of S bytes, per rank:

    all_gather      (n-1) S                 every rank sends its array to each other
    all_to_all      (n-1)/n S               each piece goes to its rank
    reduce_scatter  (n-1)/n S               the same, and the owner of a piece folds it
    all_reduce      2 (n-1)/n S             a reduce_scatter of pieces, and an all_gather of the results
    broadcast       S for each receiver     along a binomial tree

A `start_...` variant returns a handle at once, whose `wait` gives the result. The collectives of a group have to be
called, or started, in the same order on all of its ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mlc.backends.transport.errors import RankError
from mlc.backends.transport.fold import check_kind, fold
from mlc.backends.transport.pending import Handle
from mlc.backends.transport.transport import Array, Group, Request, Transport, wait_all, wait_for


def all_gather(t: Transport, group: Group, x: Array, timeout: float | None = None) -> list[Array]:
    """The array of each rank, by position; all have one shape and element type."""
    return _all_gather(t, group, t.next_tag(group), x, timeout)


def start_all_gather(t: Transport, group: Group, x: Array, timeout: float | None = None) -> Handle[list[Array]]:
    """`all_gather` in the background."""
    tag = t.next_tag(group)
    return t.start("all_gather", lambda: _all_gather(t, group, tag, x, timeout))


def all_to_all(t: Transport, group: Group, pieces: Sequence[Array], timeout: float | None = None) -> list[Array]:
    """Send piece i to position i; the pieces that all positions have sent here. All have one shape."""
    return _all_to_all(t, group, t.next_tag(group), pieces, [piece.shape for piece in pieces], timeout)


def start_all_to_all(t: Transport, group: Group, pieces: Sequence[Array],
                     timeout: float | None = None) -> Handle[list[Array]]:
    """`all_to_all` in the background."""
    tag, shapes = t.next_tag(group), [piece.shape for piece in pieces]
    return t.start("all_to_all", lambda: _all_to_all(t, group, tag, pieces, shapes, timeout))


def all_to_all_uneven(t: Transport, group: Group, pieces: Sequence[Array], shapes: Sequence[tuple[int, ...]],
                      timeout: float | None = None) -> list[Array]:
    """`all_to_all` of pieces of any shapes; `shapes` are those that the positions send here."""
    return _all_to_all(t, group, t.next_tag(group), pieces, shapes, timeout)


def reduce_scatter(t: Transport, group: Group, pieces: Sequence[Array], kind: str,
                   timeout: float | None = None) -> Array:
    """The combination of the pieces that all ranks have for this position. They have one shape per position."""
    return _reduce_scatter(t, group, t.next_tag(group), pieces, kind, timeout)


def start_reduce_scatter(t: Transport, group: Group, pieces: Sequence[Array], kind: str,
                         timeout: float | None = None) -> Handle[Array]:
    """`reduce_scatter` in the background."""
    tag = t.next_tag(group)
    return t.start("reduce_scatter", lambda: _reduce_scatter(t, group, tag, pieces, kind, timeout))


def all_reduce(t: Transport, group: Group, x: Array, kind: str, timeout: float | None = None) -> Array:
    """The combination of the arrays of all ranks, on each: kind is add, mul, max, min, and, or."""
    return _all_reduce(t, group, t.next_tag(group), x, kind, timeout)


def start_all_reduce(t: Transport, group: Group, x: Array, kind: str, timeout: float | None = None) -> Handle[Array]:
    """`all_reduce` in the background."""
    tag = t.next_tag(group)
    return t.start("all_reduce", lambda: _all_reduce(t, group, tag, x, kind, timeout))


def broadcast(t: Transport, group: Group, x: Array, root: int, timeout: float | None = None) -> Array:
    """The array of the rank at the position `root`, there x itself; that of others only says shape and element type."""
    return _broadcast(t, group, t.next_tag(group), x, root, timeout)


def start_broadcast(t: Transport, group: Group, x: Array, root: int, timeout: float | None = None) -> Handle[Array]:
    """`broadcast` in the background."""
    tag = t.next_tag(group)
    return t.start("broadcast", lambda: _broadcast(t, group, tag, x, root, timeout))


def position(t: Transport, group: Group) -> int:
    """The caller's position in a group."""
    if t.rank not in group:
        raise RankError(f"rank {t.rank} is not in the group of {group}", code="MLC0974", ranks=[t.rank],
                        hint="only the ranks of a group call its collectives")
    return group.index(t.rank)


# -- how they are done ------------------------------------------------------------------------------------------------
def _exchange(t: Transport, group: Group, tag: int, pieces: Sequence[Array],
              into: Sequence[Array]) -> tuple[dict[int, Request], dict[int, Request]]:
    """Start to send piece i to position i and to receive from there; the requests by rank.

    Each begins with its neighbour, so that not all send to the same rank at once.
    """
    me = position(t, group)
    around = [(me + i) % len(group) for i in range(1, len(group))]
    received = {group[p]: t.receive(group[p], tag, into[p]) for p in reversed(around)}
    return received, {group[p]: t.send(group[p], tag, pieces[p]) for p in around}


def _in_order(t: Transport, group: Group, name: str, received: dict[int, Request], arrays: Sequence[Array],
              deadline: float) -> Iterator[Array]:
    """The received arrays by position, each as soon as those before it are there."""
    for rank, array in zip(group, arrays):
        if rank in received:
            wait_for(name, rank, received[rank], deadline)
        yield array


def _all_gather(t: Transport, group: Group, tag: int, x: Array, timeout: float | None) -> list[Array]:
    name, deadline, x = "all_gather", t.deadline(timeout), _contiguous(x)
    into = [np.empty_like(x) for _ in group]
    into[position(t, group)][...] = x
    received, sent = _exchange(t, group, tag, [x] * len(group), into)
    wait_all(name, received, deadline)
    wait_all(name, sent, deadline)
    t.traffic.add(name, x.nbytes * len(sent))
    return into


def _all_to_all(t: Transport, group: Group, tag: int, pieces: Sequence[Array], shapes: Sequence[tuple[int, ...]],
                timeout: float | None) -> list[Array]:
    me, deadline, name = position(t, group), t.deadline(timeout), "all_to_all"
    _check_count(name, group, pieces)
    pieces = [_contiguous(piece) for piece in pieces]
    into = [np.empty(shape, pieces[0].dtype) for shape in shapes]
    into[me][...] = pieces[me]
    received, sent = _exchange(t, group, tag, pieces, into)
    wait_all(name, received, deadline)
    wait_all(name, sent, deadline)
    t.traffic.add(name, _bytes_for_others(me, pieces))
    return into


def _reduce_scatter(t: Transport, group: Group, tag: int, pieces: Sequence[Array], kind: str,
                    timeout: float | None, name: str = "reduce_scatter") -> Array:
    me, deadline = position(t, group), t.deadline(timeout)
    _check_count(name, group, pieces)
    check_kind(kind, pieces[me].dtype)
    pieces = [_contiguous(piece) for piece in pieces]
    arrays = [pieces[me] if p == me else np.empty_like(pieces[me]) for p in range(len(group))]
    received, sent = _exchange(t, group, tag, pieces, arrays)
    result = fold(_in_order(t, group, name, received, arrays, deadline), kind, pieces[me].dtype)
    wait_all(name, sent, deadline)
    if name == "reduce_scatter":
        t.traffic.add(name, _bytes_for_others(me, pieces))
    return result


def _all_reduce(t: Transport, group: Group, tag: int, x: Array, kind: str, timeout: float | None) -> Array:
    name, me, n = "all_reduce", position(t, group), len(group)
    deadline, flat = t.deadline(timeout), _contiguous(x).reshape(-1)
    check_kind(kind, x.dtype)
    bounds = [flat.size * p // n for p in range(n + 1)]
    pieces = [flat[start:end] for start, end in zip(bounds, bounds[1:])]
    mine = _reduce_scatter(t, group, tag, pieces, kind, timeout, name)
    result = np.empty_like(flat)
    into = [result[start:end] for start, end in zip(bounds, bounds[1:])]
    into[me][...] = mine
    received, sent = _exchange(t, group, tag, [mine] * n, into)
    wait_all(name, received, deadline)
    wait_all(name, sent, deadline)
    t.traffic.add(name, _bytes_for_others(me, pieces) + mine.nbytes * (n - 1))
    return result.reshape(x.shape)


def _broadcast(t: Transport, group: Group, tag: int, x: Array, root: int, timeout: float | None) -> Array:
    """Along a binomial tree: in round k, the 2^k ranks that have it send it 2^k positions on."""
    name, n, deadline = "broadcast", len(group), t.deadline(timeout)
    me = (position(t, group) - root) % n

    def at(place: int) -> int:
        return group[(place + root) % n]

    if me == 0:
        array = _contiguous(x)
        distance = 1
    else:
        array, distance = np.empty(x.shape, x.dtype), 1 << (me.bit_length() - 1)
        source = at(me - distance)
        wait_for(name, source, t.receive(source, tag, array), deadline)
        distance *= 2
    sent = dict[int, Request]()
    while me < distance and me + distance < n:
        sent[at(me + distance)] = t.send(at(me + distance), tag, array)
        distance *= 2
    wait_all(name, sent, deadline)
    t.traffic.add(name, array.nbytes * len(sent))
    return array


def _contiguous(x: Array) -> Array:
    return np.ascontiguousarray(x).reshape(x.shape)          # which alone would make a vector of a scalar


def _bytes_for_others(me: int, pieces: Sequence[Array]) -> int:
    return sum(piece.nbytes for p, piece in enumerate(pieces) if p != me)


def _check_count(name: str, group: Group, pieces: Sequence[Array]) -> None:
    if len(pieces) != len(group):
        raise RankError(f"{name}: {len(pieces)} pieces for a group of {len(group)} ranks", code="MLC0974",
                        hint="give one piece for each rank of the group")
