"""Outcomes of calls, and comparison of two of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlc.ir.diag import BackendError, IRError, UserError
from mlc.ir.interp import in_parts

Array = np.ndarray[Any, Any]

TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
"""Relative and absolute tolerances by dtype; other dtypes must agree exactly. See rounding.py for larger ones."""

FAILURES = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, NotImplementedError, AssertionError,
            IRError, BackendError)
"""Exceptions that an incorrect pass, or the interpreter on its output, may raise. A UserError is one of these, too."""


@dataclass
class Outcome:
    """Outcome of a call: arrays, or the error that it raises."""

    results: list[Array] = field(default_factory=list)
    error: UserError | None = None

    def difference(self, other: Outcome, exact: bool, slack: Callable[[], Sequence[Array]] | None = None) -> str | None:
        """None if this agrees with `other`, else a description of the difference.

        slack  how far each element may be off, asked for where the tolerance is passed
        """
        if self.error is not None or other.error is not None:
            mine, theirs = (e.message if e is not None else "results" for e in (self.error, other.error))
            return None if type(self.error) is type(other.error) else f"{mine} in place of {theirs}"
        if len(self.results) != len(other.results):
            return f"{len(self.results)} results in place of {len(other.results)}"
        pairs = [(in_parts(got), in_parts(want)) for got, want in zip(self.results, other.results)]
        if all(difference(got, want, exact) is None for got, want in pairs):
            return None
        allowed: Sequence[Array | float] = slack() if slack is not None and not exact else [0.0] * len(pairs)
        for i, ((got, want), more) in enumerate(zip(pairs, allowed)):
            if message := difference(got, want, exact, more):
                return f"result {i} is {message}"
        return None


def difference(got: Array, want: Array, exact: bool, slack: Array | float = 0.0) -> str | None:
    """None if two arrays agree, else a description of the difference. NaNs are equal; if exact, +0 and -0 differ."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} in place of {want.dtype}{list(want.shape)}"
    if got.dtype.name not in TOLERANCES:                   # what is counted or compared is as certain as its operands
        same = got == want
        if not exact and np.any(slack):
            same |= np.abs(got.astype(np.float64) - want.astype(np.float64)) <= slack
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        both_nan = np.isnan(a) & np.isnan(b)
        with np.errstate(all="ignore"):
            if exact:
                same = (a == b) & (np.signbit(a) == np.signbit(b)) | both_nan
            else:
                rtol, atol = TOLERANCES[got.dtype.name]
                close = np.isclose(a, b, rtol=rtol, atol=atol)
                close &= (a != 0) | (b != 0) | (np.signbit(a) == np.signbit(b))      # a zero has the sign it had
                same = close | both_nan | ((np.abs(a - b) <= slack) & (np.asarray(slack) > 0)) | np.isinf(slack)
    if np.all(same):
        return None
    at = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
    return f"{got[at]} in place of {want[at]} at {list(at)} ({int((~same).sum())} of {same.size} differ)"
