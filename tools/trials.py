"""One call of one module, compiled with some of the optional changes: what is wrong with it, and how long it takes.

Each trial runs in a process of its own, so a crash and a hang are outcomes like a wrong answer.
"""

from __future__ import annotations

import os
import runpy
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mlc.ir import changes
from mlc.ir.changes import Choice
from mlc.ir.core import Op
from mlc.ir.diag import Error, UserError
from mlc.ir.files import write_text
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments, Pipeline, Step
from mlc.ir.printer import to_text
from mlc.ir.verify import verify
from mlc.passes import pipeline
from mlc.tools import check, child, inputs
from mlc.tools.outcome import FAILURES, Outcome

ROUNDS, SHORTEST = 9, 0.004
"""How often two ways are timed in turn, and the seconds that one of these times takes at least."""


@dataclass(frozen=True)
class Failure:
    """Failure of a call: `kind` is the same for failures that may have the same cause."""

    kind: str
    message: str


@dataclass
class Call:
    """A function of a module, and what it is called with.

    steps   passes after which it is interpreted; None: it is compiled to native code
    exact   results have to agree to the bit
    """

    module: Op
    entry: str
    arrays: Sequence[Any]
    steps: Sequence[Step] | None = None
    exact: bool = False
    check: check.Check = field(init=False)

    def __post_init__(self) -> None:
        self.check = check.Check(self.module.clone(), self.entry, self.arrays, self.exact, keep=False)

    @property
    def pipeline(self) -> Sequence[Step]:
        """The passes that a trial runs."""
        from mlc.backends.cpu.targets import host
        return self.steps if self.steps is not None else pipeline.remaining(self.module, "llvm", host().machine)

    @property
    def line(self) -> str:
        """Where the function was written."""
        return next((str(op.loc) for op in self.module.walk() if op.attrs.get("sym_name") == self.entry), "")

    def lowered(self, choice: Choice, report: Callable[[str], None] = lambda step: None) -> Op:
        """The module after the passes."""
        module = self.module.clone()
        with changes.chosen(choice):
            Pipeline(self.pipeline).run(module, Instruments(after=lambda step, _: report(str(step))))
        return module

    def executable(self, choice: Choice) -> Any:
        """Native code, on whose entry calls are made."""
        from mlc.backends.cpu.targets import host
        from mlc.backends.executable import build
        return build(self.lowered(choice), host()).entry(self.entry)

    def outcome(self, choice: Choice) -> Outcome:
        """Outcome of the call."""
        try:
            if self.steps is None:
                return Outcome(self.executable(choice).call([a.copy() for a in self.check.arrays]))
            module = self.lowered(choice)
            verify(module)
            return self.check.interpret(module)
        except UserError as error:
            return Outcome(error=error)

    def failure(self, choice: Choice, exact_as: Choice | None = None) -> Failure | None:
        """The failure of the call, if any; with `exact_as`, also where its bits differ from those with that choice."""
        try:
            want = self.check.outcome if exact_as is None else self.outcome(exact_as)
            found = self.outcome(choice)
        except (Error, *FAILURES) as error:
            message = error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            return Failure(message.split(":")[0], message)
        exact = exact_as is not None or self.check.exact
        broken = found.difference(want, exact, self.check._slack)
        return Failure("wrong answer", broken) if broken is not None else None


SMALL = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  func.return %x : tensor<2xf32>\n}\n"


def warm_up(seconds: float) -> None:
    """Import what compiles, of which each process would take longer than of the rest; not if that ends the process."""
    def work() -> str:
        Call(parse_module(SMALL), "main", [np.zeros(2, np.float32)]).executable(Choice(()))
        return "done"

    if child.asked(work, seconds)[0] == "done":
        work()


def failure(call: Call, choice: Choice, seconds: float, exact_as: Choice | None = None) -> Failure | None:
    """`call.failure` in a process of its own, of which a crash and a hang are failures."""
    def question() -> list[str] | None:
        found = call.failure(choice, exact_as)
        return [found.kind, found.message] if found is not None else []

    answer, died = child.asked(question, seconds)
    if died is not None:
        return Failure(died, f"the process ended with {died}")
    return Failure(*answer) if answer else None


def blamed(call: Call, choice: Choice, seconds: float) -> str:
    """The first pass that breaks a call that fails with a choice, found by interpreting after every pass."""
    def question() -> str:
        run = check.Check(call.module.clone(), call.entry, call.arrays, call.exact, keep=False)
        try:
            with changes.chosen(choice):
                run.run(call.pipeline)
                if call.steps is None:
                    run.native()
        except (Error, *FAILURES) as error:
            return error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"
        return "no pass changes what the interpreter gives"

    answer, died = child.asked(question, seconds)
    return str(answer) if died is None else f"it ends with {died} after {last_step(call, choice, seconds)}"


def last_step(call: Call, choice: Choice, seconds: float) -> str:
    """The last pass that comes to its end before the process does not."""
    def work(tell: child.Tell) -> None:
        call.lowered(choice, tell)

    process, done = child.Child(work), ["no pass"]
    try:
        done += [f"pass {step}" for step in process.answers(seconds)]
        process.end()
    except TimeoutError:
        process.end(kill=True)
    return done[-1]


# -- how long it takes ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Times:
    """Medians of two ways that were timed in turn, and the lower quartile of the quotients of each turn."""

    seconds: float
    other: float
    ratio: float
    low: float

    def slower(self, ratio: float) -> bool:
        """Whether the first takes so many times as long as the other, and three turns of four agree that it is longer.
        """
        return self.ratio >= ratio and self.low > 1 + (ratio - 1) / 2

    def __str__(self) -> str:
        return (f"{_shown(self.seconds)} against {_shown(self.other)}, {self.ratio:.2f} times as long ({self.low:.2f} "
                "or less in a quarter of the turns)")


def _shown(seconds: float) -> str:
    unit, factor = ("us", 1e6) if seconds < 1e-3 else ("ms", 1e3)
    return f"{seconds * factor:.1f} {unit}"


def in_turn(first: Callable[[], float], other: Callable[[], float], rounds: int = ROUNDS) -> Times:
    """Both, one after the other, so that whatever else the machine does falls on both."""
    pairs = [(first(), other()) for _ in range(rounds)]
    quotients = [a / b for a, b in pairs]
    return Times(statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs),
                 statistics.median(quotients), statistics.quantiles(quotients, n=4)[0])


def call_times(call: Call, choice: Choice, other: Choice) -> Times:
    """Seconds of a call with two choices."""
    def timer(entry: Any) -> Callable[[], float]:
        arrays = [a.copy() for a in call.check.arrays]
        entry.call(arrays)
        started = time.perf_counter()
        entry.call(arrays)
        count = max(1, int(SHORTEST / max(time.perf_counter() - started, 1e-7)))

        def timed() -> float:
            started = time.perf_counter()
            for _ in range(count):
                entry.call(arrays)
            return (time.perf_counter() - started) / count
        return timed

    return in_turn(timer(call.executable(choice)), timer(call.executable(other)))


def compile_times(call: Call, choice: Choice, other: Choice) -> Times:
    """Seconds of this process's own work in compiling with two choices."""
    def timer(choice: Choice) -> Callable[[], float]:
        def timed() -> float:
            started = time.process_time()
            call.executable(Choice(choice.only, choice.without)) if call.steps is None else call.lowered(
                Choice(choice.only, choice.without))
            return time.process_time() - started
        timed()
        return timed

    return in_turn(timer(choice), timer(other), ROUNDS - 4)


def times(how: Callable[[Call, Choice, Choice], Times], call: Call, choice: Choice, other: Choice,
          seconds: float) -> Times | None:
    """Times in a process of its own; None where it crashes, hangs or fails."""
    def question() -> list[float]:
        found = how(call, choice, other)
        return [found.seconds, found.other, found.ratio, found.low]

    answer, died = child.asked(question, seconds)
    return Times(*answer) if died is None else None


# -- the calls of a program -------------------------------------------------------------------------------------------
def calls_of(path: str, folder: Path, seconds: float) -> tuple[list[Call], str | None]:
    """The first call of each compiled function of a Python program, in order; and how the program failed, if it did."""
    answer, died = child.asked(lambda: _run(path, folder), seconds)
    out = list[Call]()
    for file in sorted(folder.glob("*.mlir")):
        text = file.read_text(encoding="utf-8")
        module = parse_module(text, str(file))
        if (held := inputs.held_call(text)) is not None:
            out.append(Call(module, held[0], held[1]))
        elif file == max(folder.glob("*.mlir")) and (died or answer):      # it was not compiled
            entry = inputs.choose_entry(module, None)
            out.append(Call(module, entry, inputs.random_arrays(inputs.entries(module)[entry].inputs, 0, {})))
    return out, died or answer or None


def _run(path: str, folder: Path) -> str:
    """Run a program, and leave a file for each call; what it raised, or nothing."""
    from mlc.tools import report
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)           # what it prints is not what was asked for
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        with capturing(folder):
            runpy.run_path(path, run_name="__main__")
    except (Exception, SystemExit) as error:               # an assertion of its own, perhaps, about what is wrong
        return "" if isinstance(error, SystemExit) and not error.code else \
            f"{report.users_fault(error).message}" if isinstance(error, Exception) else f"exit status {error.code}"
    return ""


@contextmanager
def capturing(folder: Path) -> Iterator[None]:
    """Within, a file is written for what mlc compiles, before it does, and for the first call, before it is made."""
    from mlc import api
    from mlc.frontend.devices import CPU
    original, count = api.native_code, 0

    def native_code(module: Any, placement: Any) -> Any:
        nonlocal count
        if placement.device != CPU:
            return original(module, placement)
        count += 1
        made = _Captured(module.clone(), folder, count)
        made.native = original(module, placement)
        return made

    api.native_code = native_code
    with changes.chosen(Choice()):                         # code that is kept would have no changes
        try:
            yield
        finally:
            api.native_code = original


class _Captured:
    """Native code whose entries leave a file when they are first called."""

    def __init__(self, module: Op, folder: Path, number: int) -> None:
        self.module, self.folder, self.number = module, folder, number
        self.text = to_text(module, locations=True)
        self.native: Any = None
        self.entries: dict[str, _CapturedEntry] = {}
        write_text(folder / f"{number:05d}.mlir", self.text)

    def entry(self, name: str) -> _CapturedEntry:
        return self.entries.setdefault(name, _CapturedEntry(self, name))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.native, name)


class _CapturedEntry:
    """A compiled function."""

    def __init__(self, made: _Captured, name: str) -> None:
        self.made, self.name = made, name
        self.native, self.called = made.native.entry(name), False

    def call(self, arrays: Sequence[Any], sizes: Any = None) -> Any:
        if not self.called:
            self.called = True
            types = inputs.entries(self.made.module)[self.name].inputs
            plain = self.made.folder / f"{self.made.number:05d}.mlir"
            plain.unlink(missing_ok=True)
            write_text(self.made.folder / f"{self.made.number:05d}-{self.name}.mlir", inputs.reproducer(
                self.made.text, "", self.name, arrays, types, False))
        return self.native.call(arrays, sizes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.native, name)
