"""Memory formats: orders in which PyTorch can lay out the elements of images. Here they are names only."""

from __future__ import annotations

from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserTypeError


class memory_format:
    """Order of elements in memory: `mlc.contiguous_format`, `mlc.preserve_format`, `mlc.channels_last` or
    `mlc.channels_last_3d`.

    Programs may ask for any of them; elements keep the order of their dimensions nevertheless, so that results are the
    same, and strides are those of `mlc.contiguous_format`. The compiler chooses the order within its kernels.

    Args:
        name: Name of one of these.

    Example:
        >>> mlc.ones(1, 3, 2, 2).to(memory_format=mlc.channels_last).stride()
        (12, 4, 2, 1)
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"mlc.{self.name}"

    def __reduce__(self) -> Any:
        return self.name


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


def check_memory_format(given: Any) -> None:
    """UserTypeError for what is neither a memory format nor None."""
    if given is not None and type(given) is not memory_format:
        raise UserTypeError(f"memory_format = {given!r}", code="MLC0360", loc=user_loc(),
                            hint="use mlc.contiguous_format, mlc.preserve_format, mlc.channels_last or None")
