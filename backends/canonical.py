"""Canonical form of a module of the tensor level: its text without names and locations, and the way back to these.

Two modules with equal text compile to equal code. What they say of places is left out of the code and filled in
afterwards: while a module is lowered, its operations are at `<op>:NUMBER`, and so are all messages that come out of it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from mlc.ir.abi import Interface
from mlc.ir.core import Op
from mlc.ir.diag import Error, Loc
from mlc.ir.printer import Printer
from mlc.ir.rewrite import RULES

NUMBERED = "<op>"
_PLACE = re.compile(re.escape(NUMBERED) + r":(\d+)")
_MESSAGES_ONLY = frozenset({"arg_names"})
"""Attributes that only messages read."""


def canonical_text(module: Op) -> str | None:
    """Equal for two modules only if they become the same code; None where operations or rules are not of this package.

    The names of values, of arguments and where operations came from are not in it.
    """
    if not all(rule.apply.__module__.startswith("mlc.") for rules in RULES.values() for rule in rules):
        return None
    printer = _Canonical()
    try:
        printer.op(module)
    except _Foreign:
        return None
    return "\n".join(printer.lines)


class _Foreign(Exception):
    """An operation whose definition the version of mlc says nothing about."""


class _Canonical(Printer):
    """The generic printing with numbers for names, and with hashes for constants: text merges some NaNs."""

    def __init__(self) -> None:
        super().__init__(generic=True, locations=False)

    def fresh(self, hint: str, default: str) -> str:
        return super().fresh("", default)

    def op(self, op: Op) -> None:
        if not type(op).__module__.startswith("mlc."):
            raise _Foreign
        super().op(op)

    def named_attr(self, op: Op, name: str, value: Any) -> str:
        if name in _MESSAGES_ONLY:
            return name
        if isinstance(value, np.ndarray):
            flat = np.ascontiguousarray(value).reshape(-1)
            digest = hashlib.sha256(flat.view(np.uint8).data).hexdigest()
            return f"{name} = {value.dtype.name} {value.dtype.byteorder} {value.shape} {digest}"
        return super().named_attr(op, name, value)


class Places:
    """The places of a module's operations, by number."""

    def __init__(self, module: Op) -> None:
        self.ops = list(module.walk())
        self.locs = [op.loc for op in self.ops]
        self.names: dict[str, Sequence[str]] = {
            str(op.attrs["sym_name"]): op.attrs["arg_names"] for op in self.ops if "arg_names" in op.attrs}

    @contextmanager
    def numbered(self) -> Iterator[None]:
        """Within, every operation is at its number. Errors that come out speak of the places again."""
        for i, op in enumerate(self.ops):
            op.loc = Loc(NUMBERED, i)
        try:
            yield
        except Error as error:
            self._restore(error)
            raise
        finally:                                           # values of the module may still be spoken of
            for op, loc in zip(self.ops, self.locs):
                op.loc = loc

    def _restore(self, error: Error) -> None:
        if error.loc.file == NUMBERED:
            place = self.locs[error.loc.line]
            error.loc = Loc(place.file, place.line, place.col, (*place.via, *error.loc.via))
        error.message = self.text(error.message)
        error.notes = tuple(map(self.text, error.notes))
        error.hint = error.hint and self.text(error.hint)

    def text(self, message: str) -> str:
        """A message with places for numbers."""
        return _PLACE.sub(lambda m: str(self.locs[int(m[1])]) if int(m[1]) < len(self.locs) else m[0], message)

    def interface(self, interface: Interface) -> Interface:
        """An interface of code made of a module with the same text, in the words of this one."""
        return replace(interface, error_sites=tuple(map(self.text, interface.error_sites)),
                       condition_sites=tuple(map(self.text, interface.condition_sites)),
                       arg_names=tuple(map(str, self.names.get(interface.name, ()))))
