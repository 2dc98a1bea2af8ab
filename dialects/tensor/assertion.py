"""tensor, assertions: conditions that the program says hold, checked where it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlc.ir.core import Op, Value
from mlc.ir.diag import UserAssertionError
from mlc.ir.types import Type, i1

if TYPE_CHECKING:
    from mlc.ir.interp import Frame


class Assert(Op, name="tensor.assert", pure=False):
    """An error with this message unless the condition holds

        tensor.assert %c {message = "x is positive"} : i1

    Compiled code goes on and reports the first one that failed, in the order of the program's text, when it has run.
    """

    condition: Value
    message: str
    format = "$condition attr-dict `:` type($condition)"

    def infer(self) -> tuple[Type, ...]:
        if self.condition.type != i1:
            self.fail(f"the condition is {self.condition.type}, not i1", code="MLC0160")
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        if not frame[self.condition]:
            raise UserAssertionError(self.message, code="MLC0612", loc=self.loc)
        return []
