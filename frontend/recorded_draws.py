"""Draws from generators in functions that are recorded: which keys they are, and where there can be none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mlc.frontend.tensor import Array, wrap
from mlc.frontend.trace import as_tracer, state
from mlc.frontend.tracer import Tracer


def refuses_draws() -> bool:
    """Whether a function is being recorded for many examples, which would draw the same."""
    return state.trace is not None and mapping.refuses


def in_loop() -> bool:
    """Whether what is being recorded is the body of a loop, which draws in each iteration."""
    return state.trace is not None and state.trace.root.loops.loc is not None


class _Once(threading.local):
    allowed = False


class Draws:
    """The keys that a function draws while it is recorded to run at once. If it is recorded again, as for a pullback,
    it draws the same ones."""

    def __init__(self) -> None:
        self._keys: list[Array] = []
        self._drawn = 0

    def next(self, generator: Any) -> Tracer:
        if self._drawn == len(self._keys):
            self._keys.append(generator._taken().copy())
        self._drawn += 1
        return as_tracer(wrap(self._keys[self._drawn - 1]))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Context in which a function is recorded that draws these keys."""
        saved, at_once.draws, self._drawn = at_once.draws, self, 0
        try:
            yield
        finally:
            at_once.draws = saved


class _AtOnce(threading.local):
    draws: Draws | None = None


class _Mapped(threading.local):
    refuses = False


once, at_once, mapping = _Once(), _AtOnce(), _Mapped()


@contextmanager
def mapped(randomness: str) -> Iterator[None]:
    """Context in which a function of one example is recorded for many; it may draw if that is "same" for all."""
    saved, mapping.refuses = mapping.refuses, mapping.refuses or randomness == "error"
    try:
        yield
    finally:
        mapping.refuses = saved


@contextmanager
def drawn_once() -> Iterator[None]:
    """Context in which initial values are drawn while a function is recorded, for a model that is made once."""
    saved, once.allowed = once.allowed, True
    try:
        yield
    finally:
        once.allowed = saved
