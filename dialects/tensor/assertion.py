"""tensor, assertions: run-time assertions on values, and constraints on sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.dialects.tensor.control import Item
from mlc.dialects.tensor.reduce import ReduceAny
from mlc.dialects.tensor.traits import HostOp
from mlc.ir.core import Value
from mlc.ir.diag import UserAssertionError, UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import Type, i1

if TYPE_CHECKING:
    from mlc.ir.interp import Frame


class FailIf(HostOp, name="tensor.fail_if", pure=False):
    """Raise an error with this message if `bad` is true

        tensor.fail_if %bad {message = "x is negative"} : i1

    Compiled code continues, and at the end reports the failed assertion that comes first in the program text.
    """

    bad: Value
    message: str
    format = "$bad attr-dict `:` type($bad)"
    checked_operand = 0

    def infer(self) -> tuple[Type, ...]:
        if self.bad.type != i1:
            self.fail(f"the condition is {self.bad.type}, not i1", code="MLC0160")
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        if frame[self.bad]:
            raise UserAssertionError(self.message, code="MLC0612", loc=self.loc)
        return []

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> list[Value]:
        """Fails if any batch element does."""
        FailIf(Item(ReduceAny(operands[0], (0,)).result).result, self.message)
        return []


class ConstrainSize(HostOp, name="tensor.constrain_size", pure=False):
    """size >= 0, or an error with this message before the function runs

        tensor.constrain_size {message = "tensor.slice: 5:N:1 does not lie within size N", size = "N - 5"}

    A constraint that an operation puts on the sizes of arguments is an operation of its own, so that it is checked even
    if rewriting removes the former: a program that uses only the shape of `x[5:]` relies on it too.
    """

    size: Dim
    message: str
    format = "attr-dict"

    def infer(self) -> tuple[Type, ...]:
        if isinstance(self.size, int) and self.size < 0:
            raise UserError(self.message, code="MLC0328", loc=self.loc)
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        if frame.size(self.size) < 0:
            raise UserError(self.message, code="MLC0328", loc=self.loc)
        return []
