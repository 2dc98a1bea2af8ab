"""Differential testing across levels: a program is interpreted before and after passes, and run as native code.

`check` compares after every pass; tests of single passes use it. `examine`, for `mlc fuzz`, interprets only at the end
of each level, and on a failure again after every pass, to name the one at fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.backends.cpu.targets import host
from mlc.backends.executable import build
from mlc.backends.target import Target
from mlc.dialects.builtin import Module
from mlc.ir.core import Op
from mlc.ir.diag import Error, UserError
from mlc.ir.interp import run_function
from mlc.ir.machine import Model
from mlc.ir.passes import Instruments, Pipeline, Step, parse_pipeline
from mlc.ir.printer import to_text
from mlc.ir.verify import verify
from mlc.passes import pipeline
from mlc.tools import inputs
from mlc.tools.check import Check
from mlc.tools.fuzzing.programs import Array, Program
from mlc.tools.outcome import difference

ROUNDS = ("decompose_complex", "decompose", "fix_numerics")
"""Passes that may change rounding, as sums do whose order is not fixed yet; all others preserve results bit for bit."""
LANDMARKS = ("dead_argument_elimination", "fix_numerics", "fuse", "bufferize", "outline", "scf_to_llvm")
"""The passes after which `examine` interprets a module: the last one of each level."""
_VARIES = re.compile(
    r"'[^']*'|\"[^\"]*\"|[@%#][\w.$-]+|(?<!\w)[-+]?(?:\d[\d.e+-]*|inf|nan)|\[[^\]]*\]|!?\w+<[^>]*>")


# -- after every pass -------------------------------------------------------------------------------------------------
def check(program: Program, target: Target | None = None, machine: Model | None = None,
          between: Callable[[Step, Module], None] | None = None) -> None:
    """AssertionError (or what the compiler raises) unless every level and native code give the same bits.

    Across `ROUNDS` only types and integers that no float reaches are compared, since random programs magnify
    differences of rounding.

    between  edits the module after a pass
    """
    target = target or host()
    steps = pipeline.build("llvm", machine or target.machine)
    lowered, wanted = lower(program, steps, between)
    same(native(lowered, program.arguments, target), wanted, "native code")


def lower(program: Program, steps: Pipeline, between: Callable[[Step, Module], None] | None = None
          ) -> tuple[Module, list[Array]]:
    """The program after the last pass, and its results; AssertionError if they change after any pass."""
    lowered = program.module()
    wanted = run_function(lowered, "main", program.arguments)

    def after(step: Step, module: Op) -> None:
        nonlocal wanted
        assert isinstance(module, Module)
        if between is not None:
            between(step, module)
        verify(module)
        found = run_function(module, "main", program.arguments)
        if step.transform.name in ROUNDS:
            assert [(a.dtype, a.shape) for a in found] == [(a.dtype, a.shape) for a in wanted]
            wanted = found
        same(found, wanted, str(step))

    steps.run(lowered, Instruments(after=after))
    return lowered, wanted


def native(module: Module, arguments: Sequence[Array], target: Target) -> list[Array]:
    return build(module, target).entry("main").call([np.array(a) for a in arguments])


def same(found: Sequence[Array], wanted: Sequence[Array], where: str) -> None:
    assert len(found) == len(wanted), f"{where}: {len(found)} results in place of {len(wanted)}"
    for i, (a, b) in enumerate(zip(found, wanted)):
        message = difference(a, b, exact=True)
        assert message is None, f"after {where}: result {i} is {message}"


# -- at landmarks -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Failure:
    """Failure found with one seed.

    key      identifies the defect: the pass or rule, and the message without its variable parts
    message  description of the failure
    text     contents of a reproducer
    suffix   file suffix of the reproducer
    steps    the pass at fault, and whether it must preserve every bit
    """

    key: str
    message: str
    text: str = ""
    suffix: str = ".mlir"
    steps: str = ""
    exact: bool = True


def key_of(error: BaseException | str, where: str = "") -> str:
    """Key of an error that does not depend on the occurrence: its code or class, location, and message."""
    if isinstance(error, str):
        return f"{where}: {_VARIES.sub('_', error)}"[:200]
    what = error.code or type(error).__name__ if isinstance(error, Error) else type(error).__name__
    rule = ", ".join(re.sub(r":.*", "", n) for n in getattr(error, "notes", ()) if n.startswith("rule "))
    text = str(getattr(error, "message", error)).partition("\n")[0]
    return " ".join(filter(None, (what, where, rule, _VARIES.sub("_", text))))[:240]


def examine(program: Program, depth: str = "llvm", run_native: bool = False) -> Failure | None:
    """None if the results of the program are the same at each landmark down to the pass `depth`, and as native code."""
    exact = True
    try:
        checked = StepwiseCheck(program)
        for step, exact in stages(depth, program):
            landmark = step.transform.name in LANDMARKS or (
                "complex<" in program.text and step.transform.name == "decompose_complex")
            if not checked.take(step, exact, landmark):
                break
        else:
            if run_native and depth == "llvm":
                checked.run.native()
            return None
    except Exception:                                      # whatever a pass dies of is a finding
        pass
    if is_refused(program):
        return None
    found = first_failure(program, depth, run_native)
    if found is None and exact:
        return Failure("only between landmarks", "every pass keeps the meaning, but not all together", program.text)
    return found                                           # what passes do to rounding adds up


def is_refused(program: Program) -> bool:
    """Whether a program has sizes that its arguments exclude: in code that does not run, such as that of a loop which
    ends at once, or where there are no elements, the interpreter does not see them."""
    module = program.module()
    try:
        Pipeline(["constrain_sizes"]).run(module)
        run_function(module, "main", program.arguments)
    except UserError as error:
        return error.code == "MLC0328"
    return False


def examine_rewrites(program: Program) -> Failure | None:
    """None if canonicalize preserves the results of the program, and of each rewrite on special values."""
    step, = parse_pipeline("canonicalize")
    run = Check(program.module(), "main", program.arguments, keep=False)
    try:
        run.run([step])
    except Exception as error:                             # whatever a pass dies of is a finding
        return Failure(key_of(error, "pass canonicalize"), f"{type(error).__name__}: {error}", held_by(run, step),
                       steps=str(step), exact=False)
    return None


def first_failure(program: Program, depth: str, run_native: bool) -> Failure | None:
    """The failure of a failing program, with the pass at fault; None if each pass keeps its meaning."""
    checked: StepwiseCheck | None = None
    at: Step | None = None
    try:
        checked = StepwiseCheck(program)
        for step, exact in stages(depth, program):
            at = step
            before = checked.run.module.clone()
            if not checked.take(step, exact, compare=True):
                checked = StepwiseCheck(program, before, exact)        # again, for the rule and its firing
                checked.run.run([step])
        at = None
        if run_native and depth == "llvm":
            checked.run.native()
    except Exception as error:                             # whatever a pass dies of is a finding
        where = "" if at is None else f"pass {at.transform.name}"
        held = program.text if checked is None or at is None else held_by(checked.run, at)
        message = f"{type(error).__name__}: {error}"
        message = f"{where} fails: {message}" if where not in message else message
        return Failure(key_of(error, where), message, held, steps=str(at or ""),
                       exact=checked is not None and checked.run.exact)
    return None


def stages(depth: str, program: Program) -> list[tuple[Step, bool]]:
    """The passes of an examination down to `depth`, and whether each must preserve every bit.

    All do but those from decompose to fix_numerics, and decompose_complex, which choose how numbers are computed, and
    `grad`: what it makes of a derivative is what the interpreter runs, of a batch it is not.
    """
    steps = pipeline.steps("llvm", host().machine)
    names = [step.transform.name for step in steps]
    chosen = range(names.index("decompose"), names.index("fix_numerics") + 1)
    plain = "autodiff." not in program.text
    rows = [(step, i > chosen.stop - 1 or (plain and i < chosen.start and names[i] != "decompose_complex"))
            for i, step in enumerate(steps)]
    return rows if depth == "llvm" else rows[: len(names) - names[::-1].index(depth)]


class StepwiseCheck:
    """Lowers a program pass by pass, comparing it with the module at the previous comparison."""

    def __init__(self, program: Program, module: Op | None = None, exact: bool = False) -> None:
        module = module if module is not None else program.module()
        self.run = Check(module, "main", program.arguments, exact, keep=False)
        self.before = module.clone()

    def take(self, step: Step, exact: bool, compare: bool) -> bool:
        """Run one pass; returns whether the results are the same, if this pass is compared."""
        run = self.run
        run.exact = exact
        step.transform.run(run.module, **dict(step.options))
        run.form = step.transform.gives or run.form
        if not compare:
            return True
        run.before = self.before
        if run.wrong(run.module, run.form) is not None and (exact or not run.leaves_the_range()):
            return False
        if not exact:
            run.outcome = run.interpret(run.module)
        if step.transform.name not in LANDMARKS[1:]:       # from there on nothing rounds any more
            self.before = run.module.clone()
        return True


def held_by(run: Check, step: Step) -> str:
    """A reproducer: the module before the pass, with the pass and the arrays."""
    return f"// test: pass {step}\n" + inputs.reproducer(to_text(run.before, locations=False), str(step), run.entry,
                                                        run.arrays, run.types, run.exact)


def fails_again(module: Op, arrays: Sequence[Any], step: Step, exact: bool) -> str | None:
    """The key of the failure of one pass on a module; None if it does not fail."""
    try:
        run = Check(module.clone(), "main", arrays, exact, keep=False)
        run.run([step])
    except Exception as error:                             # whatever a pass dies of is a finding
        return key_of(error, f"pass {step.transform.name}")
    return None
