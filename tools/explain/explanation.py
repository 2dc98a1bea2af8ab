"""Explanation: all that is known of one compilation, as plain data, for the text, the JSON and the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mlc.roofline import Limits

LEVELS = ("trace", "tensor", "loop", "low", "llvm", "asm")
"""The levels that are shown, in order; `asm` is assembly of a processor, or PTX."""


class Position(NamedTuple):
    """A position in the source. `file` is a number in `Explanation.files`, or -1 for a file that is not shown."""

    file: int
    line: int
    col: int


@dataclass(slots=True)
class Operation:
    """An operation that existed at some time of the compilation. Its number is its index in `Explanation.ops`.

    name      such as tensor.add
    parents   numbers of the operations that it was made from
    places    positions in the source: the first is its own, the others are of equal operations that it stands for
    made      number of the pass that made it; 0 is the recording
    by        the rewrite rule that made it, or ""
    gone      number of the pass that removed it, or -1
    removed   the rewrite rule that removed it, or ""
    instead   numbers of the operations that took its place, where a rule said so
    """

    name: str
    parents: list[int]
    places: list[Position]
    made: int
    by: str = ""
    gone: int = -1
    removed: str = ""
    instead: list[int] = field(default_factory=list)


class Line(NamedTuple):
    """A line of a level. `op` is the number of its operation, or -1 (labels and directives of assembly)."""

    text: str
    op: int


@dataclass(frozen=True)
class Level:
    """The module at a level. An operation with regions has several lines."""

    name: str
    lines: list[Line]


@dataclass(frozen=True)
class Hunk:
    """Lines that a pass changed, at one place: with lines around them that it kept."""

    before: list[Line]
    removed: list[Line]
    added: list[Line]
    after: list[Line]


@dataclass(frozen=True)
class Rule:
    """A rewrite rule in one pass: its equation, and how often it fired."""

    name: str
    equation: str
    fired: int


@dataclass(frozen=True)
class Pass:
    """A pass. `ops` counts the operations after it; the first, number 0, is the recording."""

    number: int
    name: str
    level: str
    why: str
    seconds: float
    ops: int
    added: int
    removed: int
    rules: list[Rule]
    hunks: list[Hunk]


@dataclass(frozen=True)
class Operand:
    """A buffer that a kernel reads or writes: its type, and the map from a point of the kernel to an element."""

    name: str
    type: str
    map: str
    source: int                                            # the kernel or call that made it; -1 for others


@dataclass(frozen=True)
class Kernel:
    """A kernel, as `fuse` formed it, or a call of a function that has kernels.

    op         number of the operation
    function   the function that it is in
    callee     for a call, the function that is called
    domain     the extents of its iteration domain
    iterators  what each dimension is: parallel, reduction, scan, scatter
    ops        numbers of the operations in it
    unfused    why producers are in other kernels
    fused      by which rules its operations came together, and where their values are
    schedule   tile sizes, vectors and threads, as chosen for it
    threads    whether several threads of a processor may share it, with the sizes that are known
    flops      floating-point operations, an expression in the symbolic sizes
    bytes      bytes that it has to read and write at least, likewise
    code       the function of the kernel after `outline`, which equal kernels share
    runs       how often it ran in a call that was measured; 0 if none was
    measured   its seconds in that call, in all; None if none was
    """

    op: int
    function: str
    label: str
    callee: str
    domain: list[str]
    iterators: list[str]
    inputs: list[Operand]
    outputs: list[Operand]
    ops: list[int]
    unfused: list[str]
    fused: list[str]
    schedule: str
    flops: str
    bytes: str
    code: str
    runs: int = 0
    measured: float | None = None
    threads: bool = False


@dataclass(frozen=True)
class Buffer:
    """A piece of the arena of a function, in use from step `first` to step `last`.

    offset, size  in bytes, expressions in the symbolic sizes
    op            number of the view
    """

    name: str
    type: str
    offset: str
    size: str
    first: int
    last: int
    op: int


@dataclass(frozen=True)
class MemoryPlan:
    """The arena of a function over its steps, which are its kernels and calls; `total` is its size in bytes."""

    function: str
    total: str
    steps: list[str]
    buffers: list[Buffer]


@dataclass(frozen=True)
class Specialisation:
    """A specialisation of the function: its types, and what it depends on or was recorded as, line by line."""

    types: list[str]
    notes: list[str]


@dataclass(frozen=True)
class SourceFile:
    """A file of the program."""

    path: str
    lines: list[str]


@dataclass
class Explanation:
    """One compilation.

    title    what was compiled
    target   the machine that it was compiled for
    version  of mlc
    sizes    numbers for the symbolic sizes, for flops and bytes
    seconds  time of recording, of the passes, and of code generation
    """

    title: str
    target: str
    version: str
    sizes: dict[str, int]
    seconds: dict[str, float]
    files: list[SourceFile] = field(default_factory=list)
    ops: list[Operation] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    memory: list[MemoryPlan] = field(default_factory=list)
    specialisations: list[Specialisation] = field(default_factory=list)
    limits: Limits | None = None
