"""Collectives over a group: a tuple of ranks, the caller among them, whose order defines the positions.

Results are deterministic: a reduction is a left fold in ascending position (`fold`), whatever carries the messages. The
bytes on the wire are those of the theory, for n ranks and arrays of S bytes, per rank:

    all_gather      (n-1) S                 every rank sends its array to each other
    all_to_all      (n-1)/n S               each piece goes to its rank
    reduce_scatter  (n-1)/n S               the same, and the owner of a piece folds it
    all_reduce      2 (n-1)/n S             a reduce_scatter of pieces, and an all_gather of the results; or, where that
                                            takes hardly more (`sends_whole`), every rank sends its array to each other
    shift           S                       to one rank, around a ring
    broadcast       S for each receiver     along a binomial tree

A `begin_...` variant sends what this rank has, and returns a function that waits for the others and gives the result.
`Transport.start` calls one in the background. The collectives of a group have to be called, begun or started in the
same order on all of its ranks; `tag` is for a call whose place in that order was taken before (`Transport.next_tag`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mlc.backends.transport.errors import RankError
from mlc.backends.transport.fold import check_kind, fold
from mlc.backends.transport.transport import Array, Group, Request, Transport, wait_all, wait_for
from mlc.dialects.shard.collectives import sends_whole


def all_gather(t: Transport, group: Group, x: Array, timeout: float | None = None, tag: int | None = None,
               name: str = "all_gather", into: Sequence[Array] | None = None) -> list[Array]:
    """The array of each rank, by position; all have one shape and element type. Errors and traffic have the name.

    into  contiguous arrays for the results, by position
    """
    return begin_all_gather(t, group, x, timeout, tag, name, into)()


def begin_all_gather(t: Transport, group: Group, x: Array, timeout: float | None = None, tag: int | None = None,
                     name: str = "all_gather", into: Sequence[Array] | None = None) -> Callable[[], list[Array]]:
    """The first half of `all_gather`."""
    x = _contiguous(x)
    results = [np.empty_like(x) for _ in group] if into is None else list(into)
    results[position(t, group)][...] = x
    complete = _begun(t, group, name, [x] * len(group), results, t.deadline(timeout), tag)

    def finish() -> list[Array]:
        complete()
        t.traffic.add(name, x.nbytes * (len(group) - 1))
        return results

    return finish


def all_to_all(t: Transport, group: Group, pieces: Sequence[Array], timeout: float | None = None,
               tag: int | None = None, shapes: Sequence[tuple[int, ...]] | None = None,
               into: Sequence[Array] | None = None) -> list[Array]:
    """Send piece i to position i; the pieces that all positions have sent here, by position.

    shapes  those of the results, by position; of none, all ranks send this one what it sends them
    into    contiguous arrays for the results, by position
    """
    return begin_all_to_all(t, group, pieces, timeout, tag, shapes, into)()


def begin_all_to_all(t: Transport, group: Group, pieces: Sequence[Array], timeout: float | None = None,
                     tag: int | None = None, shapes: Sequence[tuple[int, ...]] | None = None,
                     into: Sequence[Array] | None = None) -> Callable[[], list[Array]]:
    """The first half of `all_to_all`."""
    me, name = position(t, group), "all_to_all"
    sent = _checked(name, group, pieces)
    results = [np.empty(shape, sent[me].dtype) for shape in shapes or [piece.shape for piece in sent]] \
        if into is None else list(into)
    results[me][...] = sent[me]
    complete = _begun(t, group, name, sent, results, t.deadline(timeout), tag)

    def finish() -> list[Array]:
        complete()
        t.traffic.add(name, _bytes_for_others(me, sent))
        return results

    return finish


def reduce_scatter(t: Transport, group: Group, pieces: Sequence[Array], kind: str, timeout: float | None = None,
                   tag: int | None = None) -> Array:
    """The combination of the pieces that all ranks have for this position. They have one shape per position."""
    return begin_reduce_scatter(t, group, pieces, kind, timeout, tag)()


def begin_reduce_scatter(t: Transport, group: Group, pieces: Sequence[Array], kind: str, timeout: float | None = None,
                         tag: int | None = None) -> Callable[[], Array]:
    """The first half of `reduce_scatter`."""
    name, sent = "reduce_scatter", _checked("reduce_scatter", group, pieces)
    reduce = _begun_reduction(t, group, name, sent, kind, t.deadline(timeout), tag)

    def finish() -> Array:
        result = reduce()
        t.traffic.add(name, _bytes_for_others(position(t, group), sent))
        return result

    return finish


def all_reduce(t: Transport, group: Group, x: Array, kind: str, timeout: float | None = None,
               tag: int | None = None, before_receiving: Callable[[], None] | None = None) -> Array:
    """The combination of the arrays of all ranks, on each: kind is add, mul, max, min, and, or, xor.

    before_receiving  called once this rank's pieces are on their way, and before any are received under the same tag
    """
    return begin_all_reduce(t, group, x, kind, timeout, tag, before_receiving)()


def begin_all_reduce(t: Transport, group: Group, x: Array, kind: str, timeout: float | None = None,
                     tag: int | None = None, before_receiving: Callable[[], None] | None = None
                     ) -> Callable[[], Array]:
    """The first half of `all_reduce`."""
    name, me, n = "all_reduce", position(t, group), len(group)
    tag, deadline, flat = t.next_tag(group) if tag is None else tag, t.deadline(timeout), _contiguous(x).reshape(-1)
    whole = sends_whole(n, flat.nbytes)
    bounds = [flat.size * p // n for p in range(n + 1)]
    pieces = [flat] * n if whole else [flat[start:end] for start, end in zip(bounds, bounds[1:])]
    even = flat.size % n == 0 and not whole
    room = np.empty_like(flat) if even else None           # the result's, for what it is computed from
    reduce = _begun_reduction(t, group, name, pieces, kind, deadline, tag, before_receiving,
                              None if room is None else divided(room, n, 0))

    def finish() -> Array:
        mine = reduce()
        if whole:
            t.traffic.add(name, flat.nbytes * (n - 1))
            return mine.reshape(x.shape)
        result = np.empty_like(flat) if room is None else room
        into = [result[start:end] for start, end in zip(bounds, bounds[1:])]
        if room is None:
            into[me][...] = mine
        _begun(t, group, name, [into[me]] * n, into, deadline, tag)()
        t.traffic.add(name, _bytes_for_others(me, pieces) + mine.nbytes * (n - 1))
        return result.reshape(x.shape)

    return finish


def begin_shift(t: Transport, group: Group, x: Array, offset: int, timeout: float | None = None,
                tag: int | None = None) -> Callable[[], Array]:
    """Send the array `offset` positions on, around the ring of the group; the function that waits for the one that
    comes from as many positions before."""
    name, me, n, x = "shift", position(t, group), len(group), _contiguous(x)
    tag, deadline = t.next_tag(group) if tag is None else tag, t.deadline(timeout)
    if offset % n == 0:
        return lambda: x
    result, source, to = np.empty_like(x), group[(me - offset) % n], group[(me + offset) % n]
    received = t.receive(source, tag, result)
    sent = t.send(to, tag, x)

    def finish() -> Array:
        wait_for(name, source, received, deadline)
        wait_for(name, to, sent, deadline)
        t.traffic.add(name, x.nbytes)
        return result

    return finish


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


def _begun(t: Transport, group: Group, name: str, pieces: Sequence[Array], into: Sequence[Array], deadline: float,
           tag: int | None) -> Callable[[], None]:
    """Send piece i to position i; the function that waits until it has come, and this position's pieces are there."""
    received, sent = _exchange(t, group, t.next_tag(group) if tag is None else tag, pieces, into)

    def complete() -> None:
        wait_all(name, received, deadline)
        wait_all(name, sent, deadline)

    return complete


def _begun_reduction(t: Transport, group: Group, name: str, pieces: Sequence[Array], kind: str, deadline: float,
                     tag: int | None, before_receiving: Callable[[], None] | None = None,
                     into: Sequence[Array] | None = None) -> Callable[[], Array]:
    """Send the pieces; the function that folds those for this position, while some of them are on their way.

    into  memory of their size for the pieces of each position, and at this one for the result
    """
    me, dtype = position(t, group), pieces[0].dtype
    check_kind(kind, dtype)
    arrays = [pieces[me] if p == me else np.empty_like(pieces[me]) if into is None else into[p]
              for p in range(len(group))]
    tag = t.next_tag(group) if tag is None else tag
    received, sent = _exchange(t, group, tag, pieces, arrays, before_receiving)

    def reduce() -> Array:
        result = fold(_in_order(group, name, received, arrays, deadline), kind, dtype,
                      None if into is None else into[me])
        wait_all(name, sent, deadline)
        return result

    return reduce


def divided(x: Array, count: int, axis: int) -> list[Array]:
    """The `count` equal blocks of an array along an axis, whose size it divides, as views: those of `numpy.split`, in
    less time."""
    size = x.shape[axis] // count
    before = (slice(None),) * axis
    return [x[*before, slice(i, i + size)] for i in range(0, size * count, size)] if size else [x] * count


def _contiguous(x: Array) -> Array:
    return x if x.flags.c_contiguous else np.ascontiguousarray(x)    # an array of no dimensions is, and would get one


def _bytes_for_others(me: int, pieces: Sequence[Array]) -> int:
    return sum(piece.nbytes for p, piece in enumerate(pieces) if p != me)


def _checked(name: str, group: Group, pieces: Sequence[Array]) -> list[Array]:
    if len(pieces) != len(group):
        raise RankError(f"{name}: {len(pieces)} pieces for a group of {len(group)} ranks", code="MLC0974",
                        hint="give one piece for each rank of the group")
    return [_contiguous(piece) for piece in pieces]
