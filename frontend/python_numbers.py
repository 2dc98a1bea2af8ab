"""The elements of a tensor as Python's numbers: `x.item()`, `x.tolist()`, `float(x)`, `if x:`."""

from __future__ import annotations

from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError, UserTypeError


class PythonNumbers:
    """Conversions of a tensor of one element to a number, and of any to nested lists."""

    __slots__ = ()

    def item(self: Any) -> Any:
        """The only element as a Python number.

        Returns:
            A bool, int, float or complex number.

        Raises:
            UserError: there are several elements, or none (MLC0344).

        Example:
            >>> mlc.tensor([[3]]).item(), mlc.tensor(0.5).item()
            (3, 0.5)
        """
        array = self.backing_array
        if array.size != 1:
            raise UserError(f"a tensor of shape {list(array.shape)} is no single number", code="MLC0344",
                            loc=user_loc(), hint="reduce it, as by x.sum(), or take one element, as in x[0]; "
                                                 "x.tolist() has all")
        return self.array.item()

    def tolist(self: Any) -> Any:
        """The elements as nested lists of Python numbers, a list for each dimension; a number of a 0-d tensor.

        Returns:
            Lists of bools, ints, floats or complex numbers.

        Example:
            >>> mlc.tensor([[1, 2], [3, 4]]).tolist()
            [[1, 2], [3, 4]]
        """
        return self.array.tolist()

    def __bool__(self: Any) -> bool:
        array = self.backing_array
        if array.size != 1:
            raise UserError(f"a tensor of shape {list(array.shape)} is neither true nor false", code="MLC0344",
                            loc=user_loc(), hint="write x.any() or x.all(); `&` and `|` combine masks")
        return bool(self.item())

    def __int__(self: Any) -> int:
        return int(self.item())

    def __float__(self: Any) -> float:
        return float(self.item())

    def __complex__(self: Any) -> complex:
        return complex(self.item())

    def __index__(self: Any) -> int:
        value = self.item()
        if not isinstance(value, int):
            raise UserTypeError(f"a tensor of {self.dtype} is no index", code="MLC0344", loc=user_loc())
        return value
