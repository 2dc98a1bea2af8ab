"""tensor, debugging: values that are shown while a program runs."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from string import Formatter
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.tensor.traits import HostOp
from mlc.ir.core import Value
from mlc.ir.diag import Loc, UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, Type, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame


LAST_LINE = 1_000_000
"""The last line that a breakpoint can be at; the text of a module may name any."""


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

    def verify_op(self) -> None:
        try:
            check_formats(self.message, {n: (to_numpy(v.type.dtype), v.type.rank)
                                         for n, v in zip(self.names, self.values) if isinstance(v.type, TensorType)})
        except UserError as error:
            self.fail(error.message, code="MLC0160")

    def interpret(self, frame: Frame) -> list[Any]:
        held = [np.array(frame[v]) for v in self.values]
        values = {n: x.item() if x.ndim == 0 else x for n, x in zip(self.names, held)}
        if self.stops:
            stopped(values, self.loc)
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


def check_formats(message: str, values: Mapping[str, tuple[Any, int]]) -> None:
    """UserError (MLC0695) unless the formats of a message fit its values, given the dtypes and ranks of these."""
    for _, field, spec, conversion in Formatter().parse(message):
        if field is None or not spec or field not in values or conversion == "r":
            continue
        dtype, rank = values[field]
        element = np.zeros((), dtype)[()]
        try:
            format(element if rank else element.item(), spec)
        except (ValueError, TypeError):                    # Python's words for a format that is none for this type
            raise UserError(f"the format {spec!r} is none for a value of {np.dtype(dtype).name}", code="MLC0695",
                            hint="write d for integers, and f, e or g, as in {:.3f}, for floats") from None


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


def stopped(values: dict[str, Any], loc: Loc) -> None:
    """Enter Python's debugger (`sys.breakpointhook`) in a frame whose place is the line of the program, and whose names
    are those of the values, and `values` for all of them."""
    print(f"stopped at {loc}: {', '.join(values) or 'no values'} in `values`", flush=True)
    line = min(max(loc.line, 1), LAST_LINE)
    code = _here.__code__.replace(co_filename=loc.file or "<program>", co_name="breakpoint", co_firstlineno=line - 1)
    FunctionType(code, {**values, "__builtins__": builtins})(values, sys.breakpointhook)


def _here(values: dict[str, Any], stop: Callable[[], None]) -> None:
    stop()                                                 # in the second line
