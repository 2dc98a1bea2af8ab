"""Collectives with a root, with PyTorch's names: `broadcast`, `reduce`, `gather` and `scatter`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.backends.transport.errors import RankError
from mlc.distributed.calls import (
    Collective,
    array_of,
    check_count,
    check_like,
    check_together,
    member,
    position_of,
    target,
    type_text,
    write,
    write_all,
)
from mlc.distributed.reduction import ReduceOp, check_op
from mlc.distributed.work import Work
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor


def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:
    """Give all ranks the tensor of one of them.

    Args:
        tensor: Tensor of one shape and dtype on all ranks; overwritten on all but the source.
        src: Number of the source in the job.
        group: The group; None for all ranks.
        async_op: Whether to return at once, with a handle to wait for.
        group_src: Position of the source in the group, in place of `src`.

    Returns:
        None; the `Work` if `async_op`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971) or makes another call (MLC0972); or there is no
            such source (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def received(rank):
        ...     mlc.distributed.init_process_group()
        ...     x = mlc.tensor([float(rank)])
        ...     mlc.distributed.broadcast(x, src=1)
        ...     return x.item()
        >>> threads.run(3, received)
        [1.0, 1.0, 1.0]
    """
    if not member("broadcast", group):
        return None
    x = target(tensor, "broadcast")
    call = Collective("broadcast", group, f"{type_text(x)}, src={src if group_src is None else group_src}", x)
    root = position_of(call, "src", src, group_src)
    mine = call.ranks[root] == call.transport.rank
    return call.run(call.place.broadcast([x], root), lambda found: None if mine else write(tensor, found[0]), async_op)


def reduce(tensor: Tensor, dst: int | None = None, op: ReduceOp = ReduceOp.SUM, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """Combine the tensors of all ranks, in place of that of one rank.

    Args:
        tensor: Tensor of one shape and dtype on all ranks; overwritten on the destination.
        dst: Number of the destination in the job.
        op: The operation.
        group: The group; None for all ranks.
        async_op: Whether to return at once, with a handle to wait for.
        group_dst: Position of the destination in the group, in place of `dst`.

    Returns:
        None; the `Work` if `async_op`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971) or makes another call (MLC0972), the tensor cannot
            be combined so (MLC0973), or there is no process group (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def total(rank):
        ...     mlc.distributed.init_process_group()
        ...     x = mlc.tensor([float(rank)])
        ...     mlc.distributed.reduce(x, dst=0)
        ...     return x.item()
        >>> threads.run(3, total)
        [3.0, 1.0, 2.0]
    """
    if not member("reduce", group):
        return None
    x = target(tensor, "reduce")
    check_op(op, x)
    call = Collective("reduce", group, f"{op.name}, {type_text(x)}, dst={dst if group_dst is None else group_dst}", x)
    root = position_of(call, "dst", dst, group_dst)
    return call.run(call.place.reduce(x, op, root), lambda found: None if found is None else write(tensor, found),
                    async_op)


def gather(tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int | None = None, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """Collect the tensors of all ranks on one of them.

    Args:
        tensor: Tensor of one shape and dtype on all ranks.
        gather_list: On the destination, a tensor for each rank, which is overwritten; None on the others.
        dst: Number of the destination in the job; 0 if neither it nor `group_dst` is given.
        group: The group; None for all ranks.
        async_op: Whether to return at once, with a handle to wait for.
        group_dst: Position of the destination in the group, in place of `dst`.

    Returns:
        None; the `Work` if `async_op`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971) or makes another call (MLC0972); or the tensors do
            not fit (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def ranks(rank):
        ...     mlc.distributed.init_process_group()
        ...     found = [mlc.zeros(1), mlc.zeros(1)] if rank == 0 else None
        ...     mlc.distributed.gather(mlc.tensor([float(rank)]), found, dst=0)
        ...     return found and [x.item() for x in found]
        >>> threads.run(2, ranks)
        [[0.0, 1.0], None]
    """
    if not member("gather", group):
        return None
    x = array_of(tensor, "gather")
    dst = 0 if dst is None and group_dst is None else dst
    call = Collective("gather", group, f"{type_text(x)}, dst={dst if group_dst is None else group_dst}", x)
    root = position_of(call, "dst", dst, group_dst)
    outputs = _of_root("gather_list", call, root, gather_list)
    if outputs:
        into = [target(t, "gather") for t in outputs]
        check_like("gather", into, [(x.dtype, x.shape)] * len(call.ranks))
        check_together("gather", [x, *into])
    return call.run(call.place.gather(x, root), lambda found: write_all(outputs, found), async_op)


def scatter(tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int | None = None, group: Any = None,
            async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Give each rank a tensor of one of them.

    Args:
        tensor: Tensor of one shape and dtype on all ranks, which is overwritten.
        scatter_list: On the source, a tensor for each rank; None on the others.
        src: Number of the source in the job; 0 if neither it nor `group_src` is given.
        group: The group; None for all ranks.
        async_op: Whether to return at once, with a handle to wait for.
        group_src: Position of the source in the group, in place of `src`.

    Returns:
        None; the `Work` if `async_op`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971) or makes another call (MLC0972); or the tensors do
            not fit (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def received(rank):
        ...     mlc.distributed.init_process_group()
        ...     x = mlc.zeros(1)
        ...     mlc.distributed.scatter(x, [mlc.tensor([5.0]), mlc.tensor([6.0])] if rank == 0 else None, src=0)
        ...     return x.item()
        >>> threads.run(2, received)
        [5.0, 6.0]
    """
    if not member("scatter", group):
        return None
    into = target(tensor, "scatter")
    src = 0 if src is None and group_src is None else src
    call = Collective("scatter", group, f"{type_text(into)}, src={src if group_src is None else group_src}", into)
    root = position_of(call, "src", src, group_src)
    pieces = [array_of(x, "scatter") for x in _of_root("scatter_list", call, root, scatter_list)]
    if pieces:
        check_like("scatter", pieces, [(into.dtype, into.shape)] * len(call.ranks))
        check_together("scatter", [into, *pieces])
    return call.run(call.place.scatter(pieces, into, root), lambda found: write(tensor, found), async_op)


def _of_root(what: str, call: Collective, root: int, tensors: Sequence[Tensor] | None) -> Sequence[Tensor]:
    """The tensors that the root has to give, and nobody else."""
    if call.ranks[root] == call.transport.rank:
        check_count(f"{call.text}: {what}", tensors or (), len(call.ranks))
        return tensors or ()
    if tensors:
        raise RankError(f"{call.text}: {what} is given on rank {call.transport.rank}, which is not the root",
                        code="MLC0974", loc=user_loc())
    return ()
