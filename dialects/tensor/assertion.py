"""tensor, assertions: what must not happen, checked where the program says so, and what sizes have to be."""

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
    """An error with this message where `bad` is true

        tensor.fail_if %bad {message = "x is negative"} : i1

    Compiled code goes on, and when it has run reports the first place that failed, in the order of the program's text.
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
        """An error where one batch element has one."""
        FailIf(Item(ReduceAny(operands[0], (0,)).result).result, self.message)
        return []


class ConstrainSize(HostOp, name="tensor.constrain_size", pure=False):
    """size >= 0, or an error with this message before anything of the function runs

        tensor.constrain_size {message = "tensor.slice: 5:N:1 does not lie within size N", size = "N - 5"}

    What an operation needs of the sizes of arguments stands here by itself, so it holds also where rewriting has taken
    the operation away: whoever wrote `x[5:]` and read only its shape relied on it.
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
