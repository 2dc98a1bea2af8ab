"""Collectives in which all ranks have the same part, with PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.backends.transport.errors import RankError
from mlc.distributed.calls import (
    Collective,
    array_of,
    check_count,
    check_like,
    member,
    target,
    type_text,
    types_text,
    write,
    write_all,
)
from mlc.distributed.groups import Timeout, resolved, seconds
from mlc.distributed.reduction import ReduceOp, check_op
from mlc.distributed.work import Work
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Combine the tensors of all ranks, in place: each gets the same bits.

    Args:
        tensor: Tensor of one shape and dtype on all ranks; it is overwritten.
        op: The operation.
        group: The group; None for all ranks.
        async_op: Whether to return at once, with a handle to wait for.

    Returns:
        None; the `Work` if `async_op`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971) or makes another call (MLC0972), elements of this
            dtype cannot be combined so (MLC0973), or there is no process group (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def total(rank):
        ...     mlc.distributed.init_process_group()
        ...     x = mlc.tensor([1.0, rank])
        ...     mlc.distributed.all_reduce(x)
        ...     return x.tolist()
        >>> threads.run(3, total)
        [[3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]
    """
    if not member("all_reduce", group):
        return None
    x = target(tensor, "all_reduce")
    check_op(op, x)
    call = Collective("all_reduce", group, f"{op.name}, {type_text(x)}", x)
    return call.run(call.place.all_reduce(x, op), lambda result: write(tensor, result), async_op, agreed=True)


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Collect the tensors of all ranks, by position.

    Args:
        tensor_list: A tensor for each rank, which is overwritten.
        tensor: Tensor of one shape and dtype on all ranks.
        group: The group; None for all ranks.
        async_op: Whether to return at once, with a handle to wait for.

    Returns:
        None; the `Work` if `async_op`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971) or makes another call (MLC0972); or the tensors do
            not fit (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def ranks(rank):
        ...     mlc.distributed.init_process_group()
        ...     found = [mlc.zeros(1), mlc.zeros(1)]
        ...     mlc.distributed.all_gather(found, mlc.tensor([float(rank)]))
        ...     return [x.item() for x in found]
        >>> threads.run(2, ranks)
        [[0.0, 1.0], [0.0, 1.0]]
    """
    if not member("all_gather", group):
        return None
    x, into = array_of(tensor, "all_gather"), [target(t, "all_gather") for t in tensor_list]
    check_like("all_gather", into, [(x.dtype, x.shape)] * resolved(group).size())
    call = Collective("all_gather", group, type_text(x), x, *into)
    return call.run(call.place.all_gather(x), lambda found: write_all(tensor_list, found), async_op)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None,
                           async_op: bool = False) -> Work | None:
    """Collect the tensors of all ranks in one, concatenated or stacked along the first dimension.

    Args:
        output_tensor: Tensor that is overwritten, of n times the elements of the other.
        input_tensor: Tensor of one shape and dtype on all ranks.
        group: The group; None for all ranks.
        async_op: Whether to return at once, with a handle to wait for.

    Returns:
        None; the `Work` if `async_op`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971) or makes another call (MLC0972); or the tensors do
            not fit (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def ranks(rank):
        ...     mlc.distributed.init_process_group()
        ...     found = mlc.zeros(2)
        ...     mlc.distributed.all_gather_into_tensor(found, mlc.tensor([float(rank)]))
        ...     return found.tolist()
        >>> threads.run(2, ranks)
        [[0.0, 1.0], [0.0, 1.0]]
    """
    if not member("all_gather_into_tensor", group):
        return None
    name = "all_gather_into_tensor"
    x, into, n = array_of(input_tensor, name), target(output_tensor, name), resolved(group).size()
    whole = (n * x.shape[0], *x.shape[1:]) if x.ndim else (n,)
    check_like(name, [into], [(x.dtype, (n, *x.shape) if into.shape == (n, *x.shape) else whole)])
    call = Collective(name, group, type_text(x), x, into)
    return call.run(call.place.all_gather_stacked(x), lambda found: write(output_tensor, found), async_op)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None,
                   async_op: bool = False) -> Work | None:
    """Combine the tensors that all ranks have for each rank, which alone gets the result.

    Args:
        output: Tensor that is overwritten.
        input_list: A tensor for each rank.
        op: The operation.
        group: The group; None for all ranks.
        async_op: Whether to return at once, with a handle to wait for.

    Returns:
        None; the `Work` if `async_op`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971) or makes another call (MLC0972); or the tensors do
            not fit (MLC0973, MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def totals(rank):
        ...     mlc.distributed.init_process_group()
        ...     x = mlc.zeros(1)
        ...     mlc.distributed.reduce_scatter(x, [mlc.tensor([1.0]), mlc.tensor([10.0 * rank])])
        ...     return x.item()
        >>> threads.run(2, totals)
        [2.0, 10.0]
    """
    if not member("reduce_scatter", group):
        return None
    into, xs = target(output, "reduce_scatter"), [array_of(x, "reduce_scatter") for x in input_list]
    check_like("reduce_scatter", xs, [(into.dtype, into.shape)] * resolved(group).size())
    check_op(op, into)
    call = Collective("reduce_scatter", group, f"{op.name}, {types_text(xs)}", into, *xs)
    return call.run(call.place.reduce_scatter(xs, op), lambda result: write(output, result), async_op)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None,
                          async_op: bool = False) -> Work | None:
    """`reduce_scatter` of one tensor, whose first dimension is divided among the ranks.

    Args:
        output: Tensor that is overwritten.
        input: Tensor of n times its elements, concatenated or stacked along the first dimension.
        op: The operation.
        group: The group; None for all ranks.
        async_op: Whether to return at once, with a handle to wait for.

    Returns:
        None; the `Work` if `async_op`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971) or makes another call (MLC0972); or the tensors do
            not fit (MLC0973, MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def totals(rank):
        ...     mlc.distributed.init_process_group()
        ...     x = mlc.zeros(1)
        ...     mlc.distributed.reduce_scatter_tensor(x, mlc.tensor([1.0, 10.0 * rank]))
        ...     return x.item()
        >>> threads.run(2, totals)
        [2.0, 10.0]
    """
    if not member("reduce_scatter_tensor", group):
        return None
    name = "reduce_scatter_tensor"
    into, x, n = target(output, name), array_of(input, name), resolved(group).size()
    whole = (n * into.shape[0], *into.shape[1:]) if into.ndim else (n,)
    check_like(name, [x], [(into.dtype, (n, *into.shape) if x.shape == (n, *into.shape) else whole)])
    check_op(op, x)
    call = Collective(name, group, f"{op.name}, {type_text(x)}", into, x)
    return call.run(call.place.reduce_scatter_rows(x, into.shape, op), lambda result: write(output, result), async_op)


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None,
               async_op: bool = False) -> Work | None:
    """Send a tensor to each rank, and receive one from each.

    Args:
        output_tensor_list: Tensors that are overwritten, by the position of the sender.
        input_tensor_list: Tensors by the position of the receiver; their shapes may differ.
        group: The group; None for all ranks.
        async_op: Whether to return at once, with a handle to wait for.

    Returns:
        None; the `Work` if `async_op`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971) or makes another call (MLC0972); or the tensors do
            not fit (MLC0973, MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def exchanged(rank):
        ...     mlc.distributed.init_process_group()
        ...     found = [mlc.zeros(1), mlc.zeros(1)]
        ...     mlc.distributed.all_to_all(found, [mlc.tensor([rank * 10.0]), mlc.tensor([rank * 10.0 + 1])])
        ...     return [x.item() for x in found]
        >>> threads.run(2, exchanged)
        [[0.0, 10.0], [1.0, 11.0]]
    """
    if not member("all_to_all", group):
        return None
    into = [target(x, "all_to_all") for x in output_tensor_list]
    xs = [array_of(x, "all_to_all") for x in input_tensor_list]
    check_count("all_to_all: output_tensor_list", into, resolved(group).size())
    check_count("all_to_all: input_tensor_list", xs, resolved(group).size())
    check_like("all_to_all", [*into, *xs], [(xs[0].dtype, x.shape) for x in (*into, *xs)])
    call = Collective("all_to_all", group, str(xs[0].dtype), *into, *xs)
    return call.run(call.place.all_to_all(xs, [x.shape for x in into]),
                    lambda found: write_all(output_tensor_list, found), async_op)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
                      input_split_sizes: Sequence[int] | None = None, group: Any = None,
                      async_op: bool = False) -> Work | None:
    """`all_to_all` of the parts of one tensor along its first dimension.

    Args:
        output: Tensor that is overwritten.
        input: Tensor of the same dtype.
        output_split_sizes: Rows that each rank sends; None for equal parts.
        input_split_sizes: Rows that each rank gets; None for equal parts.
        group: The group; None for all ranks.
        async_op: Whether to return at once, with a handle to wait for.

    Returns:
        None; the `Work` if `async_op`.

    Raises:
        RankError: A rank fails (MLC0970), does not answer (MLC0971) or makes another call (MLC0972); or the sizes do
            not fit (MLC0973, MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def exchanged(rank):
        ...     mlc.distributed.init_process_group()
        ...     x = mlc.zeros(2)
        ...     mlc.distributed.all_to_all_single(x, mlc.tensor([rank * 10.0, rank * 10.0 + 1]))
        ...     return x.tolist()
        >>> threads.run(2, exchanged)
        [[0.0, 10.0], [1.0, 11.0]]
    """
    if not member("all_to_all_single", group):
        return None
    name = "all_to_all_single"
    into, x, n = target(output, name), array_of(input, name), resolved(group).size()
    if not into.ndim or not x.ndim:
        raise RankError(f"{name}: a 0-d tensor has no rows", code="MLC0974", loc=user_loc(),
                        hint="give tensors of at least one dimension")
    check_like(name, [x], [(into.dtype, (*x.shape[:1], *into.shape[1:]))])
    sent, received = _rows(name, x, input_split_sizes, n), _rows(name, into, output_split_sizes, n)
    call = Collective(name, group, f"{x.dtype}{['_', *x.shape[1:]]}", into, x)
    return call.run(call.place.all_to_all_rows(x, sent, received), lambda found: write(output, found), async_op)


def _rows(name: str, x: Any, sizes: Sequence[int] | None, count: int) -> Sequence[int]:
    """The rows of a tensor for each rank, or from each."""
    sizes = sizes or [x.shape[0] // count] * count
    if any(n < 0 for n in sizes):
        raise RankError(f"{name}: split sizes {list(sizes)}", code="MLC0974", loc=user_loc(),
                        hint="give each rank 0 rows or more")
    check_count(f"{name}: split sizes", sizes, count)
    check_like(f"{name} in parts of {list(sizes)}", [x], [(x.dtype, (sum(sizes), *x.shape[1:]))])
    return sizes


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all ranks of a group have called this.

    Args:
        group: The group; None for all ranks.
        async_op: Whether to return at once, with a handle to wait for.
        device_ids: Not used on a CPU.

    Returns:
        None; the `Work` if `async_op`.

    Raises:
        RankError: Some ranks, which it names, do not call it in time (MLC0971), have failed (MLC0970) or call
            something else (MLC0972).

    Example:
        >>> from mlc.backends.transport import threads
        >>> threads.run(2, lambda rank: (mlc.distributed.init_process_group(), mlc.distributed.barrier())[1])
        [None, None]
    """
    if not member("barrier", group):
        return None
    return Collective("barrier", group, "").run(lambda: None, lambda _: None, async_op)


def monitored_barrier(group: Any = None, timeout: Timeout = None, wait_all_ranks: bool = False) -> None:
    """`barrier` with a time-out of its own, whose error names all ranks that are missing, on each rank that waits.

    As after the time-out of any collective, the job is over then: later calls of all ranks fail.

    Args:
        group: The group; None for all ranks.
        timeout: Seconds or a timedelta; None for the time-out of the group.
        wait_all_ranks: As if True: the error names all missing ranks in any case.

    Raises:
        RankError: Some ranks do not call it in time (MLC0971), have failed (MLC0970), call something else (MLC0972), or
            there is no process group (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def wait(rank):
        ...     mlc.distributed.init_process_group()
        ...     mlc.distributed.monitored_barrier(timeout=10)
        >>> threads.run(2, wait)
        [None, None]
    """
    if member("monitored_barrier", group):
        call = Collective("monitored_barrier", group, "")
        call.timeout = seconds(timeout, call.timeout)
        call.run(lambda: None, lambda _: None)
