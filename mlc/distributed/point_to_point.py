"""Messages from one rank to another, with PyTorch's names."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from mlc.backends.cuda.memory import DeviceArray
from mlc.backends.transport.errors import RankError, timed_out
from mlc.backends.transport.gpu_messages import Direction, direction
from mlc.backends.transport.nccl import Submitted, communicators
from mlc.backends.transport.pending import Handle
from mlc.backends.transport.transport import CALL_BYTES, LARGEST_TAG, Request, Transport, message_tag, wait_for
from mlc.distributed.agreement import check, described
from mlc.distributed.calls import array_of, member, target, type_text, write
from mlc.distributed.groups import get_global_rank, resolved
from mlc.distributed.work import Work
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import Loc


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
          group_dst: int | None = None) -> Work | None:
    """Start to send a tensor to a rank.

    Args:
        tensor: Tensor, which must not change before the work is done.
        dst: Number of the receiver in the job.
        group: The group; None for all ranks.
        tag: Number that the receiver gives, too. Messages between GPUs are received in the order in which they are
            sent, whatever their tags are.
        group_dst: Position of the receiver in the group, in place of `dst`.

    Returns:
        The `Work` to wait for.

    Raises:
        RankError: There is no such rank or tag (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def pass_on(rank):
        ...     mlc.distributed.init_process_group()
        ...     x = mlc.zeros(1)
        ...     work = mlc.distributed.isend(mlc.tensor([float(rank)]), 1 - rank)
        ...     mlc.distributed.recv(x, 1 - rank)
        ...     work.wait()
        ...     return x.item()
        >>> threads.run(2, pass_on)
        [1.0, 0.0]
    """
    if not member("isend", group):
        return None
    x, to = array_of(tensor, "isend"), _other("dst", group, dst, group_dst)
    t, number, loc = resolved(group).transport, _tag(tag, group), user_loc()
    timeout = resolved(group).timeout
    if isinstance(x, DeviceArray):
        way = direction(t, (t.rank, to), x.memory.device)
        header = t.send(to, number, described(_numbered(x, way), loc))
        return _gpu_message(t, way, x, timeout, lambda: wait_for("send", to, header, t.deadline(timeout)), loc)
    requests = [t.send(to, number, described(_text(x), loc)), t.send(to, number, np.ascontiguousarray(x))]

    def complete() -> None:
        for request in requests:
            wait_for("send", to, request, t.deadline(timeout))

    return Work(_Message(to, requests, complete), lambda _: None)


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0,
          group_src: int | None = None) -> Work | None:
    """Start to receive a tensor from a rank.

    Args:
        tensor: Tensor of the shape and dtype that is sent; it is overwritten.
        src: Number of the sender in the job. Receiving from any rank is not supported.
        group: The group; None for all ranks.
        tag: Number that the sender gives, too. Messages between GPUs are received in the order in which they are sent.
        group_src: Position of the sender in the group, in place of `src`.

    Returns:
        The `Work` to wait for.

    Raises:
        RankError: There is no such rank or tag (MLC0974), or no sender is named (MLC0976). Waiting fails if the sender
            has failed (MLC0970), sends nothing in time (MLC0971), or something of another shape or dtype (MLC0972).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def pass_on(rank):
        ...     mlc.distributed.init_process_group()
        ...     x = mlc.zeros(1)
        ...     work = mlc.distributed.irecv(x, 1 - rank)
        ...     mlc.distributed.send(mlc.tensor([float(rank)]), 1 - rank)
        ...     work.wait()
        ...     return x.item()
        >>> threads.run(2, pass_on)
        [1.0, 0.0]
    """
    if not member("irecv", group):
        return None
    x, source = target(tensor, "irecv"), _other("src", group, src, group_src)
    chosen, loc = resolved(group), user_loc()
    t, number = chosen.transport, _tag(tag, group)
    way = direction(t, (source, t.rank), x.memory.device) if isinstance(x, DeviceArray) else None
    header, mine = np.empty(CALL_BYTES, np.uint8), described(_text(x) if way is None else _numbered(x, way), loc)
    announced = t.receive(source, number, header)

    def agree() -> None:
        wait_for("recv", source, announced, t.deadline(chosen.timeout))
        check({t.rank: mine, source: header}, t.rank)

    if way is not None:
        out = x.memory.empty(x.shape, x.dtype)
        return _gpu_message(t, way, out, chosen.timeout, agree, loc, lambda: write(tensor, out))
    into = np.empty(x.shape, x.dtype)
    content = t.receive(source, number, into)

    def complete() -> Any:
        with located(loc):
            agree()
            wait_for("recv", source, content, t.deadline(chosen.timeout))
        return into

    return Work(_Message(source, [announced, content], complete), lambda found: write(tensor, found))


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to a rank.

    Args:
        tensor: The tensor.
        dst: Number of the receiver in the job.
        group: The group; None for all ranks.
        tag: Number that the receiver gives, too.
        group_dst: Position of the receiver in the group, in place of `dst`.

    Raises:
        RankError: There is no such rank or tag (MLC0974), or the receiver has failed (MLC0970).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def received(rank):
        ...     mlc.distributed.init_process_group()
        ...     x = mlc.tensor([float(rank)])
        ...     mlc.distributed.send(x, 1) if rank == 0 else mlc.distributed.recv(x, 0)
        ...     return x.item()
        >>> threads.run(2, received)
        [0.0, 0.0]
    """
    if (work := isend(tensor, dst, group, tag, group_dst)) is not None:
        work.wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor from a rank.

    Args:
        tensor: Tensor of the shape and dtype that is sent; it is overwritten.
        src: Number of the sender in the job. Receiving from any rank is not supported.
        group: The group; None for all ranks.
        tag: Number that the sender gives, too.
        group_src: Position of the sender in the group, in place of `src`.

    Returns:
        Number of the sender in the job; -1 if the process is not in the group.

    Raises:
        RankError: As `irecv` and its `wait` (MLC0970, MLC0971, MLC0972, MLC0974, MLC0976).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def received(rank):
        ...     mlc.distributed.init_process_group()
        ...     x = mlc.tensor([float(rank)])
        ...     return mlc.distributed.send(x, 1) if rank == 0 else mlc.distributed.recv(x, 0)
        >>> threads.run(2, received)
        [None, 0]
    """
    if (work := irecv(tensor, src, group, tag, group_src)) is None:
        return -1
    work.wait()
    return _other("src", group, src, group_src)


class P2POp:
    """A message for `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: The tensor to send, or to receive into.
        peer: Number of the other rank in the job.
        group: The group; None for all ranks.
        tag: Number that both ranks give.
        group_peer: Position of the other rank in the group, in place of `peer`.

    Returns:
        The description of the message.

    Raises:
        RankError: `op` is neither of these (MLC0974).

    Example:
        >>> mlc.distributed.P2POp(mlc.distributed.isend, mlc.ones(2), 1).peer
        1
    """

    def __init__(self, op: Callable[..., Work | None], tensor: Tensor, peer: int | None = None, group: Any = None,
                 tag: int = 0, group_peer: int | None = None) -> None:
        if op not in (isend, irecv):
            raise RankError(f"a message is started by isend or irecv, and op is {op!r}", code="MLC0974", loc=user_loc())
        self.op, self.tensor, self.peer = op, tensor, peer
        self.group, self.tag, self.group_peer = group, tag, group_peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start several messages.

    Args:
        p2p_op_list: Their descriptions.

    Returns:
        A `Work` for each, to wait for.

    Raises:
        RankError: As `isend` and `irecv` (MLC0974, MLC0976).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def exchanged(rank):
        ...     mlc.distributed.init_process_group()
        ...     x, d = mlc.zeros(1), mlc.distributed
        ...     both = [d.P2POp(d.isend, mlc.tensor([float(rank)]), 1 - rank), d.P2POp(d.irecv, x, 1 - rank)]
        ...     for work in d.batch_isend_irecv(both):
        ...         work.wait()
        ...     return x.item()
        >>> threads.run(2, exchanged)
        [1.0, 0.0]
    """
    started = [op.op(op.tensor, op.peer, op.group, op.tag, op.group_peer) for op in p2p_op_list]
    return [work for work in started if work is not None]


class _Message(Handle[Any]):
    """A message on its way to or from a rank, which whoever waits completes, once its requests are done or too late."""

    def __init__(self, other: int, requests: Sequence[Request], complete: Callable[[], Any]) -> None:
        super().__init__("message", complete)
        self._other, self._requests = other, requests

    def done(self) -> bool:
        try:
            return super().done() or all(request.done() for request in self._requests)
        except RankError:                                  # which `wait` raises
            return True

    def wait(self, timeout: float | None = None) -> Any:
        end = math.inf if timeout is None else time.monotonic() + timeout
        for request in self._requests if timeout is not None else ():
            if not getattr(request, "polls", True):
                try:
                    request.wait(max(0.0, end - time.monotonic()))
                except TimeoutError:
                    raise timed_out("message", [self._other]) from None
        while timeout is not None and not self.done():
            if time.monotonic() > end:
                raise timed_out("message", [self._other])
            time.sleep(1e-4)
        if not super().done():
            self.run()
        return super().wait()


@contextmanager
def located(loc: Loc) -> Iterator[None]:
    """Context whose errors are at a line of the program."""
    try:
        yield
    except RankError as error:
        raise error.at(loc) from None


class _OnGpu:
    """The end of a message between GPUs."""

    def __init__(self, handle: Handle[Submitted], transport: Transport) -> None:
        self._handle, self._transport = handle, transport

    def is_done(self) -> bool:
        return self._handle.wait().done()

    def seen(self) -> None:
        communicators(self._transport).told = True


def _gpu_message(t: Transport, way: Direction, array: DeviceArray, timeout: float, ready: Callable[[], None], loc: Loc,
                 finish: Callable[[], Any] = lambda: None) -> Work:
    """A message between GPUs; `ready` waits until it may begin."""
    handle = way.start(array, _text(array), timeout, ready, partial(located, loc))

    def joined(submitted: Submitted) -> Any:
        with located(loc):
            submitted.join()
        return finish()

    return Work(handle, joined, _OnGpu(handle, t))


def _numbered(x: DeviceArray, way: Direction) -> str:
    """The text of a message with its number: NCCL has no tags, and one out of turn would be taken for another one."""
    return f"{_text(x)}, number {way.number} from rank {way.ranks[0]}"


def _text(x: Any) -> str:
    return f"message({type_text(x)})" + " on GPUs" * isinstance(x, DeviceArray)


def _tag(tag: int, group: Any) -> int:
    if not 0 <= tag <= LARGEST_TAG:
        raise RankError(f"tag = {tag}, expected 0 to {LARGEST_TAG}", code="MLC0974", loc=user_loc())
    return message_tag(tag, resolved(group).ranks)


def _other(what: str, group: Any, rank: int | None, position: int | None) -> int:
    """The number in the job of the other rank of a message."""
    chosen = resolved(group)
    if rank is not None and position is not None:
        raise RankError(f"give {what} or group_{what}, not both", code="MLC0974", loc=user_loc())
    if position is not None:
        rank = get_global_rank(chosen, position)
    if rank is None:
        raise RankError("a message from any rank would be received", code="MLC0976", loc=user_loc(),
                        hint=f"name the rank: {what}=0") if what == "src" else \
            RankError("send: no receiver is given", code="MLC0974", loc=user_loc(), hint="name the rank: dst=0")
    if rank not in chosen.ranks or rank == chosen.transport.rank:
        raise RankError(f"{what} = {rank} is no other rank of the group {list(chosen.ranks)}", code="MLC0974",
                        loc=user_loc())
    return rank
