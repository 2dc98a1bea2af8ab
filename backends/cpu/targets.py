"""CPU targets, and detection of the host processor."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Collection
from dataclasses import replace
from functools import cache

from mlc.backends import cache as store
from mlc.backends.llvm import binding
from mlc.backends.target import Target
from mlc.ir.diag import BackendError
from mlc.ir.machine import Cpu, x86_64

TRIPLE = "x86_64-unknown-linux-gnu"

# The psABI micro-architecture levels, as LLVM spells their features; each level contains the one above it.
_V1 = ("cmov", "cx8", "fxsr", "mmx", "sse", "sse2")
_V2 = ("crc32", "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
_CASCADE_LAKE = ("avx512vnni",)
_COOPER_LAKE = ("avx512bf16", *_CASCADE_LAKE)
_SAPPHIRE_RAPIDS = ("amx-bf16", "amx-int8", "amx-tile", "avx512bitalg", "avx512fp16", "avx512ifma", "avx512vbmi",
                    "avx512vbmi2", "avx512vpopcntdq", "avxvnni", "gfni", "vaes", "vpclmulqdq")

# arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA): Linux disables the AMX tiles until a process requests them.
_SYS_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


def _level(name: str, features: tuple[str, ...], vector_bits: int) -> Target:
    return Target(name, TRIPLE, name, tuple("+" + feature for feature in sorted(features)),
                  _machine(vector_bits, features))


def _machine(vector_bits: int, features: Collection[str]) -> Cpu:
    """The model of a processor with vectors of this width."""
    wide = vector_bits == 512
    tiles = wide and {"amx-tile", "amx-bf16", "avx512bf16"} <= {*features}
    bytes = wide and {"amx-tile", "amx-int8", "avx512vnni"} <= {*features}
    return x86_64(vector_bits, wide and "avx512bf16" in features, wide and "avx512vnni" in features, tiles, bytes)


LEVELS = {
    "x86-64-v2": _level("x86-64-v2", _V1 + _V2, 128),
    "x86-64-v3": _level("x86-64-v3", _V1 + _V2 + _V3, 256),
    "x86-64-v4": _level("x86-64-v4", _V1 + _V2 + _V3 + _V4, 512),
    # LLVM's name of a processor implies more than a hypervisor may let through. Ice Lake runs code for Cascade Lake,
    # and Zen 4 that for Cooper Lake.
    "cascadelake": replace(_level("x86-64-v4", _V1 + _V2 + _V3 + _V4 + _CASCADE_LAKE, 512), name="cascadelake"),
    "cooperlake": replace(_level("x86-64-v4", _V1 + _V2 + _V3 + _V4 + _COOPER_LAKE, 512), name="cooperlake"),
    "sapphirerapids": replace(_level("x86-64-v4", _V1 + _V2 + _V3 + _V4 + _COOPER_LAKE + _SAPPHIRE_RAPIDS, 512),
                              name="sapphirerapids"),
}
ARM = {"aarch64": Target("aarch64", "aarch64-unknown-linux-gnu", "generic", ("+fp-armv8", "+neon"),
                         Cpu(vector_bits=128, vector_registers=16, byte_pairs=False))}
"""Targets for cross compilation only. NEON has 32 registers, of which schedules use 16, since more have not been
measured to be faster."""
TARGETS = {**LEVELS, **ARM}
"""Targets of this vendor by name."""
DEFAULT = "host"
"""Default target without a device."""


@cache
def host() -> Target:
    """The target for the processor that this process runs on.

    Everything follows from the features; the processor's name may be masked by a hypervisor. On a machine with AMX
    this asks Linux to let the process use the tiles, so call it before starting threads that run AMX code.
    """
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        raise BackendError(f"no native code for {platform.machine()} on {sys.platform}: only x86-64 Linux so far",
                           code="MLC0502", hint="--target x86-64-v3 compiles for an x86-64 Linux machine")
    detected = _detected()
    if detected.get("amx-tile") and not _request_amx():
        detected = {name: on and not name.startswith("amx-") for name, on in detected.items()}
    available = frozenset(name for name, on in detected.items() if on)
    features = tuple(("+" if on else "-") + name for name, on in sorted(detected.items()))
    return Target("host", TRIPLE, cpu_for(available), features,
                  _machine(vector_bits_for(available), available))


def level_of(target: Target) -> Target | None:
    """The level whose code is that of a target down to the choice of instructions, and runs there; None if none is."""
    fitting = (level for level in LEVELS.values() if level.machine == target.machine and target.runs(level))
    return next(fitting, None)


def _detected() -> dict[str, bool]:
    """Every feature known to LLVM, and whether this machine has it; cached, to avoid loading LLVM."""
    kept, processor = store.store(), _processor()
    if kept is None or not processor:
        return _ask_llvm()
    key = store.key_of("host", [processor, platform.release()])
    if (found := kept.get("host", key)) is not None and isinstance(features := found[0].get("features"), dict):
        return {str(name): bool(on) for name, on in features.items()}
    features = _ask_llvm()
    kept.put("host", key, {"features": features}, {})
    return features


def _ask_llvm() -> dict[str, bool]:
    llvm = binding()

    # LLVM has already cleared what the operating system does not save (AVX, AVX-512, AMX state in XCR0).
    return dict(llvm.get_host_cpu_features())


def _processor() -> str:
    """Description of the first processor by Linux, without fields that differ among processors or change in time."""
    wanted = ("vendor_id", "cpu family", "model", "stepping", "flags")
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            first = file.read(16384).partition("\n\n")[0]
    except OSError:
        return ""
    lines = [line for line in first.splitlines() if line.startswith(wanted)]
    return "\n".join(lines) if any(line.startswith("flags") for line in lines) else ""


def cpu_for(features: frozenset[str]) -> str:
    """The LLVM processor whose scheduling model suits a machine with these features."""
    if {"amx-bf16", "avx512fp16"} <= features:
        return "sapphirerapids"
    if {"sse4a", *_V4} <= features:  # only AMD has sse4a
        return "znver4"
    if features.issuperset(_V4):
        return "x86-64-v4"
    if features.issuperset(_V3):
        return "x86-64-v3"
    return "x86-64"


def vector_bits_for(features: frozenset[str]) -> int:
    """The widest vectors worth forming on a machine with these features."""
    if features.issuperset(_V4):
        return 512
    return 256 if {"avx2", "fma"} <= features else 128


def _request_amx() -> bool:
    """Ask Linux for permission to use the AMX tile registers; True if granted (the answer is per process)."""
    libc = ctypes.CDLL(None)
    return bool(libc.syscall(_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA) == 0)
