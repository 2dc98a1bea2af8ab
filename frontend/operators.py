"""Python's operators on tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.dispatch import DISPATCHERS
from mlc.frontend.location import user_loc
from mlc.frontend.methods import OPERATIONS, SYNTAX, Operand, call
from mlc.ir.diag import UserTypeError
from mlc.ir.sizes import Size

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor


class Operators:
    """Base of tensors: each operator is a public function, with broadcasting and promotion."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __add__(self, other: Operand) -> Tensor: return _binary("add", self, other)
    def __radd__(self, other: Operand) -> Tensor: return _binary("add", other, self)
    def __sub__(self, other: Operand) -> Tensor: return _binary("sub", self, other)
    def __rsub__(self, other: Operand) -> Tensor: return _binary("sub", other, self)
    def __mul__(self, other: Operand) -> Tensor: return _binary("mul", self, other)
    def __rmul__(self, other: Operand) -> Tensor: return _binary("mul", other, self)
    def __truediv__(self, other: Operand) -> Tensor: return _binary("div", self, other)
    def __rtruediv__(self, other: Operand) -> Tensor: return _binary("div", other, self)
    def __floordiv__(self, other: Operand) -> Tensor: return _binary("floor_divide", self, other)
    def __rfloordiv__(self, other: Operand) -> Tensor: return _binary("floor_divide", other, self)
    def __mod__(self, other: Operand) -> Tensor: return _binary("remainder", self, other)
    def __rmod__(self, other: Operand) -> Tensor: return _binary("remainder", other, self)
    def __pow__(self, other: Operand) -> Tensor: return _binary("pow", self, other)
    def __rpow__(self, other: Operand) -> Tensor: return _binary("pow", other, self)
    def __matmul__(self, other: Operand) -> Tensor: return _binary("matmul", self, other)
    def __rmatmul__(self, other: Operand) -> Tensor: return _binary("matmul", other, self)
    def __and__(self, other: Operand) -> Tensor: return _binary("bitwise_and", self, other)
    def __rand__(self, other: Operand) -> Tensor: return _binary("bitwise_and", other, self)
    def __or__(self, other: Operand) -> Tensor: return _binary("bitwise_or", self, other)
    def __ror__(self, other: Operand) -> Tensor: return _binary("bitwise_or", other, self)
    def __xor__(self, other: Operand) -> Tensor: return _binary("bitwise_xor", self, other)
    def __rxor__(self, other: Operand) -> Tensor: return _binary("bitwise_xor", other, self)
    def __lshift__(self, other: Operand) -> Tensor: return _binary("bitwise_left_shift", self, other)
    def __rshift__(self, other: Operand) -> Tensor: return _binary("bitwise_right_shift", self, other)
    def __eq__(self, other: Operand) -> Tensor: return _binary("eq", self, other)       # type: ignore[override]
    def __ne__(self, other: Operand) -> Tensor: return _binary("ne", self, other)       # type: ignore[override]
    def __lt__(self, other: Operand) -> Tensor: return _binary("lt", self, other)
    def __le__(self, other: Operand) -> Tensor: return _binary("le", self, other)
    def __gt__(self, other: Operand) -> Tensor: return _binary("gt", self, other)
    def __ge__(self, other: Operand) -> Tensor: return _binary("ge", self, other)
    def __iadd__(self, other: Operand) -> Any: return _in_place("add", self, other)
    def __isub__(self, other: Operand) -> Any: return _in_place("sub", self, other)
    def __imul__(self, other: Operand) -> Any: return _in_place("mul", self, other)
    def __itruediv__(self, other: Operand) -> Any: return _in_place("div", self, other)
    def __ifloordiv__(self, other: Operand) -> Any: return _in_place("floor_divide", self, other)
    def __imod__(self, other: Operand) -> Any: return _in_place("remainder", self, other)
    def __ipow__(self, other: Operand) -> Any: return _in_place("pow", self, other)
    def __iand__(self, other: Operand) -> Any: return _in_place("bitwise_and", self, other)
    def __ior__(self, other: Operand) -> Any: return _in_place("bitwise_or", self, other)
    def __ixor__(self, other: Operand) -> Any: return _in_place("bitwise_xor", self, other)
    def __ilshift__(self, other: Operand) -> Any: return _in_place("bitwise_left_shift", self, other)
    def __irshift__(self, other: Operand) -> Any: return _in_place("bitwise_right_shift", self, other)
    def __neg__(self) -> Tensor: return call("neg", self)
    def __pos__(self) -> Tensor: return self  # type: ignore[return-value]
    def __abs__(self) -> Tensor: return call("abs", self)
    def __invert__(self) -> Tensor: return call("bitwise_not", self)


def _in_place(name: str, x: Any, other: Any) -> Any:
    """`x += other`"""
    return SYNTAX["augmented"](name, x, other) if is_operand(other) else NotImplemented


def _binary(name: str, a: Any, b: Any) -> Tensor:
    if type(a) in PLAIN and type(b) in PLAIN:
        return DISPATCHERS[name].call(a, b)  # type: ignore[no-any-return]
    if not (is_operand(a) and is_operand(b)):
        other = b if isinstance(a, Operators) else a
        if name in ("eq", "ne") or type(other).__module__ != "builtins":
            return NotImplemented  # type: ignore[no-any-return]
        raise UserTypeError(f"{name} of a tensor and {'None' if other is None else f'a {type(other).__name__}'}",
                            code="MLC0421", loc=user_loc(), hint="make a tensor of it: mlc.tensor(...)"
                            if isinstance(other, list | tuple) else None)
    return OPERATIONS[name](a, b)  # type: ignore[no-any-return]


PLAIN: set[type] = {bool, int, float, np.ndarray}
"""Types of operands that need no further look; frontend/tensor.py adds its own."""


def is_operand(x: Any) -> bool:
    """Whether a value may stand where a function takes an array."""
    return isinstance(x, Operators | np.ndarray | bool | int | float | np.generic | Size) or (
        hasattr(type(x), "__dlpack__"))
