"""tensor, assertions: what must not happen, checked where the program says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.dialects.tensor.control import Item
from mlc.dialects.tensor.reduce import ReduceAny
from mlc.ir.core import Op, Value
from mlc.ir.diag import UserAssertionError
from mlc.ir.types import Type, i1

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.sizes import Dim


class FailIf(Op, name="tensor.fail_if", pure=False):
    """An error with this message where `bad` is true

        tensor.fail_if %bad {message = "x is negative"} : i1

    Compiled code goes on, and when it has run reports the first place that failed, in the order of the program's text.
    """

    bad: Value
    message: str
    format = "$bad attr-dict `:` type($bad)"

    def infer(self) -> tuple[Type, ...]:
        if self.bad.type != i1:
            self.fail(f"the condition is {self.bad.type}, not i1", code="MLC0160")
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        if frame[self.bad]:
            raise UserAssertionError(self.message, code="MLC0612", loc=self.loc)
        return []

    def vmap(self, lanes: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> list[Value]:
        """An error where one lane has one."""
        FailIf(Item(ReduceAny(operands[0], (0,)).result).result, self.message)
        return []
