"""Placeholders for variables that are, or may be, unassigned."""

from __future__ import annotations

from typing import NoReturn

from mlc.frontend.abstract_values import Undefined
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError


class Maybe(Undefined):
    """Placeholder for the value of a variable that is assigned on some paths only; `why` says which."""

    def __init__(self, why: str) -> None:
        self.why = why


def unbound(value: Undefined, name: str) -> NoReturn:
    if isinstance(value, Maybe):
        raise UserError(f"{name} may have no value here: {value.why}", code="MLC0607", loc=user_loc(),
                        hint=f"give {name} a value before")
    raise UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value")
