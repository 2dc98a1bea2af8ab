"""Memory available to LLVM, which aborts the process if an allocation fails, so it is checked in advance."""

from __future__ import annotations

import re
import resource
from pathlib import Path

from mlc.ir.diag import UserMemoryError

BASE, PER_CHARACTER = 64 << 20, 64
"""Bytes that LLVM needs at startup, and per character of text (37 to 64, measured from 2 to 10 MB)."""
CERTAIN = 1 << 20
"""Shorter texts are not checked, unless the process has a memory limit."""


def check_memory(characters: int) -> None:
    """Raise UserMemoryError if there is too little memory for LLVM to compile a text of this length."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY and characters < CERTAIN:
        return
    needed, free = BASE + PER_CHARACTER * characters, available(limit)
    if needed > free:
        raise UserMemoryError(f"LLVM needs about {needed >> 20} MB to compile {characters} characters of LLVM IR, but "
                              f"only {free >> 20} MB are free", code="MLC0451",
                              hint="put repeated layers into functions or loops, or raise the limit (ulimit -v)")


def available(limit: int) -> int:
    """Bytes that this process can still allocate: the minimum over its limit, its control group and the machine."""
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
