"""Structural fingerprint of a module of the tensor level, and the table of locations that it omits.

Modules with equal fingerprints compile to equal code. Locations are not part of the code but substituted afterwards:
while a module is lowered, its operations have the locations `<op>:NUMBER`, and so have all diagnostics.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from mlc.dialects.func import Func
from mlc.ir import logs
from mlc.ir.abi import Interface
from mlc.ir.core import Op
from mlc.ir.diag import NUMBERED, Error, Loc
from mlc.ir.kernel_sites import KernelSite, SourceLine
from mlc.ir.printer import Printer
from mlc.ir.rewrite import RULES

_NUMBER = re.compile(re.escape(NUMBERED) + r":(\d+)")
_MESSAGES_ONLY = frozenset({"arg_names"})
"""Attributes that only diagnostics use."""


def structural_text(module: Op) -> str | None:
    """Structural fingerprint: equal for two modules only if they compile to the same code.

    Names of values and arguments and locations of operations are not part of it. None if the module has operations, or
    there are rewrite rules, that are not defined by this package.
    """
    if has_foreign_rules():
        return None
    printer = _StructuralPrinter()
    try:
        printer.op(module)
    except _Foreign:
        return None
    return "\n".join(printer.lines)


def has_foreign_rules() -> bool:
    """Whether there are rewrite rules that are not defined by this package."""
    return not all(rule.apply.__module__.startswith("mlc.") for rules in RULES.values() for rule in rules)


def whole_text(function: Func, name: str) -> str | None:
    """The generic text of a function under another name, without the names of values, locations, and labels of
    kernels; None if that is not all of it: it holds arrays, or operations that are not defined by this package."""
    if any(isinstance(value, np.ndarray) for op in function.walk() for value in op.attrs.values()):
        return None
    printer = _WholePrinter(name)
    try:
        printer.op(function)
    except _Foreign:
        return None
    return "\n".join(printer.lines) + "\n"


class _Foreign(Exception):
    """An operation defined outside of this package, which the version of mlc does not identify."""


class _StructuralPrinter(Printer):
    """Generic form with numbered values; constants are hashed, since their text merges NaN payloads."""

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


class _WholePrinter(_StructuralPrinter):
    def __init__(self, function: str) -> None:
        super().__init__()
        self.function = function

    def named_attr(self, op: Op, name: str, value: Any) -> str:
        if name == "sym_name":
            value = self.function
        elif name == "label":
            value = ""
        return super().named_attr(op, name, value)


class LocationTable:
    """The locations of a module's operations, by number."""

    def __init__(self, module: Op) -> None:
        self.ops = list(module.walk())
        self.locs = [op.loc for op in self.ops]
        self.names: dict[str, Sequence[str]] = {
            str(op.attrs["sym_name"]): op.attrs["arg_names"] for op in self.ops if "arg_names" in op.attrs}

    @contextmanager
    def numbered(self) -> Iterator[None]:
        """Context in which locations are replaced by numbers; errors raised in it get the locations back."""
        for i, op in enumerate(self.ops):
            op.loc = Loc(NUMBERED, i, scope=f"{NUMBERED}:{i}")
        try:
            with logs.places_shown_by(self.text):
                yield
        except Error as error:
            self._restore(error)
            raise
        finally:                                           # diagnostics may still refer to values of the module
            for op, loc in zip(self.ops, self.locs):
                op.loc = loc

    def _restore(self, error: Error) -> None:
        if error.loc.file == NUMBERED:
            loc = self.locs[error.loc.line]
            error.loc = replace(loc, via=(*loc.via, *error.loc.via))
        error.message = self.text(error.message)
        error.notes = tuple(map(self.text, error.notes))
        error.hint = error.hint and self.text(error.hint)

    def text(self, message: str) -> str:
        """Message with numbers replaced by locations."""
        return _NUMBER.sub(lambda m: str(self.locs[int(m[1])]) if int(m[1]) < len(self.locs) else m[0], message)

    def place(self, text: str) -> Loc:
        """The location that the module of a numbered one stands for: that of an operation, or of one in a function
        that is called, as `Loc.called` says it."""
        if not text.startswith("("):
            return self.locs[int(text.removeprefix(f"{NUMBERED}:"))]
        parts, depth = [""], 0
        for c in text[1:-1]:
            depth += (c == "(") - (c == ")")
            if c == "|" and not depth:
                parts.append("")
            else:
                parts[-1] += c
        inner, callee, call = map(self.place, parts)
        return inner.called(callee, call)

    def kernel(self, text: str) -> str:
        """The description of a kernel with the lines and modules of this module."""
        def known(line: SourceLine) -> SourceLine:
            if line.file != NUMBERED:
                return line
            loc = self.place(line.scope)
            return SourceLine(loc.file, loc.line, loc.scope)

        return KernelSite.parse(text).at(known).text()

    def interface(self, interface: Interface) -> Interface:
        """Map the interface of a module with the same fingerprint to the names and locations of this module."""
        return replace(interface, error_sites=tuple(map(self.text, interface.error_sites)),
                       constraint_sites=tuple(map(self.text, interface.constraint_sites)),
                       kernels=tuple(map(self.kernel, interface.kernels)),
                       arg_names=tuple(map(str, self.names.get(interface.name, ()))))
