"""Run-time dispatch to the code for the current processor, in LLVM IR; the level is determined once.

    mlc_choose_level() -> i32    the number of the best level, from 1; -1 if there is none
    @mlc_level                   that number; 0 if not determined yet

A level requires all its features, and an operating system that saves the registers they use, as XCR0 shows; AMX tiles
also need a permission from Linux.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlc.backends.cpu.targets import TRIPLE
from mlc.backends.target import Target
from mlc.ir.diag import BackendError

_EAX, _EBX, _ECX, _EDX = range(4)
FEATURES: Mapping[str, tuple[int, int, int, int]] = {
    **{name: (1, 0, _EDX, bit) for name, bit in {
        "cx8": 8, "cmov": 15, "mmx": 23, "fxsr": 24, "sse": 25, "sse2": 26}.items()},
    **{name: (1, 0, _ECX, bit) for name, bit in {
        "sse3": 0, "pclmul": 1, "ssse3": 9, "fma": 12, "cx16": 13, "sse4.1": 19, "sse4.2": 20, "crc32": 20, "movbe": 22,
        "popcnt": 23, "aes": 25, "xsave": 26, "avx": 28, "f16c": 29}.items()},
    **{name: (7, 0, _EBX, bit) for name, bit in {
        "bmi": 3, "avx2": 5, "bmi2": 8, "avx512f": 16, "avx512dq": 17, "avx512ifma": 21, "avx512cd": 28,
        "avx512bw": 30, "avx512vl": 31}.items()},
    **{name: (7, 0, _ECX, bit) for name, bit in {
        "avx512vbmi": 1, "avx512vbmi2": 6, "gfni": 8, "vaes": 9, "vpclmulqdq": 10, "avx512vnni": 11,
        "avx512bitalg": 12, "avx512vpopcntdq": 14}.items()},
    **{name: (7, 0, _EDX, bit) for name, bit in {
        "amx-bf16": 22, "avx512fp16": 23, "amx-tile": 24, "amx-int8": 25}.items()},
    **{name: (7, 1, _EAX, bit) for name, bit in {"avxvnni": 4, "avx512bf16": 5}.items()},
    **{name: (0x80000001, 0, _ECX, bit) for name, bit in {"sahf": 0, "lzcnt": 5}.items()},
}
"""The cpuid bit of a feature by its LLVM name: leaf, subleaf, register, bit."""

_OSXSAVE = (1, 0, _ECX, 27)
_AVX_STATE, _AVX512_STATE, _AMX_STATE = 0x6, 0xE6, 0x60000
"""Bits of XCR0: register state that the system saves."""


def saved_state(target: Target) -> int:
    """The XCR0 bits that a target requires."""
    return (_AVX_STATE * target.has("avx") | _AVX512_STATE * target.has("avx512f")
            | _AMX_STATE * target.has("amx-tile"))


def chooser(targets: Sequence[Target], start: Sequence[str] = ()) -> str:
    """LLVM IR that selects the level of an x86-64 processor; targets are in ascending order of requirements.

    start  functions to call before a level is selected
    """
    tests = "\n".join(_test(i, target) for i, target in enumerate(targets))
    steps = ["  %level0 = select i1 %suited0, i32 1, i32 -1"]
    for i in range(1, len(targets)):
        steps.append(f"  %level{i} = select i1 %suited{i}, i32 {i + 1}, i32 %level{i - 1}")
    calls = "\n".join(f"  %suited{i} = call i1 @suited{i}()" for i in range(len(targets)))
    started = "\n".join(f"  call void @{name}()" for name in start)
    declared = "\n".join(f"declare void @{name}()" for name in start)
    return _TEXT.format(triple=TRIPLE, tests=tests, calls=calls, steps="\n".join(steps), last=len(targets) - 1,
                        started=started, declared=declared)


def only_one(target: Target) -> str:
    """LLVM IR with a single level, which every processor of the architecture supports."""
    return (f'target triple = "{target.triple}"\n@mlc_level = global i32 0\n'
            "define i32 @mlc_choose_level() nounwind {\n  store i32 1, ptr @mlc_level\n  ret i32 1\n}\n")


def masks(target: Target) -> dict[tuple[int, int, int], int]:
    """The required cpuid bits by (leaf, subleaf, register)."""
    out: dict[tuple[int, int, int], int] = {}
    names = [feature[1:] for feature in target.features if feature.startswith("+")]
    if unknown := [name for name in names if name not in FEATURES]:
        raise BackendError(f"there is no run-time check for the processor feature {unknown[0]}", code="MLC0501",
                           hint="name levels such as x86-64-v3 with --cpu")
    wanted = [FEATURES[name] for name in names] + ([_OSXSAVE] if saved_state(target) else [])
    for leaf, subleaf, register, bit in wanted:
        out[leaf, subleaf, register] = out.get((leaf, subleaf, register), 0) | 1 << bit
    return out


def _test(number: int, target: Target) -> str:
    lines, conditions = [f"define internal i1 @suited{number}() nounwind {{"], 0
    for (leaf, subleaf, register), mask in sorted(masks(target).items()):
        n = conditions
        lines.append(f"  %bits{n} = call i32 @cpuid(i32 {_signed(leaf)}, i32 {subleaf}, i32 {register})")
        lines.append(f"  %held{n} = and i32 %bits{n}, {_signed(mask)}")
        lines.append(f"  %has{n} = icmp eq i32 %held{n}, {_signed(mask)}")
        lines.append(f"  %all{n} = " + (f"and i1 %has{n}, %all{n - 1}" if n else "and i1 %has0, true"))
        conditions += 1
    lines.append(f"  br i1 %all{conditions - 1}, label %system, label %no\nsystem:")
    if state := saved_state(target):
        lines.append("  %xcr0 = call { i32, i32 } asm \"xgetbv\", \"={eax},={edx},{ecx}\"(i32 0)\n"
                     "  %low = extractvalue { i32, i32 } %xcr0, 0\n"
                     f"  %saved = and i32 %low, {state}\n  %saves = icmp eq i32 %saved, {state}\n"
                     "  br i1 %saves, label %permission, label %no\npermission:")
    if target.has("amx-tile"):                               # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
        lines.append("  %refused = call i64 (i64, ...) @syscall(i64 158, i64 4131, i64 18)\n"
                     "  %granted = icmp eq i64 %refused, 0\n  ret i1 %granted")
    else:
        lines.append("  ret i1 true")
    return "\n".join([*lines, "no:", "  ret i1 false", "}"])


def _signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value


_TEXT = """target triple = "{triple}"
@mlc_level = global i32 0
declare i64 @syscall(i64, ...)
{declared}

define internal {{ i32, i32, i32, i32 }} @ask(i32 %leaf, i32 %subleaf) nounwind {{
  %all = call {{ i32, i32, i32, i32 }} asm "cpuid",
      "={{eax}},={{ebx}},={{ecx}},={{edx}},{{eax}},{{ecx}}"(i32 %leaf, i32 %subleaf)
  ret {{ i32, i32, i32, i32 }} %all
}}

define internal i32 @cpuid(i32 %leaf, i32 %subleaf, i32 %register) nounwind {{
entry:                                                    ; leaves that are not there would answer as others do
  %kind = and i32 %leaf, -2147483648
  %first = call {{ i32, i32, i32, i32 }} @ask(i32 %kind, i32 0)
  %last = extractvalue {{ i32, i32, i32, i32 }} %first, 0
  %there = icmp uge i32 %last, %leaf
  br i1 %there, label %inside, label %absent
inside:
  %zero = call {{ i32, i32, i32, i32 }} @ask(i32 %leaf, i32 0)
  %subleaves = extractvalue {{ i32, i32, i32, i32 }} %zero, 0
  %plain = icmp eq i32 %subleaf, 0
  %enough = icmp uge i32 %subleaves, %subleaf
  %known = or i1 %plain, %enough
  br i1 %known, label %found, label %absent
found:
  %all = call {{ i32, i32, i32, i32 }} @ask(i32 %leaf, i32 %subleaf)
  %a = extractvalue {{ i32, i32, i32, i32 }} %all, 0
  %b = extractvalue {{ i32, i32, i32, i32 }} %all, 1
  %c = extractvalue {{ i32, i32, i32, i32 }} %all, 2
  %d = extractvalue {{ i32, i32, i32, i32 }} %all, 3
  %is.b = icmp eq i32 %register, 1
  %is.c = icmp eq i32 %register, 2
  %is.d = icmp eq i32 %register, 3
  %ab = select i1 %is.b, i32 %b, i32 %a
  %abc = select i1 %is.c, i32 %c, i32 %ab
  %abcd = select i1 %is.d, i32 %d, i32 %abc
  ret i32 %abcd
absent:
  ret i32 0
}}

{tests}

define i32 @mlc_choose_level() nounwind {{
entry:
  %known = load atomic i32, ptr @mlc_level acquire, align 4
  %done = icmp ne i32 %known, 0
  br i1 %done, label %old, label %new
old:
  ret i32 %known
new:
{calls}
{steps}
{started}
  store atomic i32 %level{last}, ptr @mlc_level release, align 4
  ret i32 %level{last}
}}
"""
