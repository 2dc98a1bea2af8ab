"""Refusals: errors about code that cannot be recorded. If the program catches one, the recording fails all the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from mlc.ir.core import Value
from mlc.ir.diag import UserError


class Recording(Protocol):
    """A recording, and its first refusal."""

    refused: UserError | None


class _InProgress(threading.local):
    """The outermost recording in progress in this thread, and the value of whose number its first refusal is."""

    recording: Recording | None = None
    asked: Value | None = None


in_progress = _InProgress()


def refusal(message: str, **more: Any) -> UserError:
    """Create the error for code that cannot be recorded. If the program catches it, and so takes a path that it would
    not take in plain Python, the recording fails with it at its end."""
    return refused(UserError(message, **more))


def unknown(value: Value | None, message: str, **more: Any) -> UserError:
    """Create the error for a program in which Python asks for the number of a value that is recorded."""
    error = refusal(message, **more)
    if (recording := in_progress.recording) is None or recording.refused is error:
        in_progress.asked = value
    return error


@contextmanager
def asking(value: Value | None) -> Iterator[None]:
    """Context for control flow that depends on a value: what cannot be recorded there asks for its number."""
    try:
        yield
    except UserError:
        if value is not None and in_progress.asked is None:
            in_progress.asked = value
        raise


def refused(error: UserError) -> UserError:
    """Register the error with the recording in progress; returns it."""
    if (recording := in_progress.recording) is not None and recording.refused is None:
        recording.refused = error
    return error


@contextmanager
def attempt() -> Iterator[None]:
    """Context in which refusals are not final, as the caller can record the code in another way."""
    recording = in_progress.recording
    assert recording is not None, "nothing is being recorded"
    before = recording.refused
    try:
        yield
    except UserError:
        recording.refused = before
        raise
