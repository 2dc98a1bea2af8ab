"""Checks that all calls of compiled functions go through: set by `mlc run --check` and `mlc.detect_anomaly`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.ir.core import Op
from mlc.ir.diag import InternalError


class Checks:
    """Checks that are done on all calls of compiled functions in this process.

    every_call  whether they are compared with plain Python: what `mlc run --check` asks for
    anomaly     is told of the results of each, how to record it again, and its arguments: mlc.detect_anomaly
    apart       runs what may end the process; what that raises it raises
    found       the first difference, which a program may catch as any error of this package
    """

    every_call = False
    apart: Callable[[Callable[[], None]], None] = staticmethod(lambda work: work())
    found: InternalError | None = None
    anomaly: Callable[[Sequence[Any], Callable[[], Op], Sequence[Any]], None] | None = None
