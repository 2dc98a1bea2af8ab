"""Instrumentation: code that the pipeline adds besides that of the program."""

from __future__ import annotations

from enum import Enum


class Instrumentation(Enum):
    """The addition; checks and times exclude each other, since the times would be those of the checks.

    NONE    nothing
    CHECKS  reports of undefined behaviour (passes/insert_checks)
    TIMES   the times of kernels, for a profile (passes/time_kernels.py)
    """

    NONE = "none"
    CHECKS = "checks"
    TIMES = "times"


NONE, CHECKS, TIMES = Instrumentation
