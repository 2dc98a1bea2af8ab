"""Errors of operations at the user's line, with the origin of each operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.frontend.hints import hint_for, shown
from mlc.frontend.tensor import Array, Tensor
from mlc.frontend.tracer import Tracer, origin
from mlc.ir.diag import BackendError, Error, InternalError, IRError, Loc, UserError, UserTypeError
from mlc.ir.types import from_numpy


def describe(x: Any) -> str:
    """Description of an operand for error messages: `tensor<4x3xf32> from model.py:12:9`."""
    if isinstance(x, Tracer):
        known = x.value.op is not None or x.value.name
        return f"{x.type} from {origin(x)}" if known else str(x.type)
    if isinstance(x, Tensor | np.ndarray):
        array = x._array if isinstance(x, Tensor) else x
        if hasattr(array, "shape"):
            return f"tensor<{''.join(f'{d}x' for d in array.shape)}{_element(array)}>"
    return f"{type(x).__name__} {x!r}"[:80]


def _element(array: Array) -> str:
    try:
        return str(from_numpy(array.dtype))
    except IRError:
        return str(array.dtype)


def as_user_error(error: Error, name: str, operands: Sequence[Any], loc: Loc) -> Error:
    """Error of an operation as one at the user's line that says where each operand comes from."""
    if isinstance(error, InternalError | BackendError):
        return error
    name = shown(name)
    error.hint = error.hint or hint_for(error.code, name)
    if isinstance(error, UserError):
        if not error.loc.file:
            error.loc = loc
            if not error.message.startswith(name + " "):
                error.message = f"{name}: {error.message}"
        if not error.notes:
            error.notes = _operand_notes(operands)
        return error
    message = error.message.split(": ", 1)[-1] if error.message.startswith("tensor.") else error.message
    kind = UserTypeError if isinstance(error, IRError) and error.code in ("MLC0109", "MLC0110") else UserError
    return kind(f"{name}: {message}", code=error.code, loc=loc, notes=_operand_notes(operands) or error.notes,
                hint=error.hint, symbols=error.symbols)


def _operand_notes(operands: Sequence[Any]) -> tuple[str, ...]:
    return tuple(f"operand {i}: {describe(x)}" for i, x in enumerate(operands) if x is not None)
