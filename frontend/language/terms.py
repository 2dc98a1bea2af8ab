"""Messages of the library in the language's own terms, f32[B, 784] for tensor<Bx784xf32>, and hints for them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend.language.values import shown, type_text
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import Error, Loc, UserError
from mlc.ir.type_parser import TypeParser
from mlc.ir.types import TensorType

_TYPE = re.compile(r"tensor<[^<>]*>")
_WORDS = ((r"\b_?getitem: ", "indexing: "),
          (r"(?<![\w./])mlc\.(?:nn\.functional\.)?(?=[a-z])", ""),
          (r"\b(?:the|a Python) (?:int|float)\b", "the number"),
          (r"\bSize Size\(([^()]*)\)", r"the size \1"),
          (r", expected sizes$", ", expected sizes in brackets, as (2, 3)"),
          (r"give the sizes as numbers \(dynamic=False\)", "write numbers for the sizes in the types of parameters"),
          (r"\ba Python number\b", "a number"), (r"\bNone\b", "none"), (r"\bTrue\b", "true"), (r"\bFalse\b", "false"),
          (r"where Python needs a number while the function is recorded, name the parameter in .*",
           "leave the type of a parameter out, and its value is known while the program is compiled"))


def in_terms(text: str) -> str:
    """Translate a message, note or hint of the library to the terms of the language."""
    text = _TYPE.sub(_type, text)
    for pattern, word in _WORDS:
        text = re.sub(pattern, word, text)
    return text


def in_text(error: Error, loc: Loc, hint: str | None = None) -> UserError:
    """An error of the library as one at a place in the text."""
    def here(text: str) -> str:
        return in_terms(text).replace(f" {loc.file}:", " line ")

    return UserError(here(error.message), code=error.code, loc=loc, notes=tuple(map(here, error.notes)),
                     hint=here(error.hint) if error.hint else hint, symbols=error.symbols)


def _type(m: re.Match[str]) -> str:
    try:
        found = TypeParser(m[0], "<type>").type()
    except Error:
        return m[0]
    return type_text(found) if isinstance(found, TensorType) else m[0]


def hint(function: Callable[..., Any], name: str, args: Sequence[Any]) -> str:
    """Hint for an error that the library has no suggestion for."""
    tensors = [x for x in args if isinstance(x, Tensor)]
    if name in ("@", "matmul", "mm") and len(tensors) == 2:
        a, b = tensors
        if len(a.shape) > 0 and len(b.shape) == 2 and a.shape[-1] == b.shape[1]:
            return f"the transpose of the right one fits: {shown(a)} @ {type_text(_transposed(b))}, with .T"
        return f"the last size of {shown(a)} and the first of {shown(b)} must be equal"
    if name == "indexing" and tensors:
        return f"{shown(tensors[0])} has {len(tensors[0].shape)} dimensions"
    if len(tensors) > 1:
        return "the sizes must fit: " + " and ".join(map(shown, tensors))
    owner = getattr(function, "__self__", None)
    tensors += [owner] if isinstance(owner, Tensor) else []
    try:
        parameters = inspect.signature(getattr(function, "forward", function)).parameters.values()
    except (TypeError, ValueError):
        return f"{name} is given {', '.join(map(shown, args)) or 'nothing'}"
    taken = ", ".join(p.name if p.default is p.empty else f"{p.name}={in_terms(repr(p.default))}" for p in parameters)
    return f"{name} takes ({taken})" + (f", here {', '.join(map(shown, tensors))}" if tensors else "")


def _transposed(x: Tensor) -> TensorType:
    return TensorType((x.shape[1], x.shape[0]), x.dtype.ir)
