"""Check a compilation by execution: interpret after every pass, compare, and name the pass and rule at fault.

Up to fix_numerics a pass may change results within rounding error; from there on results agree to the bit, down to
native code, which runs with 1 and 2 threads in memory with red zones. Each pass is compared with its own input, so
small differences do not accumulate to a false alarm. The expansions of operations by decompose and fix_numerics are
also checked one by one (expansions.py). The module is lowered a second time, for narrower vectors and with every
kernel, however small, distributed over threads, as for other hardware and sizes, and run on special values, too
(otherwise.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc import rounding
from mlc.dialects.tensor.composite import Composite
from mlc.ir import changes, rewrite
from mlc.ir.core import Op
from mlc.ir.diag import UNKNOWN, Error, InternalError, IRError, UserError
from mlc.ir.interp import MAX_STEPS, Interpreter, bind_sizes, in_parts, run_function
from mlc.ir.passes import Form, Pipeline, Step, allowances, parse_pipeline
from mlc.ir.printer import nameless_text, to_text
from mlc.ir.rewrite import Counters
from mlc.ir.verify import verify
from mlc.passes import pipeline
from mlc.passes.analysis.structural_key import operation_key
from mlc.tools import derivatives, expansions, files, inputs, limits, otherwise, rules
from mlc.tools.outcome import FAILURES, Outcome

if TYPE_CHECKING:
    from mlc.backends.target import Target

Array = np.ndarray[Any, Any]

RANGES = {"float16": (64.0, 0.02), "bfloat16": (1e17, 1e-17), "float32": (1e17, 1e-17), "float64": (1e150, 1e-150)}
"""Range of absolute values in which a number, its square and its reciprocal are far from overflow and underflow."""
PATIENCE = 3
"""Limit on the number of operations on special values, relative to that on the program's own arguments."""
WORK, FEWEST, ELEMENTS = 3000, 8, 4096
"""Limit on the work (operations times elements) of the rounds of special values; if it is less than the fewest rounds
take, there is a single round with all numbers."""

_SEEN = set[Hashable]()
"""The elementwise operations that have been checked by themselves in this process."""
DECIDE = {"fuse": "keeps operations apart", "bufferize": "lets no two values share memory"}
"""Passes whose choices constrain later passes, and how they behave without these choices."""


class Check:
    """One entry of one module on one set of arrays, through any number of passes.

    exact   results agree to the bit from here on
    say     callback for progress messages, one per pass
    keep    whether to write a reproducer for a failure
    limit   limit on the number of interpreted operations
    odd     whether the arguments are special values: near the limits of a float type a formula may overflow, so only
            passes with exact results are compared
    taken   number of operations of the last interpretation
    """

    def __init__(self, module: Op, entry: str, arrays: Sequence[Any], exact: bool = False,
                 say: Callable[[str], None] = lambda text: None, keep: bool = True, limit: int = MAX_STEPS,
                 odd: bool = False) -> None:
        self.odd = odd
        self.taken = 0
        self.module = module
        self.entry = entry
        self.arrays = [np.array(a) for a in arrays]
        self.types = inputs.entries(module)[entry].inputs
        self.exact = exact or pipeline.stage(module) > _row("fix_numerics")
        self.say = say
        self.keep = keep
        self.number = 0                          # of the pass being checked, in its pipeline
        self.form: Form | None = None
        self.before: Op = module                 # the input of the pass being checked
        self.deciders: dict[str, tuple[int, Op]] = {}
        """The passes whose decisions others have to live with: their number, and the module as they were given it."""
        try:
            self.outcome = self.found = self.interpret(module, limit)
        except IRError as error:
            if error.code == "MLC0121" or not derivatives.are_taken(module):
                raise
            raise InternalError(f"pass grad fails on @{entry}: {error.message}", code="MLC0660",
                                loc=error.loc) from error

    def interpret(self, module: Op, limit: int = MAX_STEPS) -> Outcome:
        """Outcome of interpreting the entry of a module on the arrays."""
        interpreter = Interpreter(module, limit=limit)
        try:
            results = interpreter.run(self.entry, [a.copy() for a in self.arrays])
            return Outcome([np.asarray(r) for r in results])
        except UserError as error:
            return Outcome(error=error)
        finally:
            self.taken = interpreter.steps

    def run(self, steps: Sequence[Step]) -> None:
        """Run passes, checking each; InternalError at the first that changes the results of the entry.

        IRError where the module has not the form that the first of them takes.
        """
        if (form := Pipeline(steps).takes) is not None:
            form.check(self.module)
        key, before = operation_key(self.module), self.module.clone()
        for self.number, step in enumerate(steps, 1):
            self.before, name = before, step.transform.name
            if name in DECIDE:
                self.deciders[name] = self.number, before
            if name == "grad" and not self.odd:
                self.differentiate()
            if name in expansions.PASSES and not self.odd:
                self.expand(step)
            firings = rules.Firings(self.numbers())
            try:
                with rewrite.watched(firings):
                    step.apply(self.module, self.number)
                changed = key != (key := operation_key(self.module))
                broken = self.wrong(self.module, step.transform.gives or self.form, changed)
            except UserError:                              # the program's error, which this pass is the first to detect
                raise
            except FAILURES as error:
                if isinstance(error, IRError) and (decider := self.decider("fuse", steps)) is not None:
                    raise decider from error
                raise self._failed(step, before, error) from error
            if firings.wrong is not None:
                raise self._wrong_rule(step, before, firings)
            if broken is not None:
                raise self.decider("bufferize", steps, broken) or self._guilty(step, before, broken)
            self.form = step.transform.gives or self.form
            self.say(f"  {step}: same" + (" to the bit" if self.exact else " within the tolerance"))
            self.exact = self.exact or name == "fix_numerics"
            if changed:
                self.outcome, before = self.found, self.module.clone()

    def _try(self, step: Step, module: Op, **more: Any) -> str | None:
        """Run a pass on `module`; what is wrong with what it made of it, if anything is."""
        step.apply(module, self.number, **more)
        return self.wrong(module, step.transform.gives or self.form)

    def numbers(self) -> dict[str, int]:
        """Values of the entry's size symbols for these arrays."""
        numbers: dict[str, int] = {}
        try:
            bind_sizes(self.types, self.arrays, numbers)
        except UserError:
            return {}
        return numbers

    def differentiate(self) -> None:
        """InternalError if a derivative in the module disagrees with finite differences."""
        if (found := derivatives.mistake(self.module, self.entry, self.arrays)) is not None:
            message, loc = found
            raise self.leave(InternalError(f"pass grad: {message}", code="MLC0662", loc=loc), self.module, "grad",
                             "mlc-wrong-grad.mlir")

    def expand(self, step: Step) -> None:
        """InternalError if a pass expands an operation to one with other semantics."""
        if (found := expansions.mistake(self.module, step, self.numbers())) is not None:
            message, loc = found
            name = step.transform.name
            raise self.leave(InternalError(f"pass {name}: {message}", code="MLC0663", loc=loc), self.module, str(step),
                             f"mlc-wrong-{name}.mlir")

    def decider(self, name: str, steps: Sequence[Step], broken: str = "") -> InternalError | None:
        """The error of an earlier pass, if the current one succeeds when that one makes no choices: no two values in
        one buffer, no two operations in one kernel."""
        number, given = self.deciders.get(name, (0, self.before))
        if not 0 < number < self.number:
            return None
        module, usual, outcome, found = given.clone(), given.clone(), self.outcome, self.found
        try:
            steps[number - 1].apply(usual, number)
            with changes.chosen(changes.Choice(())):
                steps[number - 1].apply(module, number)
            if nameless_text(module) == nameless_text(usual):
                return None                                # the earlier pass makes no choice
            for k, step in enumerate(steps[number: self.number], number + 1):
                step.apply(module, k)
            if self.wrong(module, step.transform.gives or self.form) is not None:
                return None
        except (Error, *FAILURES):
            return None
        finally:
            self.outcome, self.found = outcome, found
        what = f"changes the answer of @{self.entry}: {broken}" if broken else f"is wrong on @{self.entry}"
        error = InternalError(f"pass {name} {what}", code="MLC0901", notes=(
            f"it shows after {step.transform.name}, which goes right where {name} {DECIDE[name]}",))
        return self.leave(error, given, ",".join(map(str, steps[number - 1: self.number])), f"mlc-wrong-{name}.mlir")

    def _failed(self, step: Step, before: Op, error: Exception) -> InternalError:
        """The error of a pass that raises an exception."""
        message = error.message if isinstance(error, Error) else str(error)
        wrong = InternalError(f"pass {step.transform.name} fails on @{self.entry}: {type(error).__name__}: {message}",
                              code="MLC0660", loc=getattr(error, "loc", UNKNOWN),
                              notes=tuple(getattr(error, "__notes__", ())))
        return self.leave(wrong, before, str(step), f"mlc-wrong-{step.transform.name}.mlir")

    def _wrong_rule(self, step: Step, before: Op, firings: rules.Firings) -> InternalError:
        """The error of a rewrite whose two sides differ, even if the results of the program do not."""
        assert firings.wrong is not None
        name, number, message = firings.wrong
        error = InternalError(f"pass {step.transform.name} changes the answer of @{self.entry}: {message} where an "
                              "operation is rewritten", code="MLC0661",
                              notes=(f"rule {name} does it: firing {number} of a rule in this pass",))
        return self.leave(error, before, str(_limited(step, number)), f"mlc-wrong-{step.transform.name}.mlir")

    def wrong(self, module: Op, form: Form | None = None, changed: bool = True) -> str | None:
        """Describe how a module differs from the expected outcome; None if it does not. One that has not changed means
        what it meant."""
        try:
            verify(module)
            if form is not None:
                form.check(module)
        except IRError as error:
            return f"ill-formed: {error.message} [{error.code}]"
        return self.differs(module) if changed else None

    def differs(self, module: Op) -> str | None:
        """Where what a module gives differs from what it should."""
        try:
            self.found = self.interpret(module)
            if self.odd and self.outcome.error is not None:
                return None                                # which error is met first, or none at all, a pass may choose
            found = self.found.difference(self.outcome, self.exact, self._slack)
            return None if found and not self.exact and self.is_unspecified() else found
        except IRError as error:
            return f"ill-formed: {error.message} [{error.code}]"
        except FAILURES as error:
            return f"not interpretable: {type(error).__name__}: {error}"

    def is_unspecified(self) -> bool:
        """Whether another formula may give other numbers: an operation that needs finite ones has others or, of special
        values, some leave the range."""
        return self._meets(has_others) or (self.odd and self.leaves_the_range())

    def leaves_the_range(self) -> bool:
        """Whether numbers come so near to the greatest or the least that a formula of theirs may overflow."""
        return self._meets(_is_extreme)

    def _meets(self, found: Callable[[Op, Array], bool]) -> bool:
        """Whether this holds of an argument or of a result of an operation."""
        given, met = [np.array(a) for a in self.arrays], False

        def watch(op: Op, results: Sequence[Any]) -> None:
            nonlocal met
            met = met or any(isinstance(x, np.ndarray) and x.dtype.name in RANGES and found(op, x) for x in results)

        watch(self.before, given)
        run_function(self.before, self.entry, given, watch)
        return met

    def _slack(self) -> list[Array]:
        """Bound on the effect of rounding on the results of the pass's input.

        This is asked for where something differs, so it is worth many trials: of a step of Adam along a gradient that
        is rounding alone, one trial in two has the other sign. Of other numbers than the program's own, a result of
        which not one digit is certain is any number.
        """
        slack = rounding.spread(self.before, self.entry, self.arrays, self.outcome.results, rounding.MANY)
        return [np.where((s > 0) & (s >= np.abs(r.astype(np.float64))), np.inf, s) if self.odd else s
                for s, r in zip(slack, map(in_parts, self.outcome.results))]

    def _guilty(self, step: Step, before: Op, broken: str) -> InternalError:
        """The error that names the pass, the rule if there is one, and the command that reproduces it."""
        rule = guilty_rule(before, step, self._try, self.number)
        notes = ["the arguments are others than the program's: zeros of both signs, equal numbers, limits of types"
                 ] if self.odd else []
        if rule is not None:
            number, total, name = rule
            notes.append(f"rule {name} does it: firing {number} of the {total} of all rules in this pass")
            step = _limited(step, number)
        error = InternalError(f"pass {step.transform.name} changes the answer of @{self.entry}: {broken}",
                              code="MLC0901", notes=tuple(notes))
        return self.leave(error, before, str(step), f"mlc-wrong-{step.transform.name}.mlir")

    def leave(self, error: InternalError, before: Op, steps: str, name: str) -> InternalError:
        """Write a reproducer for `error`, and add its command to the error."""
        if not self.keep:
            return error
        path = files.scratch_file(name)
        text = inputs.reproducer(to_text(before, locations=True), steps, self.entry, self.arrays, self.types,
                                 self.exact)
        try:
            files.write(str(path), text)
        except UserError as problem:                       # the finding is worth more
            error.notes = (*error.notes, f"no file replays it: {problem.message}")
            return error
        error.reproducer = f"mlc run {path} --check{allowances(parse_pipeline(steps))}"
        error.hint = f"replay it with: {error.reproducer}"
        return error

    def native(self, target: Target | None = None) -> list[Array]:
        """Run the module, which is at the llvm level, as native code; it gives the interpreter's bits.

        Also with 1 and 2 threads, in memory with red zones, and beside pages that may not be read: InternalError names
        the way that differs, or in which the code ends the process.
        """
        from mlc.tools.native import wrong_natively
        if (found := wrong_natively(self.module, [self], target)) is not None:
            raise self.wrong_native(found[1])
        self.say("  native code: same to the bit, with 1 and 2 threads, within its memory")
        if self.outcome.error is not None:
            raise self.outcome.error
        return self.outcome.results

    def wrong_native(self, message: str) -> InternalError:
        """The error of native code; `message` says how it was run, and how it failed."""
        from mlc.tools.native import DIES, HANGS
        code = "MLC0905" if any(word in message for word in (DIES, HANGS)) else "MLC0902"
        return self.leave(InternalError(f"native code of @{self.entry}{message}", code=code), self.module, "",
                          "mlc-wrong-native.mlir")


def _limited(step: Step, number: int) -> Step:
    """A pass that stops after a number of rewrites, if it supports that."""
    if "limit" not in inspect.signature(step.transform.run).parameters:
        return step
    return Step(step.transform, (*(o for o in step.options if o[0] != "limit"), ("limit", number)))


def guilty_rule(before: Op, step: Step, attempt: Callable[..., str | None],
                number: int = 0) -> tuple[int, int, str] | None:
    """(firing, number of firings, `pass/rule@place`) of the first rewrite that makes a pass wrong, by bisection.

    None where the pass applies no rules, or is wrong without any.
    """
    if "limit" not in inspect.signature(step.transform.run).parameters:
        return None
    counters = step.apply(before.clone(), number)
    if not isinstance(counters, Counters) or counters.total == 0 or attempt(step, before.clone(), limit=0):
        return None
    good, bad = 0, counters.total
    while bad - good > 1:
        middle = (good + bad) // 2
        if attempt(step, before.clone(), limit=middle):
            bad = middle
        else:
            good = middle
    log = step.apply(before.clone(), number, limit=bad).log
    return bad, counters.total, log[-1].split("/", 1)[1].replace("@", " at ", 1)


def check(module: Op, entry: str, arrays: Sequence[Any], steps: Sequence[Step] | None = None, exact: bool = False,
          native: bool = True, say: Callable[[str], None] = lambda text: None, keep: bool = True) -> list[Array]:
    """Check `steps` and then, if `native`, the rest of the way to native code; the results of the entry.

    `module` is taken down with it. An error that the entry raises by itself is raised.
    """
    run = Check(module, entry, arrays, exact, say, keep)
    run.run(steps or ())
    if native:
        from mlc.backends.cpu.targets import host
        before, exact, taken = module.clone(), run.exact, run.taken
        run.run(pipeline.remaining(module, "llvm", host().machine))
        results = run.native()
        check_otherwise(before, entry, arrays, exact, taken, keep)
        if not exact and (found := limits.at_limits(before, _SEEN)) is not None:
            check_otherwise(found[0], "main", found[1], False, taken, keep, own=False)
        say("  a second lowering, with other numbers: the same")
        return results
    if run.outcome.error is not None:
        raise run.outcome.error
    return run.outcome.results


def check_otherwise(module: Op, entry: str, arrays: Sequence[Any], exact: bool, taken: int, keep: bool,
                    own: bool = True) -> None:
    """Check a second lowering of a module, on other numbers: where these are fixed, where schedules stand, and native
    code. Where one of these is wrong, every pass is checked on those numbers, to name it.

    taken  number of interpreted operations on the module's own arguments
    own    whether the arguments are the program's; otherwise they are special ones themselves
    """
    from mlc.tools.native import wrong_natively
    if not (steps := otherwise.other_steps(module)):
        return
    limit = taken * PATIENCE + 1000
    levels = list[Op]()
    low = module.clone()
    try:
        for number, step in enumerate(steps, 1):
            step.apply(low, number)
            if step.transform.name in ("fix_numerics", otherwise.SCHEDULED):
                levels.append(low.clone())
    except UserError:                                      # the program's own, and its meaning
        return
    except FAILURES:
        Check(module.clone(), entry, arrays, exact, keep=keep).run(steps)
        raise
    runs = list[Check]()

    def checked(given: Sequence[Any], module: Op = module) -> Check:
        return Check(module, entry, given, exact, keep=keep, limit=limit, odd=given is not arrays or not own)

    work = taken * (1 + sum(np.size(a) for a in arrays) // ELEMENTS)
    for given in (*(otherwise.rounds(arrays, FEWEST * work > WORK) if own else ()), arrays):
        if given is not arrays and (len(runs) + 1) * work > WORK and runs:
            continue
        try:
            run = checked(given)
        except (IRError, MemoryError):                     # it may go on for ever, or be a size
            continue
        for level in levels[: None if not runs else -1]:   # where schedules stand, once: it takes the longest
            if run.differs(level) is not None:
                checked(given, module.clone()).run(steps)
            run.outcome, run.exact = run.found, True
        if run.outcome.error is None or given is arrays:   # of several errors each level may meet another one first
            runs.append(run)
    if (found := wrong_natively(low, runs, otherwise.narrow_target())) is not None:
        number, message = found
        run = runs[number]
        checked(run.arrays if run.odd else arrays, module.clone()).run(steps)
        run.module = low
        raise run.wrong_native(message)


def has_others(op: Op, x: Array) -> bool:
    """Whether a result of an operation that needs finite numbers has others."""
    return isinstance(op, Composite) and op.needs_finite and not np.isfinite(x.astype(np.float64)).all()


def _is_extreme(op: Op, x: Array) -> bool:
    greatest, least = RANGES[x.dtype.name]
    size = np.abs(x.astype(np.float64))
    return bool(np.any(np.isfinite(size) & (size > greatest) | (size > 0) & (size < least)))


def _row(name: str) -> int:
    return [text.split("{")[0] for _, text, _ in pipeline.ORDER].index(name)
