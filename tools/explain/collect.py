"""Collection of an explanation: compiles a module, and takes note of it after each pass."""

from __future__ import annotations

import linecache
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlc.backends.target import Target
from mlc.ir import rewrite
from mlc.ir.core import Op, Value
from mlc.ir.passes import Instruments, Pipeline, Step
from mlc.passes import pipeline
from mlc.passes.canonicalize import CONSTANT_TO_THE_RIGHT
from mlc.tools.explain import assembly, kernels, measuring, memory
from mlc.tools.explain.changes_of_pass import hunks
from mlc.tools.explain.explanation import (
    Explanation,
    Kernel,
    Level,
    MemoryPlan,
    Operation,
    Pass,
    Position,
    Rule,
    SourceFile,
    Specialisation,
)
from mlc.tools.explain.lineage import Lineage
from mlc.tools.explain.printing import ContinuousPrinter

LONGEST_FILE = 20_000
"""Lines of a source file up to which it is part of an explanation."""
FOLDING = "fold"
"""The name of the evaluation of operations on constants among the rules, of which it is none."""


@dataclass
class Subject:
    """The subject of an explanation: a module as it was recorded or read, which is lowered in place.

    title            FILE:FUNCTION
    module           at any level down to `low`
    target           the machine
    precision        of matrix products on a GPU, as of mlc.compile
    seconds          the time of recording it
    sizes            numbers for symbolic sizes
    specialisations  of the function
    own_files        source files that are shown even if they are part of mlc
    measure          whether the code is run, so that its kernels have times
    status           the exit status of the program that was run
    """

    title: str
    module: Op
    target: Target
    precision: str | None = None
    seconds: float = 0.0
    sizes: dict[str, int] = field(default_factory=dict)
    specialisations: list[Specialisation] = field(default_factory=list)
    own_files: Sequence[str] = ()
    measure: bool = False
    status: int = 0


def explain(subject: Subject) -> Explanation:
    """Compile the module of a subject, and say how."""
    return _Collector(subject).run()


class _Collector:
    """The state of a collection: what is known of the passes so far."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.module = subject.module
        self.lineage = Lineage()
        self.printer = ContinuousPrinter(self.lineage)
        self.instruments = Instruments(after=self.after)
        self.rows = _rows(subject)
        self.levels: list[Level] = []
        self.passes: list[Pass] = []
        self.kernels: dict[int, Kernel] = {}
        self.memory: list[MemoryPlan] = []
        self.removed_by: dict[int, tuple[str, list[Value]]] = {}
        self.slots: measuring.Slots = {}

    def run(self) -> Explanation:
        copy = self.module.clone() if self.subject.measure else None
        self.lineage.look(self.module, 0)
        self.lines = self.printer.module(self.module)
        ops = len(self.lineage.nodes)
        self.passes.append(Pass(0, "recording", "trace", "the operations as the program calls them",
                                self.subject.seconds, ops, ops, 0, [], []))
        self.levels.append(Level("trace", self.lines))
        with rewrite.watched(self.replaced):
            Pipeline([step for _, step, _ in self.rows]).run(self.module, self.instruments)
        started = time.perf_counter()
        code = assembly.lines(self.module, self.subject.target, self.lineage.number_of)
        self.levels.append(Level("asm", code))
        if copy is not None:
            self.kernels = measuring.measured(self.kernels, self.slots, copy, self.subject.sizes)
        seconds = {"recording": self.subject.seconds, "passes": sum(p.seconds for p in self.passes[1:]),
                   "code generation": time.perf_counter() - started}
        return self.explanation(seconds)

    # -- during the passes --------------------------------------------------------------------------------------------
    def replaced(self, op: Op, values: Sequence[Value], rule: str, firing: int) -> None:
        """A rule replaces an operation."""
        if (number := self.lineage.number_of.get(op)) is not None:
            self.removed_by[number] = rule, list(values)

    def after(self, step: Step, module: Op) -> None:
        """Take note of the module after a pass."""
        number = len(self.passes)
        level, _, why = self.rows[number - 1]
        made, ops, gone = self.lineage.look(module, number)
        lines = self.printer.module(module)
        key = f"{number:02d} {step}"
        rules = [Rule(name, _equation(name), fired) for name, fired in
                 sorted(self.instruments.rules.get(key, {}).items(), key=lambda item: -item[1])]
        self.passes.append(Pass(number, str(step), level, why, self.instruments.seconds[key], ops, len(made), gone,
                                rules, hunks(self.lines, lines)))
        self.lines = lines
        if step.transform.name == "fuse":
            self.kernels = kernels.collect(module, self.lineage, self.printer)
        elif step.transform.name == "bufferize":
            self.memory = memory.plans(module, self.lineage, self.printer)
        elif step.transform.name == "parallelize":
            self.slots = measuring.slots(module, self.lineage, self.kernels)
        if number == len(self.rows) or self.rows[number][0] != level:
            self.levels.append(Level(level, lines))
            if level == "loop":
                kernels.add_schedules(self.kernels, module, self.lineage, self.subject.sizes)

    # -- at the end ---------------------------------------------------------------------------------------------------
    def explanation(self, seconds: dict[str, float]) -> Explanation:
        import mlc
        subject = self.subject
        files, numbers = self.files()
        ops = [Operation(n.name, list(n.parents), [
            Position(numbers.get(loc.file, -1), loc.line, loc.col) for loc in (n.loc, *n.loc.fused)],
            n.born, n.rule, n.died) for n in self.lineage.nodes]
        for number, (rule, values) in self.removed_by.items():
            if ops[number].gone >= 0:
                ops[number].removed = rule
                ops[number].instead = [self.lineage.number_of[v.op] for v in values
                                       if v.op is not None and v.op in self.lineage.number_of]
        target = subject.target
        machine = target.name if target.cpu in target.name else f"{target.name} ({target.cpu})"
        return Explanation(subject.title, machine, mlc.__version__, subject.sizes, seconds, files, ops,
                           self.levels, self.passes, list(self.kernels.values()), self.memory, subject.specialisations)

    def files(self) -> tuple[list[SourceFile], dict[str, int]]:
        """The source files that operations are from, and the number of each by its name."""
        import mlc
        folders = [str(Path(folder).resolve().parent) for folder in mlc.__path__]
        own = {str(Path(f).resolve()) for f in self.subject.own_files}
        out, numbers = list[SourceFile](), dict[str, int]()
        for file in dict.fromkeys(loc.file for n in self.lineage.nodes for loc in (n.loc, *n.loc.fused)):
            path = str(Path(file).resolve()) if file else ""
            linecache.checkcache(file)
            lines = linecache.getlines(file) if file else []
            inside = any(path.startswith(f"{folder}/{part}/") for folder in folders for part in _OWN)
            if lines and len(lines) <= LONGEST_FILE and (path in own or not inside):
                numbers[file] = len(out)
                out.append(SourceFile(_shown(file), [line.rstrip("\n") for line in lines]))
        return out, numbers


_OWN = ("mlc", "ir", "dialects", "passes", "backends", "frontend", "tools")
"""Folders of mlc's own sources."""


def _shown(file: str) -> str:
    """A path as it is shown: relative to the current folder, if it is below it."""
    try:
        return str(Path(file).resolve().relative_to(Path.cwd()))
    except ValueError:
        return file


def _rows(subject: Subject) -> list[tuple[str, Step, str]]:
    """(level, step, reason for its place) of the passes that the module has yet to go through."""
    machine = subject.target.machine
    steps = pipeline.remaining(subject.module, "llvm", machine, subject.target.products(subject.precision))
    rows = pipeline.order(machine)[-len(steps):] if steps else ()
    return [(level, step, why) for (level, _, why), step in zip(rows, steps)]


def _equation(name: str) -> str:
    if name == FOLDING:
        return "an operation on constants is a constant, and one that changes nothing is its operand"
    known = (CONSTANT_TO_THE_RIGHT, *(rule for rules in rewrite.RULES.values() for rule in rules))
    return next((rule.equation for rule in known if rule.name == name), "")


def describe(report: Any) -> Specialisation:
    """A specialisation from the report of a compiled function."""
    return Specialisation(list(report.types), [line.strip() for line in str(report).splitlines()[1:]])
