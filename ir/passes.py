"""Passes, the IR forms that they require and produce, pass pipelines and their instrumentation."""

from __future__ import annotations

import gc
import importlib
import re
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

from mlc.ir import changes, logs, pass_options
from mlc.ir.core import Op
from mlc.ir.diag import UNKNOWN, Error, InternalError, IRError, Loc, UserError, UserMemoryError
from mlc.ir.difference import compared, folded
from mlc.ir.files import write_text
from mlc.ir.printer import to_text
from mlc.ir.verify import verify

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


@dataclass(frozen=True)
class Form:
    """Form of a module between two passes: the dialects that are legal in it, and named invariants.

    A form implies another if its dialects are among the other's and it has all of the other's invariants.
    """

    name: str
    dialects: frozenset[str]
    invariants: tuple[Callable[[Op], None], ...] = ()
    without: frozenset[str] = frozenset()          # single operations excluded although their dialect is allowed

    def implies(self, other: Form) -> bool:
        return (self.dialects <= other.dialects and set(other.invariants) <= set(self.invariants)
                and all(op in self.without or op.split(".")[0] not in self.dialects for op in other.without))

    def check(self, module: Op) -> None:
        """Raise IRError at the first operation that the form does not allow."""
        for op in module.walk():
            if op.name.split(".", 1)[0] not in self.dialects or op.name in self.without:
                raise IRError(f"{op.name} is not allowed in the form '{self.name}'", code="MLC0140", loc=op.loc,
                              hint=f"its dialects are {', '.join(sorted(self.dialects))}; "
                                   "a module of a lower level is entered at a later pass")
        for invariant in self.invariants:
            invariant(module)




@dataclass(frozen=True)
class Pass:
    """An in-place transformation. Options are the keyword arguments of `run` after the module.

    takes  required form; None accepts every form
    gives  form of the result; None keeps the form
    whole  whether `mlc bisect` (ir/changes.py) may skip the pass as a whole if it keeps the form; False if it must run,
           or asks before each change
    """

    run: Callable[..., Any]                  # may return the ir.rewrite.Counters of the rules it applied
    takes: Form | None = None
    gives: Form | None = None
    whole: bool = True

    @property
    def optional(self) -> bool:
        """Whether the pass may be skipped as a whole."""
        return self.whole and self.gives in (None, self.takes)

    @property
    def name(self) -> str:
        """Name in a pipeline; for a user's own pass, the full module name."""
        return self.run.__module__.removeprefix("mlc.passes.")

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """Options and their default values."""
        import inspect
        return {p.name: p.default for p in list(inspect.signature(self.run).parameters.values())[1:]}

    @cached_property
    def kinds(self) -> Mapping[str, pass_options.Kinds]:
        """The classes that the values of each option may have."""
        return pass_options.kinds_of(self.run)

    @property
    def summary(self) -> str:
        return (sys.modules[self.run.__module__].__doc__ or "").strip().splitlines()[0]


def find_pass(name: str) -> Pass:
    """The pass of module `mlc.passes.NAME`; `-` and `_` are the same. A user's own pass is named `package.module`."""
    module = name.replace("-", "_")
    path = module if "." in module else f"mlc.passes.{module}"
    try:
        found = getattr(sys.modules.get(path), "PASS", None)
        if found is None:                                  # or another thread is importing it, which this waits for
            found = getattr(_imported(path, "." in module), "PASS", None)
    except ModuleNotFoundError as error:
        if not _is_missing(path, error):
            raise
        found = None
    if found is None and path in sys.modules:
        raise UserError(f"the module {path} defines no pass", code="MLC0330",
                        hint="a module that is a pass ends with PASS = Pass(run), of mlc.ir.passes")
    if found is None:
        import difflib

        near = difflib.get_close_matches(module, pass_names(), 1)
        raise UserError(f"there is no pass {name!r}", code="MLC0330",
                        hint=f"did you mean {near[0]}?" if near else "see `mlc passes`")
    return found  # type: ignore[no-any-return]


def _imported(path: str, own: bool) -> ModuleType:
    """A module by its path; UserError if it is the user's `own`, is there, and cannot be imported."""
    try:
        return importlib.import_module(path)
    except Exception as error:
        if not own or isinstance(error, Error) or _is_missing(path, error):
            raise
        raise _not_imported(path, error) from error


def _is_missing(path: str, error: Exception) -> bool:
    """Whether the error is that there is no such module, or no package that it would be in."""
    return isinstance(error, ModuleNotFoundError) and f"{path}.".startswith(f"{error.name}.")


def _not_imported(path: str, error: Exception) -> UserError:
    """The error of the module of a user's own pass, at its line there."""
    text, loc = str(error), UNKNOWN
    if isinstance(error, SyntaxError) and error.filename:
        text, loc = error.msg, Loc(error.filename, error.lineno or 0, error.offset or 0)
    else:
        importers = (__file__, importlib.__file__)
        frames = [f for f in traceback.extract_tb(error.__traceback__)
                  if f.filename not in importers and not f.filename.startswith("<frozen ")]
        if frames:
            loc = Loc(frames[0].filename, frames[0].lineno or 0)
    return UserError(f"the pass {path} cannot be imported: {type(error).__name__}: {text}", code="MLC0398", loc=loc,
                     hint="correct the module, which python -m " + path + " imports too")


def pass_names() -> list[str]:
    """Every pass that mlc ships, in alphabetical order."""
    import pkgutil

    package = importlib.import_module("mlc.passes")
    names = [m.name for m in pkgutil.iter_modules(package.__path__)]
    return sorted(n for n in names if "PASS" in vars(importlib.import_module(f"mlc.passes.{n}")))


@dataclass(frozen=True)
class Step:
    """A pass with its options."""

    transform: Pass
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        pass_options.check(self.transform.name, self.options, self.transform.kinds)

    def apply(self, module: Op, number: int = 0, **more: Any) -> Any:
        """Run the pass, at position `number` of its pipeline, with the optional changes that are enabled."""
        with changes.considered(f"{number:02d} {self.transform.name}", module):
            if self.transform.optional and not changes.allowed("", module):
                return None
            return self.transform.run(module, **{**dict(self.options), **more})

    def __str__(self) -> str:
        text = ",".join(f"{k}={pass_options.text_of(v)}" for k, v in self.options)
        return f"{self.transform.name}{{{text}}}" if text else self.transform.name


@dataclass
class Instruments:
    """Instrumentation of the passes of a pipeline, or of several that take a module on: their passes count on."""

    verify_each: bool = False
    print_after_all: IO[str] | None = None
    print_after_change: IO[str] | None = None          # as a diff
    generic: bool = False
    dump_dir: Path | None = None                       # 00_input.mlir, 01_canonicalize.mlir, ...
    reproducer: Path | None = None                     # file for IR and pipeline after a crash
    after: Callable[[Step, Op], None] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    rules: dict[str, dict[str, int]] = field(default_factory=dict)
    passed: int = 0                                    # passes that the module is through


class Pipeline:
    """A sequence of passes. The constructor raises UserError unless each pass accepts the form of its predecessor."""

    def __init__(self, steps: Iterable[Step | Pass | str], start: Form | None = None) -> None:
        self.steps = [s if isinstance(s, Step) else Step(find_pass(s) if isinstance(s, str) else s) for s in steps]
        self.takes = next((s.transform.takes for s in self.steps if s.transform.takes is not None), None)
        form, producer = start, "the start"
        for step in self.steps:
            needs = step.transform.takes
            if needs is not None and form is not None and not form.implies(needs):
                raise UserError(f"{step.transform.name} takes the form '{needs.name}', but {producer} leaves "
                                f"'{form.name}'", code="MLC0331")
            if step.transform.gives is not None:
                form, producer = step.transform.gives, step.transform.name

    def __str__(self) -> str:
        return ",".join(map(str, self.steps))

    def run(self, module: Op, instruments: Instruments | None = None) -> Op:
        """Run every pass on `module` in place, and return it."""
        ins = instruments or Instruments()
        if not ins.passed:
            _dump(ins, 0, "input", module)
        if ins.verify_each and self.takes is not None:
            self.takes.check(module)
        with no_collection():
            self._run(module, ins)
        return module

    def _run(self, module: Op, ins: Instruments) -> None:
        form: Form | None = None
        for index, step in enumerate(self.steps):
            number = ins.passed + 1
            watched = ins.print_after_change is not None or ins.reproducer is not None
            before = to_text(module, ins.generic) if watched else ""
            started = time.perf_counter()
            try:
                counters = step.apply(module, number)
                form = step.transform.gives or form
                if ins.verify_each:
                    verify(module)
                    if form is not None:
                        form.check(module)
            except Exception as error:
                raise self._crashed(index, before, error, ins)    # noqa: B904 (_crashed sets the cause)
            ins.seconds[f"{number:02d} {step}"] = time.perf_counter() - started
            fired = getattr(counters, "fired", None) or {}
            if fired:
                ins.rules[f"{number:02d} {step}"] = dict(fired)
            if logs.wants("passes"):
                ms = 1e3 * ins.seconds[f"{number:02d} {step}"]
                rules = "".join(f", {name} {count}" for name, count in fired.items())
                logs.write("passes", f"{number:02d} {step} {ms:.2f} ms{rules}", step=str(step), milliseconds=ms,
                           rules=dict(fired))
            if ins.print_after_all is not None:
                ins.print_after_all.write(f"// ----- after {step} -----\n{to_text(module, ins.generic)}")
            if ins.print_after_change is not None:
                ins.print_after_change.write(_diff(before, to_text(module, ins.generic), str(step)))
            ins.passed = number
            _dump(ins, number, step.transform.name, module)
            if ins.after is not None:
                ins.after(step, module)

    def _crashed(self, index: int, before: str, error: Exception, ins: Instruments) -> Exception:
        """Exception to raise for a failed pass: errors about the user's input as they are, a defect of the compiler as
        an InternalError, with a reproducer."""
        if isinstance(error, Error) and not isinstance(error, IRError):
            return error
        step = self.steps[index]
        notes = (*_place(step, error), *getattr(error, "__notes__", ()))
        if isinstance(error, IRError) and not ins.verify_each:
            error.notes = (*error.notes, f"pass {step} found it", *notes)
            return error
        if isinstance(error, MemoryError):
            out_of_memory = UserMemoryError(f"pass {step} ran out of memory", code="MLC0451",
                                            hint="put repeated layers into functions or loops, and large constants "
                                                 "into arguments")
            out_of_memory.__cause__ = error
            return out_of_memory
        unwritten = None if ins.reproducer is None else _write_reproducer(ins.reproducer, before, self.steps[index:])
        wrapped = InternalError(f"pass {step} failed: {type(error).__name__}: "
                                f"{error.message if isinstance(error, Error) else error}",
                                loc=getattr(error, "loc", None) or Error("").loc,
                                notes=notes if unwritten is None else (*notes, unwritten))
        if ins.reproducer is not None and unwritten is None:
            wrapped.reproducer = f"mlc opt {ins.reproducer} --run-reproducer{allowances(self.steps[index:])}"
            wrapped.hint = f"replay it with: {wrapped.reproducer}"
        wrapped.__cause__ = error
        return wrapped


def _write_reproducer(path: Path, before: str, steps: Sequence[Step]) -> str | None:
    """Write a reproducer of a failure, which is worth more; where that is not possible, a note that says why."""
    try:
        write_reproducer(path, before, ",".join(map(str, steps)))
    except OSError as error:
        return f"no file replays it: cannot write {path}: {error.strerror or error}"
    return None


def _place(step: Step, error: Exception) -> tuple[str, ...]:
    """A note that says at which line of the pass an exception was raised; none of an error about the IR, which says
    more."""
    if isinstance(error, Error):
        return ()
    frames = traceback.extract_tb(error.__traceback__)
    own = sys.modules[step.transform.run.__module__].__file__
    frame = next((f for f in reversed(frames) if f.filename == own), frames[-1])
    return (f"raised at line {frame.lineno} of {frame.filename}, in {frame.name}",)


@contextmanager
def no_collection() -> Iterator[None]:
    """Disable the cycle collector: passes create many long-lived objects, and each collection traverses all of them.

    Measured on the gradient of a chain of 6,000 operations: 58 microseconds per operation without, 138 with it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def write_reproducer(path: Path, text: str, pipeline: str) -> None:
    """Write a reproducer in MLIR's format: the IR, and a resource section with the pipeline."""
    write_text(path, text + "\n{-#\n  external_resources: {\n    mlir_reproducer: {\n"
                    f'      pipeline: "builtin.module({pipeline})",\n'
                    "      disable_threading: true,\n      verify_each: true\n    }\n  }\n#-}\n")


def reproducer_pipeline(text: str) -> str | None:
    """The pipeline in the text of a reproducer."""
    found = re.search(r'mlir_reproducer:.*?pipeline: "builtin\.module\((.*?)\)"', text, re.S)
    return found[1] if found else None


def _dump(ins: Instruments, number: int, name: str, module: Op) -> None:
    if ins.dump_dir is not None:
        path = ins.dump_dir / f"{number:02d}_{name}.mlir"
        try:
            ins.dump_dir.mkdir(parents=True, exist_ok=True)
            write_text(path, to_text(module, ins.generic))
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}", code="MLC0393",
                            hint=f"dumps go to the folder {ins.dump_dir}: name one that may be written to") from None


def _diff(before: str, after: str, name: str) -> str:
    if before == after:
        return f"// ----- {name}: no change -----\n"
    text = folded(compared(before, after))
    return f"// ----- {name} -----\n{text}" if text else f"// ----- {name}: no change but of names -----\n"


_STEP = re.compile(r"\s*([\w.-]+)\s*(?:\{([^{}]*)\})?\s*(,|$)")


def allowances(steps: Iterable[Step]) -> str:
    """The `--allow-pass` options of a command that runs these steps from a file: one per user-defined pass."""
    return "".join(f" --allow-pass {name}" for name in dict.fromkeys(s.transform.name for s in steps) if "." in name)


def parse_pipeline(text: str, allowed: Collection[str] | None = None) -> list[Step]:
    """Parse `canonicalize,fuse{max=3 why=true},cse`, with or without `builtin.module(...)` around it.

    Importing a module executes it. For a text that comes from a file, `allowed` therefore names the only user-defined
    passes that may be imported; None allows all.
    """
    text = text.strip()
    while m := re.fullmatch(r"(?:builtin\.module|func\.func)\((.*)\)", text, re.S):
        text = m[1].strip()
    steps: list[Step] = []
    at = 0
    while at < len(text):
        m = _STEP.match(text, at)
        if m is None:
            raise UserError(f"bad pipeline at {text[at:at + 30]!r}", code="MLC0332",
                            hint="write PASS{option=value},PASS,...")
        if allowed is not None and "." in m[1] and m[1].replace("-", "_") not in allowed:
            raise UserError(f"the file asks for the pass {m[1]}, which would be imported and run", code="MLC0454",
                            hint=f"give --allow-pass {m[1]} if you trust that module")
        transform = find_pass(m[1])
        steps.append(Step(transform, _options(transform, m[2] or "")))
        at = m.end()
    return steps


def _options(transform: Pass, text: str) -> tuple[tuple[str, Any], ...]:
    defaults = transform.defaults
    out: list[tuple[str, Any]] = []
    for item in re.split(r"[\s,]+", text.strip()) if text.strip() else []:
        key, equals, value = item.partition("=")
        key = key.replace("-", "_")
        if key not in defaults:
            raise UserError(f"pass {transform.name} has no option {key!r}", code="MLC0333",
                            hint=f"it has {', '.join(defaults)}" if defaults else "it has none")
        out.append((key, pass_options.parsed(transform.name, key, value if equals else None, transform.kinds[key])))
    return tuple(out)
