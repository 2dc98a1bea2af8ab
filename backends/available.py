"""How much memory LLVM may use: it ends the process where it gets none, so there must be enough before it begins."""

from __future__ import annotations

import re
import resource
from pathlib import Path

from mlc.ir.diag import UserMemoryError

BASE, PER_CHARACTER = 64 << 20, 64
"""Bytes that LLVM takes to compile a text, measured from 2 to 10 MB: 37 to 64 for each character, and its own start."""
CERTAIN = 1 << 20
"""Texts of fewer characters compile wherever Python runs, unless the process has a limit of its own."""


def check_memory(characters: int) -> None:
    """UserMemoryError where LLVM would not get what it needs for a text of this length."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY and characters < CERTAIN:
        return
    needed, free = BASE + PER_CHARACTER * characters, available(limit)
    if needed > free:
        raise UserMemoryError(f"LLVM needs about {needed >> 20} MB to compile {characters} characters of its text, and "
                              f"{free >> 20} MB are free", code="MLC0451",
                              hint="put repeated layers into functions or loops, or raise the limit (ulimit -v)")


def available(limit: int) -> int:
    """Bytes that this process can still get: of its own limit, of its control group's and of the machine."""
    bounds = list[int]()
    if limit != resource.RLIM_INFINITY:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        bounds.append(limit - pages * resource.getpagesize())
    bounds.append(sum(int(kilobytes) << 10 for kilobytes in re.findall(
        r"(?m)^(?:MemAvailable|SwapFree): +(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))))
    group = Path("/sys/fs/cgroup")
    try:
        most, used = ((group / name).read_text(encoding="ascii").strip() for name in ("memory.max", "memory.current"))
    except OSError:                                        # no such group, or an older kernel
        return max(0, min(bounds))
    if most.isdecimal():
        bounds.append(int(most) - int(used))
    return max(0, min(bounds))
