"""Machine-specific parts of linking: encodings of references, dynamic relocations, and PLT stubs."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """The encoding of a reference at place P to a symbol or its GOT slot at S, with addend A.

    form     none; absolute: the loader writes S + A; relative: S + A - P; and of AArch64's instructions
             page: the distance of the pages of S + A and P; low: the place of S + A in its page; branch: S + A - P
    width    bytes to write
    through  "got": to the symbol's GOT slot; "call": to the PLT stub if the symbol is imported
    scale    of `low`: the field counts units of 2**scale bytes
    """

    form: str
    width: int
    through: str = ""
    scale: int = 0


@dataclass(frozen=True)
class Machine:
    """number          e_machine
    page               the largest page size of its systems
    relocations        supported relocations by number
    absolute, glob_dat, relative  numbers of the dynamic relocations
    not_independent    relocations of position-dependent code
    in_debug           relocations in sections for debuggers, and the bytes of each
    stub_size          bytes of a PLT stub
    stub               (address of the stub, address of its GOT slot) -> its code
    """

    name: str
    number: int
    page: int
    relocations: Mapping[int, Kind]
    absolute: int
    glob_dat: int
    relative: int
    not_independent: Mapping[int, str]
    in_debug: Mapping[int, int]
    stub_size: int
    stub: Callable[[int, int], bytes]


def patched(kind: Kind, old: int, target: int, place: int) -> int | None:
    """The patched instruction or number for a reference to `target` (addend included); None if it is out of range."""
    if kind.form == "relative":
        return _signed(target - place, 8 * kind.width)
    if kind.form == "branch":
        distance = _signed(target - place >> 2, 26)
        return None if distance is None or (target - place) % 4 else old | distance
    if kind.form == "page":
        pages = _signed((target >> 12) - (place >> 12), 21)
        return None if pages is None else old | (pages & 3) << 29 | (pages >> 2) << 5
    low = target & 0xFFF
    return None if low % (1 << kind.scale) else old | (low >> kind.scale) << 10


def _signed(value: int, bits: int) -> int | None:
    """The two's complement of a number in `bits` bits; None if it does not fit."""
    return value % (1 << bits) if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def _x86_64_stub(place: int, slot: int) -> bytes:
    return b"\xff\x25" + struct.pack("<i", slot - (place + 6)) + b"\x66\x90"      # jmp *slot(%rip); two-byte nop


def _aarch64_stub(place: int, slot: int) -> bytes:
    adrp = patched(Kind("page", 4), 0x90000010, slot, place)                     # adrp x16, slot
    ldr = patched(Kind("low", 4, scale=3), 0xF9400211, slot, place + 4)          # ldr x17, [x16, :lo12:slot]
    return struct.pack("<4I", adrp or 0, ldr or 0, 0xD61F0220, 0xD503201F)       # br x17; nop


X86_64 = Machine("x86-64", 62, 0x1000, {
    0: Kind("none", 0), 1: Kind("absolute", 8), 2: Kind("relative", 4), 4: Kind("relative", 4, "call"),
    9: Kind("relative", 4, "got"), 24: Kind("relative", 8), 41: Kind("relative", 4, "got"),
    42: Kind("relative", 4, "got")}, 1, 6, 8, {10: "R_X86_64_32", 11: "R_X86_64_32S"}, {1: 8, 10: 4}, 8, _x86_64_stub)

AARCH64 = Machine("AArch64", 183, 0x10000, {
    0: Kind("none", 0), 257: Kind("absolute", 8), 260: Kind("relative", 8), 261: Kind("relative", 4),
    275: Kind("page", 4), 277: Kind("low", 4), 278: Kind("low", 4), 284: Kind("low", 4, scale=1),
    285: Kind("low", 4, scale=2), 286: Kind("low", 4, scale=3), 299: Kind("low", 4, scale=4),
    282: Kind("branch", 4, "call"), 283: Kind("branch", 4, "call"), 311: Kind("page", 4, "got"),
    312: Kind("low", 4, "got", 3), 314: Kind("relative", 4, "call")},
    257, 1025, 1027, {258: "R_AARCH64_ABS32"}, {257: 8, 258: 4}, 16, _aarch64_stub)

MACHINES = {m.number: m for m in (X86_64, AARCH64)}
