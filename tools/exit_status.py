"""The exit statuses of the `mlc` command, and of a command whose output nobody reads to its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

OK, WRONG_INPUT, USAGE, DEFECT, INTERRUPTED = 0, 1, 2, 101, 130
"""Done; the input is wrong; the command line or a file is; a defect of mlc; interrupted, as shells report it."""


def of_piped(command: Callable[[], int]) -> int:
    """The status of a command; OK where whoever reads its output has seen enough, as in `mlc ops | head`."""
    try:
        status = command()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        try:                                     # what is buffered must not raise at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (OSError, ValueError):            # stdout is no file, as in a test
            pass
        return OK
