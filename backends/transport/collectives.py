"""Collectives over a group: a tuple of ranks, the caller among them, whose order defines the positions.

Results are deterministic: a reduction is a left fold in ascending position (`fold`), whatever carries the messages. The
bytes on the wire are those of the theory, for n ranks and arrays of S bytes, per rank:

    all_gather      (n-1) S                 every rank sends its array to each other
    all_to_all      (n-1)/n S               each piece goes to its rank
    reduce_scatter  (n-1)/n S               the same, and the owner of a piece folds it
    all_reduce      2 (n-1)/n S             a reduce_scatter of pieces, and an all_gather of the results
    broadcast       S for each receiver     along a binomial tree

A `start_...` variant returns a handle at once, whose `wait` gives the result. The collectives of a group have to be
called, or started, in the same order on all of its ranks; `tag` is for a call whose place in that order was taken
before (`Transport.next_tag`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mlc.backends.transport.errors import RankError
from mlc.backends.transport.fold import check_kind, fold
from mlc.backends.transport.pending import Handle
from mlc.backends.transport.transport import Array, Group, Request, Transport, wait_all, wait_for


def all_gather(t: Transport, group: Group, x: Array, timeout: float | None = None, tag: int | None = None,
               name: str = "all_gather", into: Sequence[Array] | None = None) -> list[Array]:
    """The array of each rank, by position; all have one shape and element type. Errors and traffic have the name.

    into  contiguous arrays for the results, by position
    """
    x = _contiguous(x)
    into = [np.empty_like(x) for _ in group] if into is None else list(into)
    into[position(t, group)][...] = x
    _complete(t, group, name, [x] * len(group), into, t.deadline(timeout), tag)
    t.traffic.add(name, x.nbytes * (len(group) - 1))
    return into


def all_to_all(t: Transport, group: Group, pieces: Sequence[Array], timeout: float | None = None,
               tag: int | None = None, shapes: Sequence[tuple[int, ...]] | None = None,
               into: Sequence[Array] | None = None) -> list[Array]:
    """Send piece i to position i; the pieces that all positions have sent here, by position.

    shapes  those of the results, by position; of none, all ranks send this one what it sends them
    into    contiguous arrays for the results, by position
    """
    me, name = position(t, group), "all_to_all"
    pieces = _checked(name, group, pieces)
    if into is None:
        into = [np.empty(shape, pieces[me].dtype) for shape in shapes or [piece.shape for piece in pieces]]
    into = list(into)
    into[me][...] = pieces[me]
    _complete(t, group, name, pieces, into, t.deadline(timeout), tag)
    t.traffic.add(name, _bytes_for_others(me, pieces))
    return into


def reduce_scatter(t: Transport, group: Group, pieces: Sequence[Array], kind: str, timeout: float | None = None,
                   tag: int | None = None) -> Array:
    """The combination of the pieces that all ranks have for this position. They have one shape per position."""
    name, pieces = "reduce_scatter", _checked("reduce_scatter", group, pieces)
    result = _reduced(t, group, name, pieces, kind, t.deadline(timeout), tag)
    t.traffic.add(name, _bytes_for_others(position(t, group), pieces))
    return result


def all_reduce(t: Transport, group: Group, x: Array, kind: str, timeout: float | None = None,
               tag: int | None = None, before_receiving: Callable[[], None] | None = None) -> Array:
    """The combination of the arrays of all ranks, on each: kind is add, mul, max, min, and, or, xor.

    before_receiving  called once this rank's pieces are on their way, and before any are received under the same tag
    """
    name, me, n = "all_reduce", position(t, group), len(group)
    tag, deadline, flat = t.next_tag(group) if tag is None else tag, t.deadline(timeout), _contiguous(x).reshape(-1)
    bounds = [flat.size * p // n for p in range(n + 1)]
    pieces = [flat[start:end] for start, end in zip(bounds, bounds[1:])]
    even = flat.size % n == 0
    if even:                                               # the result has room for what it is computed from
        result = np.empty_like(flat)
        mine = _reduced(t, group, name, pieces, kind, deadline, tag, before_receiving, np.split(result, n))
    else:
        mine = _reduced(t, group, name, pieces, kind, deadline, tag, before_receiving)
        result = np.empty_like(flat)
    into = [result[start:end] for start, end in zip(bounds, bounds[1:])]
    if not even:
        into[me][...] = mine
    _complete(t, group, name, [into[me]] * n, into, deadline, tag)
    t.traffic.add(name, _bytes_for_others(me, pieces) + mine.nbytes * (n - 1))
    return result.reshape(x.shape)


def broadcast(t: Transport, group: Group, x: Array, root: int, timeout: float | None = None,
              tag: int | None = None) -> Array:
    """The array of the rank at the position `root`, there x itself; that of others only says shape and element type.

    Along a binomial tree: in round k, the 2^k ranks that have it send it 2^k positions on.
    """
    name, n, deadline = "broadcast", len(group), t.deadline(timeout)
    me, tag = (position(t, group) - root) % n, t.next_tag(group) if tag is None else tag

    def at(place: int) -> int:
        return group[(place + root) % n]

    if me == 0:
        array, distance = _contiguous(x), 1
    else:
        array, distance = np.empty(x.shape, x.dtype), 1 << (me.bit_length() - 1)
        source = at(me - distance)
        wait_for(name, source, t.receive(source, tag, array), deadline)
        distance *= 2
    sent = dict[int, Request]()
    while distance < n:
        if me < distance and me + distance < n:
            sent[at(me + distance)] = t.send(at(me + distance), tag, array)
        distance *= 2
    wait_all(name, sent, deadline)
    t.traffic.add(name, array.nbytes * len(sent))
    return array


# -- in the background ------------------------------------------------------------------------------------------------
def start_all_gather(t: Transport, group: Group, x: Array, timeout: float | None = None) -> Handle[list[Array]]:
    """`all_gather` in the background."""
    tag = t.next_tag(group)
    return t.start("all_gather", lambda: all_gather(t, group, x, timeout, tag))


def start_all_to_all(t: Transport, group: Group, pieces: Sequence[Array],
                     timeout: float | None = None) -> Handle[list[Array]]:
    """`all_to_all` in the background."""
    tag = t.next_tag(group)
    return t.start("all_to_all", lambda: all_to_all(t, group, pieces, timeout, tag))


def start_reduce_scatter(t: Transport, group: Group, pieces: Sequence[Array], kind: str,
                         timeout: float | None = None) -> Handle[Array]:
    """`reduce_scatter` in the background."""
    tag = t.next_tag(group)
    return t.start("reduce_scatter", lambda: reduce_scatter(t, group, pieces, kind, timeout, tag))


def start_all_reduce(t: Transport, group: Group, x: Array, kind: str, timeout: float | None = None) -> Handle[Array]:
    """`all_reduce` in the background."""
    tag = t.next_tag(group)
    return t.start("all_reduce", lambda: all_reduce(t, group, x, kind, timeout, tag))


def start_broadcast(t: Transport, group: Group, x: Array, root: int, timeout: float | None = None) -> Handle[Array]:
    """`broadcast` in the background."""
    tag = t.next_tag(group)
    return t.start("broadcast", lambda: broadcast(t, group, x, root, timeout, tag))


def position(t: Transport, group: Group) -> int:
    """The caller's position in a group."""
    if t.rank not in group:
        raise RankError(f"rank {t.rank} is not in the group of {group}", code="MLC0974", ranks=[t.rank],
                        hint="only the ranks of a group call its collectives")
    return group.index(t.rank)


# -- how they are done ------------------------------------------------------------------------------------------------
def _exchange(t: Transport, group: Group, tag: int, pieces: Sequence[Array], into: Sequence[Array],
              before_receiving: Callable[[], None] | None = None) -> tuple[dict[int, Request], dict[int, Request]]:
    """Start to send piece i to position i and to receive from there; the requests by rank.

    Each begins with its neighbour, so that not all send to the same rank at once.
    """
    me = position(t, group)
    around = [(me + i) % len(group) for i in range(1, len(group))]
    if before_receiving is None:
        received = {group[p]: t.receive(group[p], tag, into[p]) for p in reversed(around)}
        return received, {group[p]: t.send(group[p], tag, pieces[p]) for p in around}
    sent = {group[p]: t.send(group[p], tag, pieces[p]) for p in around}
    before_receiving()
    return {group[p]: t.receive(group[p], tag, into[p]) for p in reversed(around)}, sent


def _in_order(group: Group, name: str, received: dict[int, Request], arrays: Sequence[Array],
              deadline: float) -> Iterator[Array]:
    """The received arrays by position, each as soon as those before it are there."""
    for rank, array in zip(group, arrays):
        if rank in received:
            wait_for(name, rank, received[rank], deadline)
        yield array


def _complete(t: Transport, group: Group, name: str, pieces: Sequence[Array], into: Sequence[Array], deadline: float,
              tag: int | None) -> None:
    """Send piece i to position i, and have its piece for this position."""
    received, sent = _exchange(t, group, t.next_tag(group) if tag is None else tag, pieces, into)
    wait_all(name, received, deadline)
    wait_all(name, sent, deadline)


def _reduced(t: Transport, group: Group, name: str, pieces: Sequence[Array], kind: str, deadline: float,
             tag: int | None, before_receiving: Callable[[], None] | None = None,
             into: Sequence[Array] | None = None) -> Array:
    """The fold of the pieces for this position, which begins while some of them are on their way.

    into  memory of their size for the pieces of each position, and at this one for the result
    """
    me, dtype = position(t, group), pieces[0].dtype
    check_kind(kind, dtype)
    arrays = [pieces[me] if p == me else np.empty_like(pieces[me]) if into is None else into[p]
              for p in range(len(group))]
    tag = t.next_tag(group) if tag is None else tag
    received, sent = _exchange(t, group, tag, pieces, arrays, before_receiving)
    result = fold(_in_order(group, name, received, arrays, deadline), kind, dtype, None if into is None else into[me])
    wait_all(name, sent, deadline)
    return result


def _contiguous(x: Array) -> Array:
    return np.ascontiguousarray(x).reshape(x.shape)          # which alone would make a vector of a scalar


def _bytes_for_others(me: int, pieces: Sequence[Array]) -> int:
    return sum(piece.nbytes for p, piece in enumerate(pieces) if p != me)


def _checked(name: str, group: Group, pieces: Sequence[Array]) -> list[Array]:
    if len(pieces) != len(group):
        raise RankError(f"{name}: {len(pieces)} pieces for a group of {len(group)} ranks", code="MLC0974",
                        hint="give one piece for each rank of the group")
    return [_contiguous(piece) for piece in pieces]
