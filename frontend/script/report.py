"""Compilation report of a function: one entry per specialisation, for `Compiled.report`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlc.ir.diag import Loc, UserError

UNRECORDED = frozenset({"MLC0350", *(f"MLC06{n:02}" for n in range(20))})
"""Codes of refusals, after which a function may fall back to plain Python."""


@dataclass(frozen=True)
class Report:
    """One specialisation of a function: its array types, the values of other arguments, how it was recorded, and why,
    if there were others before it."""

    types: list[str]
    values: list[tuple[str, Any]]
    notes: list[tuple[Loc, str, str]]
    error: UserError | None
    reason: str = ""

    def __str__(self) -> str:
        lines = [f"  ({', '.join(self.types)})"] + [f"    compiled again: {self.reason}"] * bool(self.reason)
        lines += [f"    {path} = {value!r}"[:120] for path, value in self.values]
        lines += [f"    {loc}: {what}{'' if kind == 'value' else ' is recorded'}" for loc, kind, what in self.notes]
        if self.error is not None:
            lines.append(f"    runs as Python: {self.error.loc}: {self.error.message} [{self.error.code}]")
        return "".join(line + "\n" for line in lines)
