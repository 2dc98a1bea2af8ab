"""The exit statuses of the `mlc` command, and of a command whose output nobody reads to its end."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable

OK, WRONG_INPUT, USAGE, DEFECT, INTERRUPTED = 0, 1, 2, 101, 130
"""Done; the input is wrong; the command line or a file is; a defect of mlc; interrupted, as shells report it."""


def of_piped(command: Callable[[], int]) -> int:
    """The status of a command; OK where whoever reads its output has seen enough, as in `mlc ops | head`.

    OSError if its output cannot be written, and the command has not said so.
    """
    open_missing_streams()
    status = OK
    try:
        status = command()
        flush()
    except BrokenPipeError:
        _drop_output()
        return OK
    except OSError:
        _drop_output()
        if status == OK:
            raise
    return status


def open_missing_streams() -> None:
    """Give the process the standard streams that it is started without, as by `mlc ops >&-`: reading and printing fail
    then as with any file, and no file that is opened later becomes one of them. Messages go nowhere."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_WRONLY)
            setattr(sys, name, open(opened, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))


def flush() -> None:
    """Write what stdout holds; the OSError of a failure names it."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "<stdout>") from None


def is_read() -> bool:
    """Whether stdout is no pipe, or one that somebody still reads."""
    try:
        waiting = select.poll()
        waiting.register(sys.stdout, select.POLLOUT)
        return not any(found & select.POLLERR for _, found in waiting.poll(0))
    except (OSError, ValueError):                          # no file
        return True


def _drop_output() -> None:
    """Forget what stdout holds, which would be written, and raise, at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):                # stdout is no file, as in a test
        pass
