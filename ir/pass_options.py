"""Options of passes: the kinds of their values, which `run` declares, and values in the text of a pipeline."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union, get_args, get_origin

from mlc.ir.diag import UserError
from mlc.ir.machine import Machine

Kinds = tuple[type, ...]
"""The classes that the values of an option may have; () for any."""

WORDS = {bool: "true or false", int: "a whole number", float: "a number", types.NoneType: "none", str: "a text",
         Machine: "a machine model"}
"""The words of each kind in messages. A text is read as the first of an option's kinds that it fits."""


def kinds_of(run: Callable[..., Any]) -> Mapping[str, Kinds]:
    """The kinds of each option of a pass: its annotation, or without one the class of its default value."""
    try:
        signature = inspect.signature(run, eval_str=True)
    except (NameError, AttributeError, TypeError):         # of names that only type checkers import
        signature = inspect.signature(run)
    return {p.name: _kinds(p) for p in list(signature.parameters.values())[1:]}


def _kinds(parameter: inspect.Parameter) -> Kinds:
    kind = parameter.annotation
    if kind is parameter.empty or isinstance(kind, str):
        kind = object if parameter.default in (None, parameter.empty) else type(parameter.default)
    kinds = get_args(kind) if get_origin(kind) in (types.UnionType, Union) else (kind,)
    if not all(isinstance(k, type) and issubclass(k, tuple(WORDS)) for k in kinds):
        return ()
    return tuple(sorted(kinds, key=lambda k: [*WORDS].index(_base(k))))


def _base(kind: type) -> type:
    return next(base for base in WORDS if issubclass(kind, base))


def parsed(owner: str, name: str, text: str | None, kinds: Kinds) -> Any:
    """The value of an option of the pass `owner`; None is that of one without a value, as in `canonicalize{fast}`."""
    for kind in kinds or (bool, int, float, str):
        if kind is bool and text in (None, "", "true", "false"):
            return text != "false"
        if kind is types.NoneType and text == "none":
            return None
        if issubclass(kind, Machine):
            return kind.parse(text or "")
        if issubclass(kind, int | float | str) and kind is not bool and text is not None:
            try:
                return kind(text)
            except ValueError:
                continue
    raise _refused(owner, name, "" if text is None else f" = {text!r}", kinds)


def check(owner: str, options: Sequence[tuple[str, Any]], kinds: Mapping[str, Kinds]) -> None:
    """UserError (MLC0333) unless each value is of one of the kinds of its option."""
    for name, value in options:
        of_option = kinds.get(name, ())
        fits = bool in of_option if isinstance(value, bool) else isinstance(value, of_option) or (
            float in of_option and isinstance(value, int))
        if of_option and not fits:
            raise _refused(owner, name, f" = {value!r}", of_option)


def _refused(owner: str, name: str, value: str, kinds: Kinds) -> UserError:
    words = " or ".join(WORDS[_base(k)] for k in kinds)
    return UserError(f"pass {owner}: {name}{value} is not {words}" if value else
                     f"pass {owner}: {name} needs a value: {words}", code="MLC0333",
                     hint=f"mlc passes {owner} lists the options")


def text_of(value: Any) -> str:
    """The value of an option as the text of a pipeline has it."""
    return str(value).lower() if isinstance(value, bool | None) else str(value)
