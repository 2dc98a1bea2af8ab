"""Refusals: errors about code that cannot be recorded. If the program catches one, the recording fails all the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from mlc.dialects.func import Func
from mlc.ir.core import BlockArg, Value
from mlc.ir.diag import UserError


class Recording(Protocol):
    """A recording, and its first refusal."""

    refused: UserError | None


class _InProgress(threading.local):
    """The outermost recording in progress in this thread, and for each value whose number its first refusal may be
    about, innermost first, the numbers of the arguments that it is computed from."""

    recording: Recording | None = None
    asked: tuple[frozenset[int], ...] = ()


in_progress = _InProgress()


def refusal(message: str, **more: Any) -> UserError:
    """Create the error for code that cannot be recorded. If the program catches it, and so takes a path that it would
    not take in plain Python, the recording fails with it at its end."""
    return refused(UserError(message, **more))


def unknown(value: Value | None, message: str, **more: Any) -> UserError:
    """Create the error for a program in which Python asks for the number of a value that is recorded."""
    error = refusal(message, **more)
    if (recording := in_progress.recording) is None or recording.refused is error:
        in_progress.asked = (_arguments_of(value),)
    return error


@contextmanager
def asking(value: Value | None) -> Iterator[None]:
    """Context for control flow that depends on a value: what cannot be recorded there asks for its number."""
    try:
        yield
    except UserError:
        in_progress.asked += (_arguments_of(value),)
        raise


def _arguments_of(value: Value | None) -> frozenset[int]:
    """The numbers of the arguments of the function that is recorded that a value is computed from; none if it is
    computed from what a loop or a function that is called has."""
    found, seen, work = set[int](), set[Value](), [] if value is None else [value]
    while work:
        v = work.pop()
        if v in seen:
            continue
        seen.add(v)
        if isinstance(v, BlockArg):
            function = v.block.parent_op
            if not isinstance(function, Func) or function.sym_name != "main":
                return frozenset()
            found.add(v.index)
        elif v.op is not None:
            work += [x for inner in v.op.walk() for x in inner.operands]
    return frozenset(found)


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
