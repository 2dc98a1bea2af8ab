"""A line of a file at the next level down: the operations that the compiler made of it, within their function."""

from __future__ import annotations

from dataclasses import dataclass

from mlc.backends.cpu.targets import host
from mlc.ir.core import REGISTRY, Block, Op, Region
from mlc.ir.diag import Loc, UserError
from mlc.ir.passes import Pipeline
from mlc.ir.printer import Printer, large_constants_elided
from mlc.passes import pipeline
from mlc.tools.language_server.analysis import Analysis
from mlc.tools.language_server.ir_reader import read
from mlc.tools.language_server.program_text import ProgramText

ELIDED = 32


@dataclass(frozen=True)
class Shown:
    """A module at a level, and the numbers of its lines that a line of the source became, from 0."""

    level: str
    text: str
    lines: tuple[int, ...]


class _Marking(Printer):
    """Notes the lines of operations that are of a line of the source."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__(generic=False, locations=False)
        self.file, self.line_of_source, self.marked = file, line, list[int]()

    def op(self, op: Op) -> None:
        if any((loc.file, loc.line) == (self.file, self.line_of_source) for loc in (op.loc, *op.loc.fused)):
            self.marked.append(len(self.lines))
        super().op(op)


def show(analysis: Analysis, path: str, line: int, level: str = "") -> Shown:
    """The operations that became of a line, counted from 1; `level` is the next one by default.

    Raises UserError where there is nothing below (MLC0335), or the file has errors (MLC0690).
    """
    if analysis.findings:
        raise UserError("the file has errors", code="MLC0690", loc=Loc(path, line), hint="correct them first")
    if isinstance(analysis, ProgramText):
        module, now = _recorded(analysis, line), "source"
    else:
        module = _module(analysis.text, path)
        now = level_of(module)
    levels = ("source", *pipeline.LEVELS)
    wanted = level or levels[min(levels.index(now) + 1, len(levels) - 1)]
    if wanted not in pipeline.LEVELS or (now == "llvm" and not level):
        raise UserError(f"there is no level below {now}" if not level else f"there is no level {level!r}",
                        code="MLC0335", loc=Loc(path, line), hint="one of " + ", ".join(pipeline.LEVELS))
    if wanted != "tensor" or now != "source":
        Pipeline(pipeline.remaining(module, wanted, host().machine)).run(module)
    printer = _Marking(path, line)
    with large_constants_elided(ELIDED):
        printer.op(module)
    return Shown(wanted, "\n".join(printer.lines) + "\n", tuple(printer.marked))


def level_of(module: Op) -> str:
    """The level that a module is at."""
    rows, done = pipeline.order(host().machine), pipeline.stage(module, host().machine)
    return rows[done - 1][0] if done else "tensor"


def _module(text: str, path: str) -> Op:
    ops = read(text, path).ops
    if len(ops) == 1 and ops[0].name == "builtin.module":
        return ops[0]
    block = Block()
    for op in ops:
        block.insert(op)
    return REGISTRY["builtin.module"].make([], {"sym_name": None}, [], [Region(block)])


def _recorded(analysis: ProgramText, line: int) -> Op:
    """The function of a program that a line is in, recorded."""
    from mlc.frontend.language.program import Program, functions_of
    from mlc.tools import sources
    program = Program(analysis.reading.file)
    at = analysis.lines.starts[min(line, len(analysis.lines.starts)) - 1]
    functions = functions_of(program)
    around = [s for s in analysis.symbols() if s.name in functions and s.span.start <= at <= s.span.end]
    if not around:
        raise UserError("no function of the file is here", code="MLC0690", loc=Loc(analysis.path, line),
                        hint="place the cursor in one; those of models are seen where they are called")
    function = getattr(program, around[0].name)
    specs = sources.annotated(function, f"{analysis.path}:{around[0].name}")
    lowered = function.compiled.lower(*specs)
    return lowered.module  # type: ignore[no-any-return]
