"""Seeded faults: one small replacement in one source file, and the pass or rule that the checks should blame for it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One replacement.

    file   from the top of the tree
    old    occurs there exactly once
    blame  the pass that should be named; "" where no pass is wrong: the recorder, the code generator, the call
    rule   what should be named in that pass: a rewrite rule, or the operation whose derivative is wrong
    ops    operations of the tensor dialect, without the dialect's name, whose samples it concerns
    """

    area: str
    file: str
    old: str
    new: str
    blame: str = ""
    rule: str = ""
    ops: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A line to tell it from others by."""
        old, new = ([line.strip() for line in text.splitlines() if line not in other.splitlines()]
                    for text, other in ((self.old, self.new), (self.new, self.old)))
        number = zlib.crc32(f"{self.file} {self.old} {self.new}".encode()) & 0xFFFF
        return f"{self.area} {number:04x}: {self.file}: {' '.join(old)[:60]} => {' '.join(new)[:60]}"

    def applied(self, text: str) -> str:
        """The source with the fault; ValueError where the list is stale."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.file} holds {self.old!r} {count} times, not once")
        return text.replace(self.old, self.new)


Row = Callable[..., Fault]


def rows(area: str, blame: str = "") -> Row:
    """Faults of one area, which blame one pass unless they say another."""
    def row(file: str, old: str, new: str, rule: str = "", ops: str = "", blame: str = blame) -> Fault:
        return Fault(area, file, old, new, blame, rule, tuple(ops.split()))
    return row


# -- areas of the lists of unseen faults, which say where they blame another pass --------------------------------------
recorder = rows("recorder")
rule = rows("rule", "canonicalize")
derivative = rows("derivative", "grad")
transform = rows("transform", "grad")
numerics = rows("numerics", "fix_numerics")
layout = rows("images", "assign_layouts")
merging = rows("merging", "outline")
fusion = rows("fusion", "tensor_to_loop")
aliasing = rows("aliasing", "bufferize")
loops = rows("loops", "tensor_to_loop")
lowering = rows("lowering", "scf_to_llvm")
emission = rows("emission")
call = rows("call")
cache = rows("cache key")
gpu = rows("gpu", "loop_to_gpu")
