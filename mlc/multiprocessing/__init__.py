"""Python's `multiprocessing`, whose processes share the memory of tensors, with the names of `torch.multiprocessing`.

A tensor that is sent to another process (as an argument of `Process`, through a `Queue`, `Pipe` or `Pool`) is moved to
shared memory first, and then only its address travels: each process sees what the others write. With the start method
"fork", children share those tensors that were moved before, by `Tensor.share_memory_` or `Module.share_memory`.

    model.share_memory()
    workers = [mp.Process(target=train, args=(model,)) for _ in range(4)]

Example:
    >>> x = mlc.zeros(3).share_memory_()
    >>> x.is_shared()
    True
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403  # every name that it has

from mlc.frontend.location import user_loc
from mlc.frontend.shared_memory import register
from mlc.ir.diag import UserError
from mlc.multiprocessing.spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    spawn,
    start_processes,
)

__all__ = [*multiprocessing.__all__, "ProcessContext", "ProcessException",
           "ProcessExitedException", "ProcessRaisedException", "get_all_sharing_strategies", "get_sharing_strategy",
           "set_sharing_strategy", "spawn", "start_processes"]

register()


def get_all_sharing_strategies() -> set[str]:
    """The ways in which tensors are shared between processes.

    Returns:
        {"file_descriptor"}: memory without a name, that is freed with the last process that has it.

    Example:
        >>> mlc.multiprocessing.get_all_sharing_strategies()
        {'file_descriptor'}
    """
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    """The way in which tensors are shared between processes.

    Returns:
        "file_descriptor".

    Example:
        >>> mlc.multiprocessing.get_sharing_strategy()
        'file_descriptor'
    """
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose the way in which tensors are shared between processes.

    Args:
        new_strategy: "file_descriptor"; "file_system" is accepted and means the same.

    Raises:
        UserError: It is another one (MLC0360).

    Example:
        >>> mlc.multiprocessing.set_sharing_strategy("file_system")
    """
    if new_strategy not in ("file_descriptor", "file_system"):
        raise UserError(f"there is no sharing strategy {new_strategy!r}", code="MLC0360", loc=user_loc(),
                        hint='use "file_descriptor"')
