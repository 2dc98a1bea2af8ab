"""Refusal of an operator with arguments that have no translation."""

from __future__ import annotations

from typing import NoReturn

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError

CODE = "MLC0830"


def refuse(reason: str) -> NoReturn:
    """Refuse the operator whose row is running; PyTorch runs it, or `fallback=False` reports it."""
    raise UserError(reason, code=CODE, loc=user_loc())
