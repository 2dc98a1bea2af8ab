"""`mlc.device`: the name of a device, with its type and index."""

from __future__ import annotations

from typing import Any

from mlc.frontend.compiler import vendors
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError

ELSEWHERE = frozenset({"gpu", "mps", "xpu", "xla", "meta"})
"""Device types of other libraries, so that an argument is recognised as a device."""


class device(str):
    """Device of tensors. It is the string of its name, so it is equal to that, and can stand wherever names can.

    Args:
        type: Kind of the device, "cpu" or "cuda", or its whole name, as in "cuda:1"; a number n is "cuda:n".
        index: Number of the device among those of its kind.

    Raises:
        UserError: There is no such kind of device, or two numbers are given (MLC0337).

    Example:
        >>> d = mlc.device("cuda", 1)
        >>> d.type, d.index, d == "cuda:1"
        ('cuda', 1, True)
        >>> mlc.zeros(2).to(mlc.device("cpu")).device.type
        'cpu'
    """

    __slots__ = ()

    def __new__(cls, type: Any, index: int | None = None) -> device:
        text = f"cuda:{type}" if isinstance(type, int) else str(type)
        name, colon, ordinal = text.partition(":")
        known = (*vendors(), *sorted(ELSEWHERE))
        if name not in known or (colon and not ordinal.isdecimal()):
            raise UserError(f"there is no device {text!r}", code="MLC0337", loc=user_loc(),
                            hint=f"its type is one of {', '.join(known)}, as in mlc.device(\"cuda:1\")")
        if index is not None and (colon or index < 0):
            raise UserError(f"{text!r} and {index} do not name a device", code="MLC0337", loc=user_loc(),
                            hint="pass the type and a number, as in mlc.device(\"cuda\", 1)")
        return str.__new__(cls, text if index is None else f"{text}:{index}")

    def __enter__(self) -> device:
        """The scope of `with mlc.device("cpu"):`, where tensors are made as elsewhere; UserError MLC0337 for a GPU."""
        if self.type != "cpu":
            raise UserError(f"tensors are not made on {self!s} by a with statement", code="MLC0337", loc=user_loc(),
                            hint=f'pass the device, as in mlc.zeros(2, device="{self!s}"), or x.to("{self!s}")')
        return self

    def __exit__(self, *raised: object) -> None:
        """The end of the scope."""

    @property
    def type(self) -> str:
        """The kind of the device, "cpu" or "cuda".

        Example:
            >>> mlc.device("cuda:1").type
            'cuda'
        """
        return self.partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """The number of the device among those of its kind; None where the name has none.

        Example:
            >>> mlc.device("cuda:1").index, mlc.device("cpu").index
            (1, None)
        """
        ordinal = self.partition(":")[2]
        return int(ordinal) if ordinal else None


CPU = str.__new__(device, "cpu")
