"""tensor, debugging: values that are shown while a program runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from string import Formatter
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.tensor.traits import HostOp
from mlc.ir.core import Value
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import Type

if TYPE_CHECKING:
    from mlc.ir.interp import Frame


class Debug(HostOp, name="tensor.debug", pure=False):
    """Print the message with the values in place of its fields; with `stops`, enter Python's debugger instead

        tensor.debug %x {message = "x is {x}", names = ["x"]} : tensor<3xf32>

    No machine has code for it: a compiled function that has such operations runs in the interpreter, too
    (mlc/debugged.py), and a module that is compiled for a file is refused (passes/fuse).
    """

    values: tuple[Value, ...]
    message: str
    names: tuple[str, ...]
    stops: bool = False
    format = "$values attr-dict `:` type($values)"

    def infer(self) -> tuple[Type, ...]:
        if len(self.names) != len(self.values):
            self.fail(f"{len(self.values)} values have {len(self.names)} names", code="MLC0160")
        try:
            check_message(self.message, self.names)
        except UserError as error:
            self.fail(error.message, code="MLC0160")
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        held = [np.array(frame[v]) for v in self.values]
        values = {n: x.item() if x.ndim == 0 else x for n, x in zip(self.names, held)}
        if self.stops:
            stopped(values, str(self.loc))
        else:
            print(shown(self.message, values), flush=True)
        return []

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> list[Value]:
        """Shows all elements of the batch at once; the interpreter runs functions under vmap element by element."""
        Debug(tuple(operands), self.message, self.names, self.stops)
        return []


def fields_of(message: str) -> list[str]:
    """The fields of a message; UserError if it is ill-formed (MLC0695)."""
    try:
        return [field for _, field, _, _ in Formatter().parse(message) if field is not None]
    except ValueError as error:
        raise UserError(f"the message {message!r} is ill-formed: {error}", code="MLC0695",
                        hint="write {{ and }} for brackets") from None


def check_message(message: str, names: Sequence[str]) -> None:
    """UserError (MLC0695) unless the fields of a message are among the names: there are no attributes or items in it,
    since the text of a module may come from anywhere."""
    for field in fields_of(message):
        if field not in names:
            raise UserError(f"the message has the field {{{field}}}, and the values are {', '.join(names) or 'none'}",
                            code="MLC0695", hint="name the fields as the arguments, or leave their names out")


def shown(message: str, values: dict[str, Any]) -> str:
    """The message with values in its fields; a format applies to each element of an array."""
    out = []
    for literal, field, spec, conversion in Formatter().parse(message):
        out.append(literal)
        if field is None:
            continue
        value = values[field]
        if isinstance(value, np.ndarray):
            out.append(np.array2string(value, formatter={"all": partial(_formatted, spec)}) if spec else
                       np.array2string(value))
        else:
            out.append(repr(value) if conversion == "r" else format(value, spec or ""))
    return "".join(out)


def _formatted(spec: str, x: Any) -> str:
    return format(x, spec)


def stopped(values: dict[str, Any], line: str) -> None:
    """Enter Python's debugger (`sys.breakpointhook`). `values` has the arrays, `line` the line of the program."""
    print(f"stopped at {line}: {', '.join(values) or 'no values'} in `values`", flush=True)
    sys.breakpointhook()
