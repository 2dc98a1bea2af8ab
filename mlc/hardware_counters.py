"""The processor's counters of instructions and cache misses, where Linux lets a process read them."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from types import TracebackType

_SYSCALLS = {"x86_64": 298, "aarch64": 241}
"""The number of perf_event_open."""
_ATTRIBUTES = struct.Struct("<IIQQQQQ")
_SIZE = 112
"""Bytes of a `perf_event_attr` of version 5, of which the first are set here."""
_DISABLED, _INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1, 1 << 1, 1 << 5, 1 << 6
_TIMES = 3
"""PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING: a counter that shares its register with others counts a part of it."""
_ENABLE, _DISABLE = 0x2400, 0x2401
COUNTERS = {"instructions": (0, 1), "cycles": (0, 0), "cache references": (0, 2), "cache misses": (0, 3),
            "branches": (0, 4), "branch misses": (0, 5)}
"""The type and the number of generic events of Linux, by name."""
_REASONS = {
    errno.EACCES: "Linux forbids it: /proc/sys/kernel/perf_event_paranoid is above 2, and this process has no "
                  "CAP_PERFMON",
    errno.EPERM: "Linux forbids it: /proc/sys/kernel/perf_event_paranoid is above 2, or a sandbox refuses the call",
    errno.ENOENT: "the processor shows none, as in most virtual machines",
    errno.ENODEV: "the processor shows none, as in most virtual machines",
    errno.EOPNOTSUPP: "the processor shows none, as in most virtual machines",
    errno.ENOSYS: "this kernel has none",
}


class HardwareCounters:
    """Context that counts what this thread, and all threads that it starts meanwhile, do outside of the kernel.

    counts  by name, what was counted at the end; empty where nothing may be counted
    reason  why nothing is counted; "" if something is

    Example:
        >>> from mlc.hardware_counters import HardwareCounters
        >>> with HardwareCounters() as counted:
        ...     _ = mlc.ones(1000) + 1
        >>> bool(counted.counts) != bool(counted.reason)
        True
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.reason = ""
        self._files: dict[str, int] = {}

    def __enter__(self) -> HardwareCounters:
        for name, event in COUNTERS.items():
            found = _open(*event)
            if found >= 0:
                self._files[name] = found
            elif not self._files and not self.reason:
                self.reason = _REASONS.get(-found, os.strerror(-found))
        if self._files:
            self.reason = ""
        for file in self._files.values():
            _libc().ioctl(file, _ENABLE, 0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        for file in self._files.values():
            _libc().ioctl(file, _DISABLE, 0)
        for name, file in self._files.items():
            value, enabled, running = struct.unpack("<QQQ", os.read(file, 24))
            os.close(file)
            if running:
                self.counts[name] = value * enabled // running
        self._files.clear()
        if not self.counts and not self.reason:
            self.reason = "the counters did not run"

    def text(self) -> str:
        """Describe what was counted, or why nothing was, in one line."""
        if not self.counts:
            return f"hardware counters: none ({self.reason})"
        parts = [f"{count:.4g} {name}" for name, count in self.counts.items()]
        for what, of, shown in (("instructions", "cycles", "{:.2f} instructions a cycle"),
                                ("cache misses", "cache references", "{:.1%} of cache references miss"),
                                ("branch misses", "branches", "{:.1%} of branches are mispredicted")):
            if what in self.counts and self.counts.get(of):
                parts.append(shown.format(self.counts[what] / self.counts[of]))
        return "hardware counters: " + ", ".join(parts)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _open(kind: int, event: int) -> int:
    """The file of a counter of this thread; a negative error number if there is none."""
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        return -errno.ENOSYS
    flags = _DISABLED | _INHERIT | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR
    attributes = _ATTRIBUTES.pack(kind, _SIZE, event, 0, 0, _TIMES, flags).ljust(_SIZE, b"\0")
    found = int(_libc().syscall(number, attributes, 0, -1, -1, 8))     # this thread, any processor, close on exec
    return found if found >= 0 else -ctypes.get_errno()
