"""Values that a thread sees within a `with` block."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def set_in_thread(state: threading.local, name: str, value: Any) -> Iterator[None]:
    """Context in which this thread finds `value` under a name of `state`; afterwards the former value."""
    saved = getattr(state, name)
    setattr(state, name, value)
    try:
        yield
    finally:
        setattr(state, name, saved)
