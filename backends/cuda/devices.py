"""The devices of this machine, each opened on first use, and the targets for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from mlc.backends.cuda import driver
from mlc.backends.cuda.device import PTX, Device, forked
from mlc.backends.cuda.targets import TARGETS as GPUS
from mlc.backends.cuda.targets import architecture, runs_on
from mlc.backends.target import Target
from mlc.ir.core import Op
from mlc.ir.diag import BackendError

_opened: dict[int, Device] = {}
_opening = threading.RLock()
_forked = False


def _after_fork() -> None:
    global _forked, _opening
    _forked, _opening = bool(_opened) or _forked, threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def count() -> int:
    """The number of devices; BackendError if it cannot be determined."""
    return len(_opened) if _substituted else driver.count()


def device(ordinal: int = 0) -> Device:
    """The device with this ordinal, opened; BackendError with the reason if there is none."""
    if _forked:
        raise forked()
    found = _opened.get(ordinal)
    if found is None:
        with _opening:
            if (found := _opened.get(ordinal)) is None:
                            found = _opened[ordinal] = driver.open_device(ordinal)
    return found


_substituted = False


def substitute(devices: dict[int, Device] | None) -> None:
    """Substitute `devices` for the devices of this machine; None restores them."""
    global _substituted
    _substituted = devices is not None
    _opened.clear()
    _opened.update(devices or {})


def assembler() -> tuple[str, Callable[[Op, Target], bytes]]:
    """The kind of code that devices load, and its assembler: PTX, except for substitutes."""
    if _substituted and _opened:
        stand_in = next(iter(_opened.values()))
        return stand_in.form, stand_in.assemble
    from mlc.backends.cuda.ptx import assemble
    return PTX, assemble


def target_for(found: Device) -> Target:
    """The best target for a device."""
    known = [target for target in GPUS.values() if runs_on(target, found.architecture)]
    if not known:
        raise BackendError(f"{found.name} has compute capability {found.architecture / 10}, and the oldest that mlc "
                           f"makes code for is {min(map(architecture, GPUS.values())) / 10}", code="MLC0588",
                           hint='use target="host"')
    return max(known, key=lambda target: (architecture(target), target.cpu))


def check_runs(target: Target, found: Device) -> None:
    """Raise BackendError unless a device can run code for `target`."""
    if not runs_on(target, found.architecture):
        raise BackendError(f"{found.name} (sm_{found.architecture}) cannot run code made for {target}", code="MLC0588",
                           hint='target="cuda" compiles for the device that is there')
