"""Normalization of dimension arguments: negative ones, one or several."""

from __future__ import annotations

from typing import Any

from mlc.frontend.methods import Dims
from mlc.ir.diag import UserError, UserIndexError, UserTypeError


def plain_int(x: Any, what: str) -> int:
    """Convert anything with `__index__` to a Python integer that fits in 64 bits."""
    n = any_int(x, what)
    if not -2**63 <= n < 2**63:
        raise UserError(f"{what} = {n} does not fit in 64 bits"[-200:], code="MLC0348")
    return n


def any_int(x: Any, what: str) -> int:
    """Convert anything with `__index__` to a Python integer of any size."""
    if isinstance(x, bool) or not hasattr(x, "__index__"):
        raise UserTypeError(f"{what} is {type(x).__name__} {x!r}, expected an integer"[:200], code="MLC0355")
    try:
        return int(x.__index__())
    except TypeError:                                      # an array of several elements, or of floats
        raise UserTypeError(f"{what} is {type(x).__name__} {x!r}, expected an integer"[:200],
                            code="MLC0355") from None


def axis(dim: Any, rank: int, what: str = "dim", scalar: bool = True) -> int:
    """`dim` counted from the front. A 0-d tensor has the dimensions 0 and -1, as in PyTorch, if `scalar` says so."""
    if not rank and not scalar:
        raise UserError("a 0-d tensor has no dimensions, expected at least one", code="MLC0364")
    n, span = plain_int(dim, what), max(rank, 1)
    if not -span <= n < span:
        raise UserIndexError(f"{what} = {n} is out of range for a tensor of {rank} dimensions", code="MLC0356",
                             hint=f"it may be {-span} to {span - 1}")
    return n % span


def axes(dim: Dims, rank: int) -> tuple[int, ...]:
    """The axes that `dim` names, in ascending order; None and () are all of them."""
    if dim is None or (isinstance(dim, tuple | list) and not dim):
        return tuple(range(rank))
    out = [axis(d, rank) for d in (dim if isinstance(dim, tuple | list) else (dim,))]
    if len(set(out)) != len(out):
        raise UserError(f"dim = {dim} names a dimension twice", code="MLC0357")
    return tuple(sorted(out)) if rank else ()
