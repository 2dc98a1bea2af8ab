"""Line tables: which operation each instruction of the code is from, by LLVM's debug metadata.

The `lines` of the table are numbers of operations, of a `file` without contents; LLVM keeps them through its passes and
its code generator, as it does for the lines of a C program, and writes them to the assembly as `.loc` directives. They
do not change the code (tests/test_line_table.py). An instruction that LLVM makes for several operations is of line 0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlc.ir.core import Op

_HEAD = """!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: KIND)
!1 = !DIFile(filename: "operations", directory: "")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{i32 7, !"Dwarf Version", i32 5}
!4 = !DISubroutineType(types: !{})
"""


class LineTable:
    """The debug metadata of one module of LLVM IR.

    numbers  a positive number for each operation that becomes instructions, and for each function
    ptx      whether the code is PTX, which is marked as code to debug unless there are directives only; for processors
             LLVM has no such kind
    """

    kind = ""
    """The debug information that LLVM writes; "" for lines alone, as the machine needs them."""

    def __init__(self, numbers: Mapping[Op, int], ptx: bool) -> None:
        self.numbers = numbers
        kind = self.kind or ("DebugDirectivesOnly" if ptx else "LineTablesOnly")
        self._lines = _HEAD.replace("KIND", kind).splitlines()
        self._count = 5
        self._scope = 0
        self._known: dict[int, int] = {}

    def function(self, op: Op, name: str) -> str:
        """The text that follows the attributes of a function; the operations that come next are its own."""
        self._known = {}
        quoted = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
        self._scope = self._add(f'distinct !DISubprogram(name: "{quoted}", file: !1, line: {self.numbers.get(op, 0)}, '
                                "type: !4, unit: !0, spFlags: DISPFlagDefinition)")
        return f" !dbg !{self._scope}"

    def at(self, op: Op) -> str:
        """The text that follows an instruction."""
        line = self.numbers.get(op, 0)
        if line not in self._known:
            self._known[line] = self._add(f"!DILocation(line: {line}, scope: !{self._scope})")
        return f", !dbg !{self._known[line]}"

    def text(self) -> str:
        """The metadata, for the end of the module."""
        return "\n".join(self._lines) + "\n"

    def _add(self, node: str) -> int:
        self._lines.append(f"!{self._count} = {node}")
        self._count += 1
        return self._count - 1


class SourceTable(LineTable):
    """A line table for debuggers: the lines of the program that operations come from, and the names of functions."""

    kind = "FullDebug"

    def __init__(self) -> None:
        super().__init__({}, ptx=False)
        self._files: dict[str, int] = {}
        self._outer = 0
        self._scopes: dict[str, int] = {}
        self._places: dict[str, int] = {}

    def function(self, op: Op, name: str) -> str:
        """See `LineTable.function`."""
        self._scopes = {op.loc.file: self._add(
            f'distinct !DISubprogram(name: "{quoted(name)}", scope: !{self._file(op.loc.file)}, '
            f"file: !{self._file(op.loc.file)}, line: {op.loc.line}, type: !4, unit: !0, spFlags: DISPFlagDefinition)")}
        self._outer = self._scopes[op.loc.file]
        return f" !dbg !{self._outer}"

    def at(self, op: Op) -> str:
        """See `LineTable.at`. An operation of another file than its function has a scope of that file in it."""
        loc = op.loc
        if loc.file not in self._scopes:
            self._scopes[loc.file] = self._add(
                f"!DILexicalBlockFile(scope: !{self._outer}, file: !{self._file(loc.file)}, discriminator: 0)")
        place = f"!DILocation(line: {loc.line}, column: {min(loc.col, 65535)}, scope: !{self._scopes[loc.file]})"
        if place not in self._places:
            self._places[place] = self._add(place)
        return f", !dbg !{self._places[place]}"

    def _file(self, path: str) -> int:
        if path not in self._files:
            folder, name = os.path.split(path or "unknown")
            self._files[path] = self._add(f'!DIFile(filename: "{quoted(name)}", directory: "{quoted(folder)}")')
        return self._files[path]


def quoted(text: str) -> str:
    """Text as it stands in a string of LLVM IR."""
    return "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:02X}" for b in text.encode())


@dataclass(frozen=True)
class Instruction:
    """A line of assembly. `is_code` says whether it is an instruction, and not a label or a directive; `number` is that
    of its operation, 0 if there is none.
    """

    text: str
    number: int
    is_code: bool


_LOC = re.compile(r"\s+\.loc\s+\d+\s+(\d+)")
_OF_THE_TABLE = re.compile(r"\s+\.(?:file|loc|cfi_\w+)\b|\.L(?:tmp|func_begin|func_end|cfi|debug)\w*:|"
                           r"\$L__(?:tmp|func_begin|func_end)\d+:|\.Lsec_end\d*:")
_SECTION = re.compile(r"\s+\.section\s+([^\s,]+)")


def instructions(assembly: str) -> Iterator[Instruction]:
    """The lines of assembly with the operations that they are from; what only describes the table is left out."""
    number, debugging = 0, False
    for line in assembly.splitlines():
        if found := _LOC.match(line):
            number = int(found[1])
        if found := _SECTION.match(line):
            debugging = found[1].startswith(".debug")
        elif debugging and line.strip() in (".text", ".data"):
            debugging = False
        if debugging or _OF_THE_TABLE.match(line) or not line.strip():
            continue
        is_code = line[0] in " \t" and not line.lstrip().startswith((".", "#", "//"))
        yield Instruction(line.rstrip().expandtabs(8), number if is_code else 0, is_code)
