"""Errors of what cannot be recorded, which the program may catch: the recording still fails with the first of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from mlc.ir.diag import UserError


class Recording(Protocol):
    """A recording, and the first error of what it could not record."""

    refused: UserError | None


class _InProgress(threading.local):
    """The outermost recording in progress in this thread."""

    recording: Recording | None = None


in_progress = _InProgress()


def refusal(message: str, **more: Any) -> UserError:
    """The error of what cannot be recorded. The program may catch it, and go another way than Python would: then the
    recording fails with it at its end."""
    return refused(UserError(message, **more))


def refused(error: UserError) -> UserError:
    """The error, of which the recording in progress is told."""
    if (recording := in_progress.recording) is not None and recording.refused is None:
        recording.refused = error
    return error


@contextmanager
def attempt() -> Iterator[None]:
    """Within, what is refused may be recorded in another way."""
    recording = in_progress.recording
    assert recording is not None, "nothing is being recorded"
    before = recording.refused
    try:
        yield
    except UserError:
        recording.refused = before
        raise
