"""Python's operators on tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.dispatch import DISPATCHERS
from mlc.frontend.location import user_loc
from mlc.frontend.methods import OPERATIONS, SYNTAX, Operand, call
from mlc.ir.diag import UserTypeError
from mlc.ir.sizes import Size

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor


PLAIN: set[type] = {bool, int, float, np.ndarray}
"""Types of operands that need no further look; frontend/tensor.py adds its own."""


def _operator(name: str) -> Callable[[Any, Operand], Tensor]:
    """The operator of a public function."""
    def operator(self: Any, other: Operand) -> Tensor:
        if type(other) in PLAIN:
            return DISPATCHERS[name].call(self, other)  # type: ignore[no-any-return]
        return _binary(name, self, other)
    return operator


def _reflected(name: str) -> Callable[[Any, Operand], Tensor]:
    """The operator of a public function with its operands swapped."""
    def operator(self: Any, other: Operand) -> Tensor:
        if type(other) in PLAIN:
            return DISPATCHERS[name].call(other, self)  # type: ignore[no-any-return]
        return _binary(name, other, self)
    return operator


def _augmented(name: str) -> Callable[[Any, Operand], Any]:
    """The operator of a public function in place."""
    method = f"{name}_"

    def operator(self: Any, other: Operand) -> Any:
        if type(self) in PLAIN and type(other) in PLAIN:
            return getattr(self, method)(other)
        return _in_place(name, self, other)
    return operator


class Operators:
    """Base of tensors: each operator is a public function, with broadcasting and promotion."""

    __slots__ = ()
    __hash__ = object.__hash__

    __add__ = _operator("add")
    __radd__ = _reflected("add")
    __sub__ = _operator("sub")
    __rsub__ = _reflected("sub")
    __mul__ = _operator("mul")
    __rmul__ = _reflected("mul")
    __truediv__ = _operator("div")
    __rtruediv__ = _reflected("div")
    __rdiv__ = __rtruediv__
    __floordiv__ = _operator("floor_divide")
    __rfloordiv__ = _reflected("floor_divide")
    __mod__ = _operator("remainder")
    __rmod__ = _reflected("remainder")
    __pow__ = _operator("pow")
    __rpow__ = _reflected("pow")
    __matmul__ = _operator("matmul")
    __rmatmul__ = _reflected("matmul")
    __and__ = _operator("bitwise_and")
    __rand__ = _reflected("bitwise_and")
    __or__ = _operator("bitwise_or")
    __ror__ = _reflected("bitwise_or")
    __xor__ = _operator("bitwise_xor")
    __rxor__ = _reflected("bitwise_xor")
    __lshift__ = _operator("bitwise_left_shift")
    __rlshift__ = _reflected("bitwise_left_shift")
    __rshift__ = _operator("bitwise_right_shift")
    __rrshift__ = _reflected("bitwise_right_shift")
    __eq__ = _operator("eq")  # type: ignore[assignment]
    __ne__ = _operator("ne")  # type: ignore[assignment]
    __lt__ = _operator("lt")
    __le__ = _operator("le")
    __gt__ = _operator("gt")
    __ge__ = _operator("ge")
    __iadd__ = _augmented("add")
    __isub__ = _augmented("sub")
    __imul__ = _augmented("mul")
    __itruediv__ = _augmented("div")
    __ifloordiv__ = _augmented("floor_divide")
    __imod__ = _augmented("remainder")
    __ipow__ = _augmented("pow")
    __iand__ = _augmented("bitwise_and")
    __ior__ = _augmented("bitwise_or")
    __ixor__ = _augmented("bitwise_xor")
    __ilshift__ = _augmented("bitwise_left_shift")
    __irshift__ = _augmented("bitwise_right_shift")
    def __neg__(self) -> Tensor: return call("neg", self)
    def __pos__(self) -> Tensor: return self  # type: ignore[return-value]
    def __abs__(self) -> Tensor: return call("abs", self)
    def __invert__(self) -> Tensor: return call("bitwise_not", self)


def _in_place(name: str, x: Any, other: Any) -> Any:
    """`x += other`"""
    return SYNTAX["augmented"](name, x, other) if is_operand(other) else NotImplemented


def _binary(name: str, a: Any, b: Any) -> Tensor:
    if not (is_operand(a) and is_operand(b)):
        own, other = (a, b) if isinstance(a, Operators) else (b, a)
        if name == "mul" and isinstance(other, list | tuple | str) and getattr(own, "weak", False):
            count: Any = own
            repeated: Any = operator.index(count) * other  # which asks for a number that is recorded
            return repeated  # type: ignore[no-any-return]
        if name in ("eq", "ne") or type(other).__module__ != "builtins":
            return NotImplemented  # type: ignore[no-any-return]
        raise UserTypeError(f"{name} of a tensor and {'None' if other is None else f'a {type(other).__name__}'}",
                            code="MLC0421", loc=user_loc(), hint="make a tensor of it: mlc.tensor(...)"
                            if isinstance(other, list | tuple) else None)
    return OPERATIONS[name](a, b)  # type: ignore[no-any-return]


def is_operand(x: Any) -> bool:
    """Whether a value may stand where a function takes an array."""
    return isinstance(x, Operators | np.ndarray | bool | int | float | complex | np.generic | Size) or (
        hasattr(type(x), "__dlpack__"))
