"""The profiles that are on, and the paths that calls take for them.

Several may be on: a program that opens one of its own runs under `mlc profile`, too. Each has all events from its
beginning to its end; the paths are left when the last one ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from mlc.compiled import without_fast_paths
from mlc.frontend.compiler import compiler
from mlc.frontend.dispatch import general_path
from mlc.frontend.eager import compiled_by
from mlc.ir.compilation_lock import compiling
from mlc.ir.profiling import Memory, Recorder, state


class _Several:
    """Profiles that are on at once."""

    def __init__(self, profiles: Sequence[Recorder]) -> None:
        self.profiles = profiles

    def add(self, kind: str, name: str, start: int, end: int, operands: Sequence[Any], result: Any,
            memory: Callable[[], Memory] | None = None) -> None:
        for profile in self.profiles:
            profile.add(kind, name, start, end, operands, result, memory)

    def made(self, name: str, operands: Sequence[Any], result: Any) -> None:
        for profile in self.profiles:
            profile.made(name, operands, result)

    def add_times(self, times: Any) -> None:
        for profile in self.profiles:
            profile.add_times(times)


class _Shared:
    """A context that lasts while at least one profile needs it."""

    def __init__(self, make: Callable[[], AbstractContextManager[None]]) -> None:
        self._make, self._stack, self.count = make, ExitStack(), 0

    def hold(self) -> None:
        if not self.count:
            self._stack.enter_context(self._make())
        self.count += 1

    def release(self) -> None:
        self.count -= 1
        if not self.count:
            self._stack.close()


@contextmanager
def _through_python() -> Any:
    with general_path(), without_fast_paths():
        yield


_profiles: list[tuple[Recorder, bool]] = []
"""Those that are on, and whether they time kernels."""
_paths = _Shared(_through_python)
_clocks = _Shared(lambda: compiled_by(lambda module, device: compiler().compile(module, device)))
"""Kernels of operations, which are made anew: else code without clocks would be used, and that with clocks be kept."""


def is_on(profile: Recorder) -> bool:
    """Whether a profile is on."""
    return any(found is profile for found, _ in _profiles)


def begin(profile: Recorder, kernels: bool) -> None:
    """Have calls go through a profile from now on.

    No other thread compiles meanwhile: what it compiles is timed as a whole or not at all.
    """
    with compiling:
        _paths.hold()
        if kernels:
            _clocks.hold()
        _profiles.append((profile, kernels))
        _tell()


def end(profile: Recorder) -> None:
    """Undo `begin`."""
    with compiling:
        found = next(row for row in _profiles if row[0] is profile)
        _profiles.remove(found)
        _tell()
        if found[1]:
            _clocks.release()
        _paths.release()
        later: list[Callable[[], object]] = []
        if not _profiles:
            later, state.later = state.later, later
    for work in later:
        work()


def _tell() -> None:
    """Set what other modules look at."""
    profiles = [profile for profile, _ in _profiles]
    state.kernels = any(kernels for _, kernels in _profiles)
    state.recorder = _Several(profiles) if len(profiles) > 1 else profiles[0] if profiles else None
