"""Process groups: the ranks of the job, and those of subsets of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from mlc.backends.transport import current
from mlc.backends.transport.errors import RankError
from mlc.backends.transport.transport import NumberedRanks, Transport
from mlc.distributed.agreement import agree
from mlc.frontend.location import user_loc

Timeout = float | timedelta | None


class ProcessGroup:
    """Ranks that call collectives together.

    Args:
        transport: What carries their messages.
        ranks: Their numbers in the job, in the order of their positions in the group.
        timeout: Seconds that a collective waits for the other ranks.

    Returns:
        Object that every collective takes as `group`.

    Example:
        >>> from mlc.backends.transport import threads
        >>> def sizes(rank):
        ...     mlc.distributed.init_process_group()
        ...     even = mlc.distributed.new_group([0, 2])
        ...     return mlc.distributed.get_world_size(even)
        >>> threads.run(3, sizes)
        [2, -1, 2]
    """

    def __init__(self, transport: Transport, ranks: tuple[int, ...], timeout: float) -> None:
        self.transport, self.ranks, self.timeout = transport, ranks, timeout
        self.destroyed = False

    def rank(self) -> int:
        """The position of this process in the group.

        Returns:
            An integer from 0 on.

        Example:
            >>> from mlc.backends.transport import threads
            >>> def position(rank):
            ...     mlc.distributed.init_process_group()
            ...     return mlc.distributed.new_group([0, 1]).rank()
            >>> threads.run(2, position)
            [0, 1]
        """
        return self.ranks.index(self.transport.rank)

    def size(self) -> int:
        """The number of ranks.

        Returns:
            An integer.

        Example:
            >>> from mlc.backends.transport import threads
            >>> def members(rank):
            ...     mlc.distributed.init_process_group()
            ...     return mlc.distributed.new_group([0, 1]).size()
            >>> threads.run(2, members)
            [2, 2]
        """
        return len(self.ranks)

    def name(self) -> str:
        """The name of what carries the messages.

        Returns:
            "mpi", "gloo" or "threads".
        """
        return self.transport.backend

    def __deepcopy__(self, memo: Any) -> ProcessGroup:
        """A copy of a module is of the same group."""
        return self

    def __repr__(self) -> str:
        return f"ProcessGroup({self.transport.backend}, ranks {list(self.ranks)})"


class SpecialGroups(type):
    """The class of classes that have the default group as an attribute."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group of this process; None before `init_process_group`."""
        return world()


class GroupMember(metaclass=SpecialGroups):
    """PyTorch's class of special groups.

    `WORLD` is the default group, None before there is one. `NON_GROUP_MEMBER` is what `new_group` returns to ranks that
    are not in the group, for which its collectives do nothing, with a warning.

    Returns:
        Nothing: it has no instances.

    Example:
        >>> mlc.distributed.get_rank(mlc.distributed.GroupMember.NON_GROUP_MEMBER)
        -1
    """

    NON_GROUP_MEMBER: Any = object()


class _Thread(threading.local):
    world: ProcessGroup | None = None


_thread = _Thread()
_process: list[ProcessGroup] = []


def world() -> ProcessGroup | None:
    """The default group of this thread, if it is a rank by itself, or else of the process."""
    if current.of_thread() is not None:
        return _thread.world
    return _process[0] if _process else None


def set_world(group: ProcessGroup | None) -> None:
    """Set the default group of this thread or process."""
    if current.of_thread() is not None:
        _thread.world = group
    else:
        _process[:] = [] if group is None else [group]


def seconds(timeout: Timeout, default: float) -> float:
    """A time-out in seconds."""
    if timeout is None:
        return default
    found: Any = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if isinstance(found, bool) or not isinstance(found, int | float) or not found > 0:
        raise RankError(f"timeout = {timeout}, expected seconds above 0 or a timedelta", code="MLC0974", loc=user_loc())
    return float(found)


def resolved(group: Any) -> ProcessGroup:
    """The group that a call means; that of None is the default group."""
    if isinstance(group, ProcessGroup):
        if group.destroyed:
            raise RankError(f"{group!r} has been destroyed", code="MLC0974", loc=user_loc(),
                            hint="mlc.distributed.new_group makes another one")
        return group
    if group is not None:
        raise RankError(f"group is a {type(group).__name__}, expected a ProcessGroup", code="MLC0974", loc=user_loc(),
                        hint="mlc.distributed.new_group makes one; None is the default group")
    if (found := world()) is None:
        raise RankError("the default process group does not exist", code="MLC0974", loc=user_loc(),
                        hint="call mlc.distributed.init_process_group() first")
    return found


def get_rank(group: Any = None) -> int:
    """The position of this process in a group.

    Args:
        group: The group; None for all ranks of the job.

    Returns:
        An integer from 0; -1 if the process is not in the group.

    Raises:
        RankError: There is no default group (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> threads.run(2, lambda rank: (mlc.distributed.init_process_group(), mlc.distributed.get_rank())[1])
        [0, 1]
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else resolved(group).rank()


def get_world_size(group: Any = None) -> int:
    """The number of ranks of a group.

    Args:
        group: The group; None for all ranks of the job.

    Returns:
        An integer from 1; -1 if the process is not in the group.

    Raises:
        RankError: There is no default group (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> threads.run(2, lambda rank: (mlc.distributed.init_process_group(), mlc.distributed.get_world_size())[1])
        [2, 2]
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else resolved(group).size()


def get_backend(group: Any = None) -> str:
    """The name of what carries the messages of a group.

    Args:
        group: The group; None for all ranks of the job.

    Returns:
        "mpi", "gloo" or "threads".

    Raises:
        RankError: There is no default group (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> threads.run(1, lambda rank: (mlc.distributed.init_process_group(), mlc.distributed.get_backend())[1])
        ['threads']
    """
    return resolved(group).name()


def get_process_group_ranks(group: Any) -> list[int]:
    """The ranks of a group by their numbers in the job.

    Args:
        group: The group; None for all ranks of the job.

    Returns:
        List of them, in the order of positions.

    Raises:
        RankError: There is no default group (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def ranks(rank):
        ...     mlc.distributed.init_process_group()
        ...     return mlc.distributed.get_process_group_ranks(None)
        >>> threads.run(2, ranks)
        [[0, 1], [0, 1]]
    """
    return list(resolved(group).ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number in the job of the rank at a position of a group.

    Args:
        group: The group.
        group_rank: Its position.

    Returns:
        An integer.

    Raises:
        RankError: There is no such position (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def second(rank):
        ...     mlc.distributed.init_process_group()
        ...     return mlc.distributed.get_global_rank(mlc.distributed.new_group([0, 1]), 1)
        >>> threads.run(2, second)
        [1, 1]
    """
    ranks = resolved(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise RankError(f"position {group_rank} of a group of {len(ranks)} ranks", code="MLC0974", loc=user_loc())
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The position in a group of a rank of the job.

    Args:
        group: The group.
        global_rank: Number of the rank in the job.

    Returns:
        An integer from 0.

    Raises:
        RankError: The rank is not in the group (MLC0974).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def position(rank):
        ...     mlc.distributed.init_process_group()
        ...     return mlc.distributed.get_group_rank(mlc.distributed.new_group([1, 0]), 0)
        >>> threads.run(2, position)
        [0, 0]
    """
    ranks = resolved(group).ranks
    if global_rank not in ranks:
        raise RankError(f"rank {global_rank} is not in the group of ranks {list(ranks)}", code="MLC0974",
                        loc=user_loc())
    return ranks.index(global_rank)


def new_group(ranks: Sequence[int] | None = None, timeout: Timeout = None, backend: str | None = None,
              pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None,
              device_id: Any = None, sort_ranks: bool = True) -> Any:
    """Make a group of some ranks. All ranks of the job call this, also those that are not in it.

    Groups of the same ranks are different groups: a call in one is not a call in another. Those in the background are
    run in the order in which a rank starts them, whatever their groups are, so all ranks start them in one order.

    Args:
        ranks: Numbers of the ranks in the job; None for all.
        timeout: Seconds or a timedelta that its collectives wait; None for the time-out of the job.
        backend: None, or the backend of the job: all groups have the same.
        pg_options: None: there are no options.
        use_local_synchronization: False: all ranks of the job call this.
        group_desc: Not used.
        device_id: Not used: the GPU of a rank is that of its tensors.
        sort_ranks: Whether positions follow the numbers of the ranks, and not the order in which they are given.

    Returns:
        The group; `GroupMember.NON_GROUP_MEMBER` on ranks that are not in it.

    Raises:
        RankError: The ranks are not those of the job, or twice (MLC0974), the ranks call this with others (MLC0972),
            or an option is not supported (MLC0976).

    Example:
        >>> from mlc.backends.transport import threads
        >>> def total(rank):
        ...     mlc.distributed.init_process_group()
        ...     pair, x = mlc.distributed.new_group([0, 2]), mlc.tensor([float(rank)])
        ...     if rank != 1:
        ...         mlc.distributed.all_reduce(x, group=pair)
        ...     return x.item()
        >>> threads.run(3, total)
        [2.0, 1.0, 2.0]
    """
    parent = resolved(None)
    for name, value in (("pg_options", pg_options), ("use_local_synchronization", use_local_synchronization)):
        if value:
            raise RankError(f"new_group: {name} = {value!r} is not supported", code="MLC0976", loc=user_loc(),
                            hint=f"leave {name} out, and call new_group on all ranks of the job")
    chosen = tuple(parent.ranks if ranks is None else ranks)
    chosen = tuple(sorted(chosen)) if sort_ranks else chosen
    if not chosen or len(set(chosen)) != len(chosen) or not set(chosen) <= set(parent.ranks):
        raise RankError(f"a group of ranks {list(ranks or ())} in a job of {parent.size()}", code="MLC0974",
                        loc=user_loc(), hint=f"name ranks from 0 to {parent.size() - 1}, each once")
    if backend not in (None, parent.name()):
        raise RankError(f"a group with the backend {backend!r} in a job of {parent.name()!r}", code="MLC0976",
                        loc=user_loc(), hint="leave the backend out: all groups have that of the job")
    tag = parent.transport.next_tag(parent.ranks)
    try:
        agree(parent, f"new_group({list(chosen)})", user_loc(), tag)
    except RankError as error:
        raise error.at(user_loc()) from None
    parent.transport.groups += 1
    if parent.transport.rank not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    numbered = NumberedRanks(chosen, parent.transport.groups)
    return ProcessGroup(parent.transport, numbered, seconds(timeout, parent.timeout))
