"""Collectives of objects: tensors, arrays, numbers, text and containers of them, in the format of `mlc.save`.

They travel as data: no code runs when they arrive, and what the format does not have is refused (MLC0761).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc import serialization
from mlc.backends.transport import collectives
from mlc.backends.transport import rooted as on_root
from mlc.backends.transport.errors import RankError
from mlc.backends.transport.transport import Array
from mlc.distributed.calls import Collective, check_count, member, position_of
from mlc.distributed.groups import resolved
from mlc.distributed.point_to_point import recv, send
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import wrap


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Collect an object of each rank.

    Args:
        object_list: List with an element for each rank, which are replaced.
        obj: The object of this rank.
        group: The group; None for all ranks.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971), makes another call (MLC0972), or there is no
            process group (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def names(rank):
        ...     mlc.distributed.init_process_group()
        ...     found = [None, None]
        ...     mlc.distributed.all_gather_object(found, {"name": f"rank {rank}"})
        ...     return found
        >>> threads.run(2, names)[0]
        [{'name': 'rank 0'}, {'name': 'rank 1'}]
    """
    if member("all_gather_object", group):
        check_count("all_gather_object", object_list, resolved(group).size())
        data = _encoded(obj)
        call = Collective("all_gather_object", group, "")

        def work() -> list[Array]:
            size = np.array(data.size, np.int64)
            sizes = collectives.all_gather(call.transport, call.ranks, size, call.timeout, call.tag)
            return collectives.all_to_all(call.transport, call.ranks, [data] * len(sizes), call.timeout, call.tag,
                                          [(int(size),) for size in sizes])

        call.run(work, lambda found: object_list.__setitem__(slice(None), [_decoded(d) for d in found]))


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
                  group_dst: int | None = None) -> None:
    """Collect an object of each rank on one of them.

    Args:
        obj: The object of this rank.
        object_gather_list: On the destination, a list with an element for each rank, which are replaced.
        dst: Number of the destination in the job; 0 if neither it nor `group_dst` is given.
        group: The group; None for all ranks.
        group_dst: Position of the destination in the group, in place of `dst`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971), makes another call (MLC0972), or there is no
            process group (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def names(rank):
        ...     mlc.distributed.init_process_group()
        ...     found = [None, None] if rank == 0 else None
        ...     mlc.distributed.gather_object(f"rank {rank}", found, dst=0)
        ...     return found
        >>> threads.run(2, names)
        [['rank 0', 'rank 1'], None]
    """
    if not member("gather_object", group):
        return
    dst = 0 if dst is None and group_dst is None else dst
    call = Collective("gather_object", group, f"dst={dst if group_dst is None else group_dst}")
    root = position_of(call, "dst", dst, group_dst)
    into = object_gather_list or []
    if call.ranks[root] == call.transport.rank:
        check_count("gather_object: object_gather_list", into, len(call.ranks))
    data = _encoded(obj)

    def work() -> list[Array]:
        sizes = on_root.gather(call.transport, call.ranks, np.array(data.size, np.int64), root, call.timeout, call.tag)
        return on_root.gather(call.transport, call.ranks, data, root, call.timeout, call.tag,
                              [(int(size),) for size in sizes])

    call.run(work, lambda found: into.__setitem__(slice(None), [_decoded(d) for d in found]) if found else None)


def broadcast_object_list(object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
                          group_src: int | None = None) -> None:
    """Give all ranks the objects of one of them.

    Args:
        object_list: List of one length on all ranks; its elements are replaced on all but the source.
        src: Number of the source in the job.
        group: The group; None for all ranks.
        device: Not used: they travel through the CPU's memory.
        group_src: Position of the source in the group, in place of `src`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971), makes another call (MLC0972), or there is no
            process group (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def received(rank):
        ...     mlc.distributed.init_process_group()
        ...     found = ["settings", {"lr": 0.1}] if rank == 0 else [None, None]
        ...     mlc.distributed.broadcast_object_list(found, src=0)
        ...     return found
        >>> threads.run(2, received)[1]
        ['settings', {'lr': 0.1}]
    """
    if not member("broadcast_object_list", group):
        return
    source = src if group_src is None else group_src
    call = Collective("broadcast_object_list", group, f"{len(object_list)} objects, src={source}")
    root = position_of(call, "src", src, group_src)
    mine = call.ranks[root] == call.transport.rank
    data = _encoded(list(object_list)) if mine else np.empty(0, np.uint8)

    def work() -> Array:
        t, ranks = call.transport, call.ranks
        size = collectives.broadcast(t, ranks, np.array(data.size, np.int64), root, call.timeout, call.tag)
        into = data if mine else np.empty(int(size), np.uint8)
        return collectives.broadcast(t, ranks, into, root, call.timeout, call.tag)

    call.run(work, lambda found: None if mine else object_list.__setitem__(slice(None), _decoded(found)))


def scatter_object_list(scatter_object_output_list: list[Any], scatter_object_input_list: Sequence[Any] | None = None,
                        src: int | None = None, group: Any = None, group_src: int | None = None) -> None:
    """Give each rank an object of one of them.

    Args:
        scatter_object_output_list: List whose first element is replaced by the object.
        scatter_object_input_list: On the source, an object for each rank.
        src: Number of the source in the job; 0 if neither it nor `group_src` is given.
        group: The group; None for all ranks.
        group_src: Position of the source in the group, in place of `src`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971) or makes another call (MLC0972); or there is not
            one object for each rank (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def received(rank):
        ...     mlc.distributed.init_process_group()
        ...     found = [None]
        ...     mlc.distributed.scatter_object_list(found, ["a", "b"] if rank == 0 else None, src=0)
        ...     return found[0]
        >>> threads.run(2, received)
        ['a', 'b']
    """
    if not member("scatter_object_list", group):
        return
    if not scatter_object_output_list:
        raise RankError("scatter_object_list: the list of the output is empty", code="MLC0974", loc=user_loc(),
                        hint="give [None], whose element is replaced")
    src = 0 if src is None and group_src is None else src
    call = Collective("scatter_object_list", group, f"src={src if group_src is None else group_src}")
    root = position_of(call, "src", src, group_src)
    given = list(scatter_object_input_list or ()) if call.ranks[root] == call.transport.rank else []
    if call.ranks[root] == call.transport.rank:
        check_count("scatter_object_list", given, len(call.ranks))
    pieces = [_encoded(x) for x in given]

    def work() -> Array:
        t, ranks, sizes = call.transport, call.ranks, [np.array(piece.size, np.int64) for piece in pieces]
        size = on_root.scatter(t, ranks, sizes, np.array(0, np.int64), root, call.timeout, call.tag)
        return on_root.scatter(t, ranks, pieces, np.empty(int(size), np.uint8), root, call.timeout, call.tag)

    call.run(work, lambda found: scatter_object_output_list.__setitem__(0, _decoded(found)))


def send_object_list(object_list: Sequence[Any], dst: int | None = None, group: Any = None, device: Any = None,
                     group_dst: int | None = None) -> None:
    """Send objects to a rank.

    Args:
        object_list: The objects.
        dst: Number of the receiver in the job.
        group: The group; None for all ranks.
        device: Not used: they travel through the CPU's memory.
        group_dst: Position of the receiver in the group, in place of `dst`.

    Raises:
        RankError: As `send` (MLC0970, MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def received(rank):
        ...     mlc.distributed.init_process_group()
        ...     found = ["a", 1] if rank == 0 else [None, None]
        ...     pass_on = mlc.distributed.send_object_list if rank == 0 else mlc.distributed.recv_object_list
        ...     pass_on(found, 1 - rank)
        ...     return found
        >>> threads.run(2, received)[1]
        ['a', 1]
    """
    data = _encoded(list(object_list))
    send(wrap(np.array([data.size], np.int64)), dst, group, group_dst=group_dst)
    send(wrap(data), dst, group, group_dst=group_dst)


def recv_object_list(object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
                     group_src: int | None = None) -> int:
    """Receive objects from a rank.

    Args:
        object_list: List of as many elements as are sent, which are replaced.
        src: Number of the sender in the job.
        group: The group; None for all ranks.
        device: Not used: they travel through the CPU's memory.
        group_src: Position of the sender in the group, in place of `src`.

    Returns:
        Number of the sender in the job; -1 if the process is not in the group.

    Raises:
        RankError: As `recv` (MLC0970, MLC0971), or another number of objects is sent (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def received(rank):
        ...     mlc.distributed.init_process_group()
        ...     found = [None]
        ...     if rank == 0:
        ...         mlc.distributed.send_object_list(["a"], 1)
        ...     return rank and mlc.distributed.recv_object_list(found, 0), found
        >>> threads.run(2, received)[1]
        (0, ['a'])
    """
    size = wrap(np.zeros(1, np.int64))
    if (source := recv(size, src, group, group_src=group_src)) < 0:
        return source
    data = wrap(np.zeros(int(size._array[0]), np.uint8))
    recv(data, src, group, group_src=group_src)
    found = _decoded(data._array)
    if len(found) != len(object_list):
        raise RankError(f"recv_object_list: {len(found)} objects for a list of {len(object_list)}", code="MLC0974",
                        ranks=[source], loc=user_loc())
    object_list[:] = found
    return source


def _encoded(x: Any) -> Array:
    file = io.BytesIO()
    serialization.write(x, file)
    return np.frombuffer(file.getvalue(), np.uint8)


def _decoded(data: Array) -> Any:
    return serialization.read(np.asarray(data).tobytes())
