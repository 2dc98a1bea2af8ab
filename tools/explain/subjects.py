"""Subjects of `mlc explain`: a function of a file, or the largest thing that a program compiles while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mlc.backends.target import Target
from mlc.ir.core import Op
from mlc.ir.diag import Error, UserError
from mlc.tools import compile as compile_command
from mlc.tools import formats, inputs, report, run, sources
from mlc.tools.explain.collect import Subject, describe

DEFAULT_SIZE = 32
"""Number for a symbolic size where flops and bytes are to be numbers."""


def of_function(path: str, name: str, given: Sequence[Any] | None, target: Target, precision: str | None) -> Subject:
    """A function of a Python, .mlc or model file, recorded as a call would have it: what it reaches is an input."""
    import mlc.api as api
    from mlc.call import record
    from mlc.frontend.script.report import Report
    if not name and formats.format_of(path) is None:
        name = sources.name_of_only(path)
    function = sources.load(path, name)
    title = f"{path}:{name}" if name else path
    specs = [api.Spec(t) for t in given] if given is not None else sources.annotated(function, title)
    if given is not None:
        sources.check_count(function, specs, title)
    started = time.perf_counter()
    try:
        compiled = api.compiled_function(function) or api.Compiled(function)
        call = compiled.signature.bind_types(specs, {})
        recorded = record(call)
    except Exception as error:
        raise report.users_fault(error) from error
    seconds = time.perf_counter() - started
    module = recorded.trace.module
    why = describe(Report([str(t) for t in call.input_types()], call.values(), recorded.trace.notes, None))
    return Subject(title, module, target, precision, seconds, {}, [why], (path,))


def of_text(path: str, name: str, target: Target) -> Subject:
    """A module of a .mlir file, at any level."""
    started = time.perf_counter()
    module = compile_command.from_text(path, name)
    return Subject(f"{path}:{name}" if name else path, module, target, None, time.perf_counter() - started,
                   own_files=(path,))


@dataclass(frozen=True)
class Compilation:
    """A compilation of a program: of which function, the module, and the time of recording it."""

    function: Any
    module: Op
    seconds: float

    @property
    def name(self) -> str:
        return str(self.function.signature.name)

    @property
    def ops(self) -> int:
        return sum(1 for _ in self.module.walk())


def of_program(path: str, arguments: Sequence[str], target: Target, precision: str | None) -> Subject:
    """The largest compilation of a program, which is run."""
    status = 0
    with _compilations() as made:
        try:
            run.program(path, arguments, check=False)
        except SystemExit as stop:                         # as most programs that have a `main` end
            status = report.exit_status(stop)
        except Error as error:                             # what was compiled before it may tell why
            if not made:
                raise
            report.message(str(error))
            status = report.status_of(error)
    if not made:
        raise UserError(f"{path} called no compiled function", code="MLC0453",
                        hint=f"call one in it, or explain one function: mlc explain {path}:FUNCTION")
    largest = max(made, key=lambda c: c.ops)
    if len(made) > 1:
        counts = dict.fromkeys((c.name for c in made), 0)
        for c in made:
            counts[c.name] += 1
        listed = ", ".join(f"{n} of {name}" if n > 1 else name for name, n in counts.items())
        print(f"{len(made)} compilations ({listed}); explaining the largest, of {largest.name}", file=sys.stderr)
    function = largest.function
    reports = function.reports if function.direct is None else [*function.direct.reports, *function.reports]
    return Subject(f"{path}:{largest.name}", largest.module, target, precision, largest.seconds, {},
                   [describe(r) for r in reports], (path,), status=status)


@contextmanager
def _compilations() -> Iterator[list[Compilation]]:
    """Context in which the modules of compiled functions are kept, as they were before lowering."""
    import mlc.api as api
    made: list[Compilation] = []
    original = api.record, api.Compiled.build  # type: ignore[attr-defined]
    seconds: dict[int, float] = {}

    def record(*args: Any, **keywords: Any) -> Any:
        started = time.perf_counter()
        recorded = original[0](*args, **keywords)
        seconds[id(recorded)] = time.perf_counter() - started
        return recorded

    def build(self: Any, call: Any, recorded: Any, timed: bool) -> Any:
        if recorded.computes:
            made.append(Compilation(self, recorded.trace.module.clone(), seconds.get(id(recorded), 0.0)))
        return original[1](self, call, recorded, timed)

    api.record, api.Compiled.build = record, build  # type: ignore[attr-defined, method-assign]
    try:
        yield made
    finally:
        api.record, api.Compiled.build = original  # type: ignore[attr-defined, method-assign]


def specialise(found: Subject, sizes: str | None) -> Subject:
    """The subject with numbers for its symbolic sizes, as the option --sizes gives them."""
    given = inputs.parse_sizes(sizes)
    names = sorted({str(s) for op in found.module.walk() for v in (*op.results, *(
        a for r in op.regions for b in r.blocks for a in b.args)) for s in _symbols(v.type)})
    if unknown := given.keys() - names:
        raise report.usage_error(f"--sizes: there is no size {min(unknown)}", "it has " + (", ".join(names) or "none"),
                                 "MLC0391")
    found.sizes = {name: given.get(name, DEFAULT_SIZE) for name in names}
    return found


def _symbols(type: Any) -> set[str]:
    from mlc.ir.sizes import symbols
    return symbols(*getattr(type, "shape", ())) if type is not None and all(
        d is not None for d in getattr(type, "shape", ())) else set()


