"""A program at all levels: interpreted before and after passes, and run as native code.

`check` compares after every pass, and is what tests of single passes use. `examine` is `mlc fuzz`'s: it interprets at
the few places where a level ends, and only where something is wrong again after every pass, to name the one at fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.backends.executable import build
from mlc.backends.target import Target, host
from mlc.dialects.builtin import Module
from mlc.ir.core import Op
from mlc.ir.diag import Error, InternalError, UserError
from mlc.ir.interp import run_function
from mlc.ir.passes import Instruments, Pipeline, Step
from mlc.ir.printer import to_text
from mlc.ir.verify import verify
from mlc.passes import pipeline
from mlc.tools import inputs
from mlc.tools.check import Check, difference
from mlc.tools.fuzzing.programs import Array, Program

ROUNDS = ("decompose", "fix_numerics")
"""Passes that may choose other roundings; across all others every bit stays."""
LANDMARKS = ("signatures", "fix_numerics", "fuse", "bufferize", "outline", "scf_to_llvm")
"""The passes after which `examine` interprets a module: each is the last before another form of it."""
_VARIES = re.compile(r"'[^']*'|\"[^\"]*\"|[@%#][\w.$-]+|(?<![A-Za-z])[-+]?(?:\d[\d.e+-]*|inf|nan)|\[[^\]]*\]|!?\w+<[^>]*>")


# -- after every pass -------------------------------------------------------------------------------------------------
def check(program: Program, target: Target | None = None, vector_bits: int | None = None,
          between: Callable[[Step, Module], None] | None = None) -> None:
    """AssertionError (or what the compiler raises) unless every level and native code give the same bits.

    Across `ROUNDS` only types and integers that no float reaches are compared, since random programs magnify
    differences of rounding.

    between  edits the module after a pass
    """
    target = target or host()
    steps = pipeline.build("llvm", vector_bits or target.vector_bits)
    lowered, wanted = lower(program, steps, between)
    same(native(lowered, program.arguments, target), wanted, "native code")


def lower(program: Program, steps: Pipeline, between: Callable[[Step, Module], None] | None = None
          ) -> tuple[Module, list[Array]]:
    """The program after the last pass, and its results; AssertionError unless they are the same after every pass."""
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
    """What is wrong with one seed.

    key      the same for the same defect: the pass or rule, and the message without what varies
    message  what was found
    text     a file that shows it again
    suffix   what kind of file that is
    """

    key: str
    message: str
    text: str = ""
    suffix: str = ".mlir"


def key_of(error: BaseException | str, where: str = "") -> str:
    """What is the same of an error wherever it comes up: its code or class, the place, and its words."""
    if isinstance(error, str):
        return f"{where}: {_VARIES.sub('_', error)}"[:200]
    what = error.code or type(error).__name__ if isinstance(error, Error) else type(error).__name__
    rule = ", ".join(re.sub(r":.*", "", n) for n in getattr(error, "notes", ()) if n.startswith("rule "))
    text = str(getattr(error, "message", error)).partition("\n")[0]
    return " ".join(filter(None, (what, where, rule, _VARIES.sub("_", text))))[:240]


def examine(program: Program, depth: str = "llvm", run_native: bool = False) -> Failure | None:
    """None if the program means the same at each landmark as far down as the pass `depth`, and as native code."""
    try:
        return None if _agrees(program, depth, run_native) else first_failure(program, depth, run_native)
    except Exception:                                      # whatever a pass dies of is a finding
        return first_failure(program, depth, run_native)


def _agrees(program: Program, depth: str, run_native: bool) -> bool:
    lowered = program.module()
    run = Check(lowered, "main", program.arguments, keep=False)
    for step in stages(depth):
        if step.transform.name in ("constrain_sizes", "decompose"):
            run.before = lowered.clone()
        step.transform.run(lowered, **dict(step.options))
        run.form = step.transform.gives or run.form
        if not _ends_stage(step):
            continue
        if run.wrong(lowered, run.form) is not None:
            return False
        if step.transform.name == "fix_numerics":
            run.exact, run.outcome = True, run.interpret(lowered)
    if run_native and depth == "llvm":
        run.native()
    return True


def stages(depth: str) -> list[Step]:
    """The passes that an examination as far as `depth` runs."""
    steps = pipeline.steps("llvm", host().vector_bits)
    if depth == "llvm":
        return steps
    last = max(i for i, step in enumerate(steps) if step.transform.name == depth)
    return steps[: last + 1]


def _ends_stage(step: Step) -> bool:
    return step.transform.name in LANDMARKS


def first_failure(program: Program, depth: str, run_native: bool) -> Failure:
    """The failure of a program that is known to fail, with the pass that is to blame."""
    step: Step | None = None
    run: Check | None = None
    try:
        run = Check(program.module(), "main", program.arguments, keep=False)
        for step in stages(depth):
            run.before = run.module.clone()
            run.run([step])
        step = None
        if run_native and depth == "llvm":
            run.native()
    except Exception as error:                             # whatever a pass dies of is a finding
        where = "" if step is None else f"pass {step.transform.name}"
        held = _held(run, step) if run is not None and step is not None else program.text
        return Failure(key_of(error, where), f"{type(error).__name__}: {error}", held)
    return Failure("only between landmarks", "every pass keeps the meaning, but not all together", program.text)


def _held(run: Check, step: Step) -> str:
    """A file that fails again: the module before the pass, with the pass and the arrays."""
    return f"// test: pass {step}\n" + inputs.reproducer(to_text(run.before, locations=False), str(step), run.entry,
                                                        run.arrays, run.types, run.exact)


def fails_again(module: Op, arrays: Sequence[Any], step: Step, exact: bool) -> str | None:
    """The key of what is wrong with one pass on a module; None if nothing is."""
    try:
        Check(module.clone(), "main", arrays, exact, keep=False).run([step])
    except (InternalError, UserError) as error:
        return key_of(error, f"pass {step.transform.name}")
    except Exception as error:                             # whatever a pass dies of is a finding
        return key_of(error, f"pass {step.transform.name}")
    return None


def steps_of(names: Sequence[str]) -> Iterator[Step]:
    """The rows of the pipeline of these names."""
    return (step for step in stages("llvm") if step.transform.name in names)
