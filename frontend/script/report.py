"""Compilation report of a function: one entry per specialisation, for `Compiled.report`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlc.ir.diag import Loc, UserError

UNRECORDED = frozenset({"MLC0350", *(f"MLC06{n:02}" for n in range(20))})
"""The codes of what cannot be recorded, for which a function may run as Python."""


@dataclass(frozen=True)
class Report:
    """One specialisation of a function: the types of its arrays, the values of what is none, and what became of it."""

    types: list[str]
    values: list[tuple[str, Any]]
    notes: list[tuple[Loc, str, str]]
    error: UserError | None

    def __str__(self) -> str:
        lines = [f"  ({', '.join(self.types)})"]
        lines += [f"    {path} = {value!r}"[:120] for path, value in self.values]
        lines += [f"    {loc}: {what}{'' if kind == 'value' else ' is recorded'}" for loc, kind, what in self.notes]
        if self.error is not None:
            lines.append(f"    runs as Python: {self.error.loc}: {self.error.message} [{self.error.code}]")
        return "".join(line + "\n" for line in lines)
