"""PyTorch's `torch.distributed` where it is not available: mlc has no process groups.

Programs for one process or several, which ask `is_available` first, run as one process. What needs other processes is
an error that says so (MLC0704).

Example:
    >>> mlc.distributed.is_available(), mlc.distributed.is_initialized()
    (False, False)
"""

from __future__ import annotations

from typing import Any, NoReturn

from mlc.frontend import unsupported_api
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError

__all__ = ["init_process_group", "is_available", "is_initialized", "is_torchelastic_launched"]


def is_available() -> bool:
    """Whether there are process groups.

    Returns:
        False.

    Example:
        >>> mlc.distributed.is_available()
        False
    """
    return False


def is_initialized() -> bool:
    """Whether the default process group has been made.

    Returns:
        False.

    Example:
        >>> mlc.distributed.is_initialized()
        False
    """
    return False


def is_torchelastic_launched() -> bool:
    """Whether the process was started by torchelastic, for mlc.

    Returns:
        False.

    Example:
        >>> mlc.distributed.is_torchelastic_launched()
        False
    """
    return False


def init_process_group(*args: Any, **keywords: Any) -> NoReturn:
    """Refuse to make a process group.

    Args:
        args: Whatever PyTorch takes.
        keywords: Whatever PyTorch takes.

    Returns:
        Nothing: it always raises.

    Raises:
        UserError: Always (MLC0704).

    Example:
        >>> try:
        ...     mlc.distributed.init_process_group("gloo")
        ... except mlc.UserError as error:
        ...     print(error.code)
        MLC0704
    """
    raise UserError("mlc has no process groups", code="MLC0704", loc=user_loc(),
                    hint="processes that mlc.multiprocessing starts may share parameters: model.share_memory()")


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'mlc.distributed' has no attribute {name!r}", name=name)
    raise unsupported_api.error("mlc.distributed", name, ("mlc has no process groups",
                                                          "if mlc.distributed.is_available(): ..."))
