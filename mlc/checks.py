"""Checks on all calls of compiled functions, enabled by `mlc run --check` and `mlc.detect_anomaly`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.ir.core import Op
from mlc.ir.diag import InternalError


class Checks:
    """Checks that are done on all calls of compiled functions in this process.

    every_call  whether to compare every call with plain Python, for `mlc run --check`
    anomaly     called with the results of each, a function that records it again, and its arguments: mlc.detect_anomaly
    apart       runs a function that may crash in a child process, and raises its exceptions
    found       the first difference, kept in case the program catches the error
    """

    every_call = False
    apart: Callable[[Callable[[], None]], None] = staticmethod(lambda work: work())
    found: InternalError | None = None
    anomaly: Callable[[Sequence[Any], Callable[[], Op], Sequence[Any]], None] | None = None
