"""Compiled code for debuggers: its files have the names of functions and the lines of the program."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mlc.backends import debug_sections
from mlc.backends.cpu.targets import host
from mlc.backends.elf import FILE_HEADER, SECTION_HEADER, read_debug
from mlc.backends.line_table import quoted
from mlc.backends.link import link
from mlc.backends.object_code import compile_object
from mlc.ir.diag import BackendError

GDB = pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
PROGRAM = """\
import numpy as np
import mlc

def layer(x, w):
    h = mlc.exp(x @ w)
    return h.sum(1) * 2

f = mlc.compile(layer)
f(np.ones((32, 32), np.float32), np.ones((32, 32), np.float32))
"""


def gdb(*words: str) -> str:
    return subprocess.run(["gdb", "-nx", "-batch", *words], capture_output=True, text=True, timeout=120).stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("debugged") / "layer.py"
    path.write_text(PROGRAM)
    return path


@GDB
def test_gdb_knows_functions_and_lines(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLC_PERF", str(program.parent / "code"))
    subprocess.run([sys.executable, str(program)], check=True, cwd=Path(__file__).parent.parent)
    said = "".join(gdb("-ex", "info functions kernel_", "-ex", "info line layer.py:5", str(file))
                   for file in (program.parent / "code").glob("*.so"))
    assert f"File {program}:" in said and "kernel_dot_general_map();" in said
    assert f'Line 5 of "{program}" starts at address' in said


@GDB
@pytest.mark.slow
def test_gdb_stops_at_a_line_of_the_program(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLC_PERF", str(program.parent / "live"))
    monkeypatch.setenv("MLC_CACHE", "0")
    said = gdb("-ex", "set breakpoint pending on", "-ex", "break layer.py:6", "-ex", "run", "-ex", "continue", "-ex",
               "bt 2", "--args", sys.executable, str(program))
    assert f"kernel_reduce_sum_mul () at {program}:6\n6\t    return h.sum(1) * 2" in said, said


def test_references_are_to_where_the_code_is() -> None:
    text = f"""target triple = "{host().triple}"
define i32 @f(i32 %x) !dbg !5 {{
  %y = mul i32 %x, 3, !dbg !6
  ret i32 %y, !dbg !6
}}
!llvm.dbg.cu = !{{!0}}
!llvm.module.flags = !{{!2, !3}}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "a.py", directory: "/")
!2 = !{{i32 2, !"Debug Info Version", i32 3}}
!3 = !{{i32 7, !"Dwarf Version", i32 5}}
!4 = !DISubroutineType(types: !{{}})
!5 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 7, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!6 = !DILocation(line: 8, scope: !5)
"""
    obj = compile_object(text, host())
    library = link(obj, ["f"])
    whole = debug_sections.attached(library, obj)
    assert whole[FILE_HEADER.size:len(library)] == library[FILE_HEADER.size:] and len(whole) > len(library)
    fields = FILE_HEADER.unpack_from(whole)
    table = [SECTION_HEADER.unpack_from(whole, fields[6] + SECTION_HEADER.size * i) for i in range(fields[12])]
    names = whole[table[fields[13]][4]:][:table[fields[13]][5]]
    found = {names[s[0]:names.index(0, s[0])].decode(): s for s in table}
    assert {".text", ".debug_line", ".debug_info", ".debug_addr"} <= found.keys()
    at = found[".debug_addr"][4] + 8
    assert int.from_bytes(whole[at:at + 8], "little") == found[".text"][3]           # @f is the first of its section
    for size in range(0, len(obj), 97):                    # a damaged object is an error
        with pytest.raises(BackendError):
            read_debug(obj[:size])


def test_names_are_quoted() -> None:
    assert quoted('a"b\\ é') == 'a\\22b\\5C \\C3\\A9' and quoted("/k_1.py") == "/k_1.py"
