"""Joining the job, leaving it, and telling the others when a rank fails."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from mlc.backends.cpu.threads import set_num_threads
from mlc.backends.transport import current, launchers, nccl
from mlc.backends.transport.errors import RankError
from mlc.backends.transport.threads import ThreadTransport, summary
from mlc.backends.transport.transport import DEFAULT_TIMEOUT, Transport
from mlc.distributed.groups import GroupMember, ProcessGroup, Timeout, resolved, seconds, set_world, world
from mlc.frontend.location import programs_line, user_loc
from mlc.ir.files import write_text

BACKENDS = ("mpi", "gloo", "threads")
_told: list[Callable[..., Any]] = []
"""The hook for exceptions that was there before ours, once that is."""


def is_available() -> bool:
    """Whether there are process groups.

    Returns:
        True.

    Example:
        >>> mlc.distributed.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Whether the default process group has been made.

    Returns:
        A bool.

    Example:
        >>> mlc.distributed.is_initialized()
        False
    """
    return world() is not None


def is_mpi_available() -> bool:
    """Whether mpi4py is installed, which the backend "mpi" needs.

    Returns:
        A bool.

    Example:
        >>> mlc.distributed.is_mpi_available() in (True, False)
        True
    """
    return launchers.is_installed("mpi")


def is_gloo_available() -> bool:
    """Whether torch is installed, which the backend "gloo" needs.

    Returns:
        A bool.

    Example:
        >>> mlc.distributed.is_gloo_available() in (True, False)
        True
    """
    return launchers.is_installed("gloo")


def is_nccl_available() -> bool:
    """Whether nccl4py is installed and finds NCCL, by which collectives of tensors on GPUs are done.

    Returns:
        A bool.

    Example:
        >>> mlc.distributed.is_nccl_available() in (True, False)
        True
    """
    return nccl.is_available()


def is_torchelastic_launched() -> bool:
    """Whether torchrun started the process.

    Returns:
        A bool.

    Example:
        >>> mlc.distributed.is_torchelastic_launched()
        False
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this rank among those of its host, which is that of its GPU.

    Args:
        fallback_rank: The result where the launcher does not say.

    Returns:
        An integer from 0 on; of ranks that are threads, the number of the rank.

    Raises:
        RankError: The launcher does not say, and no fallback is given (MLC0975).

    Example:
        >>> from mlc.backends.transport import threads
        >>> threads.run(2, lambda rank: f"cuda:{mlc.distributed.get_node_local_rank()}")
        ['cuda:0', 'cuda:1']
    """
    if (transport := current.of_thread()) is not None:
        return transport.rank
    found = launchers.number_on_host()
    if found is None and fallback_rank is None:
        raise RankError("the launcher does not say which rank of its host this process is", code="MLC0975",
                        loc=user_loc(), hint="start it by mlc run --ranks, mpiexec or torchrun, or give fallback_rank")
    return found if found is not None else fallback_rank  # type: ignore[return-value]


def init_process_group(backend: str | None = None, init_method: str | None = None, timeout: Timeout = None,
                       world_size: int = -1, rank: int = -1, store: Any = None, group_name: str = "",
                       device_id: Any = None) -> None:
    """Join the job: make the default process group, of all ranks.

    On a host with several ranks, native code uses as many threads as there are processors for each of them, unless
    MLC_NUM_THREADS says how many; with MPI, ranks that outnumber the processors take one each, in turns. An exception
    that ends the program of a rank ends the others, too, with an error that names the rank.

    Tensors on GPUs are carried by NCCL (`pip install "mlc[nccl]"`), whatever carries those in the CPU's memory: as
    backend, "nccl" is None where it is installed, and "cpu:gloo,cuda:nccl" is "gloo".

    Args:
        backend: "mpi" in processes of `mlc run --ranks` and mpiexec, "gloo" in those of torchrun (it takes torch),
            "threads" in threads of `mlc.backends.transport.threads.run`; None for that which started this one.
        init_method: As in PyTorch, for gloo, where no launcher started the process.
        timeout: Seconds or a timedelta that a collective waits for other ranks; None for 30 minutes.
        world_size: Number of ranks, with `init_method` or `store`.
        rank: Number of this rank, with `init_method` or `store`.
        store: A store of torch.distributed, for gloo.
        group_name: Not used.
        device_id: Not used: the GPU of a rank is that of its tensors.

    Raises:
        RankError: There is a default group already (MLC0974), the process is not one of several, what the backend
            needs is not installed, or the arguments do not say where the ranks meet (MLC0975), or the backend does not
            exist (MLC0976).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def job(rank):
        ...     mlc.distributed.init_process_group(timeout=60)
        ...     return mlc.distributed.get_rank(), mlc.distributed.get_world_size()
        >>> threads.run(2, job)
        [(0, 2), (1, 2)]
    """
    if world() is not None:
        raise RankError("there is a default process group already", code="MLC0974", loc=user_loc(),
                        hint="call init_process_group once, or destroy_process_group before")
    names = [] if backend is None else [part.rpartition(":")[2].lower() for part in backend.split(",")]
    if "nccl" in names:
        _check_installed("nccl")
        names.remove("nccl")
    name = names[0] if names else None
    wait = seconds(timeout, DEFAULT_TIMEOUT)
    if (transport := current.of_thread()) is not None:
        if name not in (None, "threads"):
            raise RankError(f"the ranks are threads, and the backend is {backend!r}", code="MLC0975", loc=user_loc(),
                            hint="leave the backend out: it is that which started the ranks")
        for what, told, found in (("rank", rank, transport.rank), ("world_size", world_size, transport.size)):
            if told not in (-1, found):
                raise RankError(f"{what} = {told}, and that of this thread is {found}", code="MLC0975", loc=user_loc(),
                                hint=f"leave {what} out: whoever started the threads has said it")
        if timeout is not None:
            transport.timeout = wait
    else:
        if name is not None and name not in BACKENDS[:2]:
            raise RankError(f"there is no backend {backend!r}", code="MLC0976", loc=user_loc(),
                            hint='use "mpi" or "gloo"; None is that of the launcher, and "nccl" that of GPUs')
        given = {key: value for key, value, none in (
            ("init_method", init_method, None), ("world_size", world_size, -1), ("rank", rank, -1),
            ("store", store, None)) if value != none and value != "env://"}
        try:
            transport = launchers.join(name, wait, **given)
        except RankError as error:
            raise error.at(user_loc()) from None
        current.use(transport)
        _share_processors()
        tell_others(transport.rank)
        atexit.register(_leave, transport)
    set_world(ProcessGroup(transport, tuple(range(transport.size)), transport.timeout))


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave the job, or end a group, whose collectives are refused from then on.

    Args:
        group: None for all groups, after which this process is no rank any more.

    Raises:
        RankError: There is no default group, or the group has been destroyed already (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def job(rank):
        ...     mlc.distributed.init_process_group()
        ...     mlc.distributed.destroy_process_group()
        ...     return mlc.distributed.is_initialized()
        >>> threads.run(2, job)
        [False, False]
    """
    found = world()
    if found is None:
        raise RankError("the default process group does not exist", code="MLC0974", loc=user_loc())
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    if group is not None and group is not found:
        resolved(group).destroyed = True
        return
    set_world(None)
    if not isinstance(found.transport, ThreadTransport):   # whose thread may go on
        current.use(None)
        found.transport.leave()


def _check_installed(backend: str) -> None:
    try:
        launchers.check_installed(backend)
    except RankError as error:
        raise error.at(user_loc()) from None


def _leave(transport: Transport) -> None:
    """Leave the job at the end of the program; an error that nobody has seen ends it as any other one."""
    try:
        transport.leave()
    except RankError as error:
        sys.excepthook(type(error), error, error.__traceback__)
        sys.stderr.flush()
        os._exit(1)                                        # Python would end with 0


def _share_processors() -> None:
    """Have native code of the ranks of a host use each its part of the processors."""
    ranks = launchers.ranks_on_host()
    if ranks > 1 and "MLC_NUM_THREADS" not in os.environ:
        set_num_threads(max(1, len(os.sched_getaffinity(0)) // ranks))


def tell_others(rank: int) -> None:
    """Have an exception that ends this process end the other ranks, too, with an error that names it."""
    if _told:
        return
    _told.append(sys.excepthook)

    def ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        print(f"rank {rank} has failed:", file=sys.stderr)
        _told[0](kind, error, trace)
        sys.stderr.flush()
        report(rank, error)
        transport = current.transport()
        if transport is not None:
            transport.abort(f"rank {rank} has failed: {summary(error)}")
            transport.end_job()

    sys.excepthook = ended


def report(rank: int, error: BaseException) -> None:
    """Leave the error and its line where the launcher finds them, which names the rank that failed first."""
    if folder := os.environ.get("MLC_RANKS_FOLDER"):
        place = programs_line(error)
        write_text(os.path.join(folder, f"{rank}.error"), f"{summary(error)}\n{place or ''}\n")
