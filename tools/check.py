"""Check a compilation by execution: interpret after every pass, compare, and name the pass and rule that is to blame.

Above fix_numerics a pass may round differently, within what rounding can do; from there on results agree to the bit,
down to native code, which runs with 1 and 2 threads in memory with red zones. Each pass is compared with what it was
given, so small differences do not add up to a false alarm. All of it is lowered a second time, for narrower vectors and
with every kernel shared out among threads however small it is, as other hardware and sizes would choose, and for other
numbers: many of the arguments' are zeros of both signs, infinite, NaN, or equal.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc import rounding
from mlc.ir import rewrite
from mlc.ir.core import Op
from mlc.ir.diag import UNKNOWN, BackendError, Error, InternalError, IRError, UserError
from mlc.ir.interp import MAX_STEPS, bind_sizes, run_function
from mlc.ir.passes import Form, Pipeline, Step, allowances, parse_pipeline
from mlc.ir.printer import to_text
from mlc.ir.rewrite import Counters
from mlc.ir.verify import verify
from mlc.passes import pipeline
from mlc.tools import derivatives, files, inputs, rules

if TYPE_CHECKING:
    from mlc.backends.executable import Entry
    from mlc.backends.target import Target

Array = np.ndarray[Any, Any]

TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
"""Relative and absolute, by dtype; everything else agrees exactly. See rounding.py for what passes them."""


RANGES = {"float16": (64.0, 0.02), "bfloat16": (1e17, 1e-17), "float32": (1e17, 1e-17), "float64": (1e150, 1e-150)}
"""Absolute values between which a number, its square and its reciprocal are far from overflow and underflow."""
PECULIAR = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 100.0, -200.0, 0.5, 2.5, -3.0, 1e4)
"""Numbers that some formula of some function has trouble with."""
PATIENCE = 3
"""With such numbers a program may take so many times as many operations as with its own."""
SCHEDULED = "parallelize"
"""The pass after which kernels have their schedules: nothing below chooses."""

FAILURES = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, NotImplementedError, AssertionError,
            IRError, BackendError)
"""What a pass that is wrong, or the interpreter on what it made, may end with. A UserError is one of these, too."""


@dataclass
class Outcome:
    """What a call gives: arrays, or the error that it raises."""

    results: list[Array] = field(default_factory=list)
    error: UserError | None = None

    def difference(self, other: Outcome, exact: bool, slack: Callable[[], Sequence[Array]] | None = None) -> str | None:
        """None if this agrees with the `other`, else where it does not.

        slack  how far each element may be off, asked for where the tolerance is passed
        """
        if self.error is not None or other.error is not None:
            mine, theirs = (e.message if e is not None else "results" for e in (self.error, other.error))
            return None if type(self.error) is type(other.error) else f"{mine} in place of {theirs}"
        if len(self.results) != len(other.results):
            return f"{len(self.results)} results in place of {len(other.results)}"
        pairs = list(zip(self.results, other.results))
        if all(difference(got, want, exact) is None for got, want in pairs):
            return None
        allowed: Sequence[Array | float] = slack() if slack is not None and not exact else [0.0] * len(pairs)
        for i, ((got, want), more) in enumerate(zip(pairs, allowed)):
            if message := difference(got, want, exact, more):
                return f"result {i} is {message}"
        return None


def difference(got: Array, want: Array, exact: bool, slack: Array | float = 0.0) -> str | None:
    """None if two arrays agree, else where they do not. NaNs are alike; exactly, the two zeros differ."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} in place of {want.dtype}{list(want.shape)}"
    if got.dtype.name not in TOLERANCES:
        same = got == want
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        both_nan = np.isnan(a) & np.isnan(b)
        with np.errstate(all="ignore"):
            if exact:
                same = (a == b) & (np.signbit(a) == np.signbit(b)) | both_nan
            else:
                rtol, atol = TOLERANCES[got.dtype.name]
                close = np.isclose(a, b, rtol=rtol, atol=atol)
                close &= (a != 0) | (b != 0) | (np.signbit(a) == np.signbit(b))      # a zero has the sign it had
                same = close | both_nan | ((np.abs(a - b) <= slack) & (np.asarray(slack) > 0))
    if np.all(same):
        return None
    at = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
    return f"{got[at]} in place of {want[at]} at {list(at)} ({int((~same).sum())} of {same.size} differ)"


class Check:
    """One entry of one module on one set of arrays, through any number of passes.

    exact   results agree to the bit from here on
    say     is told, pass by pass, what has been found
    keep    leave a file that replays what goes wrong
    limit   how many operations its meaning may take, and whether numbers may be near the ends of what floats hold: then
            only what passes with exact results give is compared where they are
    """

    def __init__(self, module: Op, entry: str, arrays: Sequence[Any], exact: bool = False,
                 say: Callable[[str], None] = lambda text: None, keep: bool = True, limit: int | None = None) -> None:
        self.limit = limit
        self.module = module
        self.entry = entry
        self.arrays = [np.array(a) for a in arrays]
        self.types = inputs.entries(module)[entry].inputs
        self.exact = exact or pipeline.stage(module) > _row("fix_numerics")
        self.say = say
        self.keep = keep
        self.number = 0                          # of the pass that is being checked, in its pipeline
        self.form: Form | None = None
        self.before: Op = module                 # as it was given to the pass that is being checked
        self.outcome = self.found = self.interpret(module, limit or MAX_STEPS)

    def interpret(self, module: Op, limit: int = MAX_STEPS) -> Outcome:
        """What the entry of a module means on the arrays."""
        try:
            results = run_function(module, self.entry, [a.copy() for a in self.arrays], limit=limit)
            return Outcome([np.asarray(r) for r in results])
        except UserError as error:
            return Outcome(error=error)

    def run(self, steps: Sequence[Step], only: Sequence[str] | None = None) -> None:
        """Run passes, each checked; InternalError at the first that changes what the entry means.

        IRError where the module has not the form that the first of them takes.

        only  names of the passes after which results are compared
        """
        if (form := Pipeline(steps).takes) is not None:
            form.check(self.module)
        if only is not None:
            self.before = self.module.clone()
        for self.number, step in enumerate(steps, 1):
            if only is not None and step.transform.name not in only:
                step.apply(self.module, self.number)
                self.form = step.transform.gives or self.form
                self.exact = self.exact or step.transform.name == "fix_numerics"
                continue
            before = self.module.clone()
            self.before = before if only is None else self.before
            if step.transform.name == "grad" and self.limit is None:
                self.differentiate()
            firings = rules.Firings(self.numbers())
            try:
                with rewrite.watched(firings):
                    broken = self._try(step, self.module)
            except UserError:                              # the program's own, which this pass is the first to see
                raise
            except FAILURES as error:
                raise self._failed(step, before, error) from error
            if firings.wrong is not None:
                raise self._wrong_rule(step, before, firings)
            if broken is not None:
                raise self._guilty(step, before, broken)
            self.form = step.transform.gives or self.form
            self.say(f"  {step}: same" + (" to the bit" if self.exact else " within the tolerance"))
            self.exact = self.exact or step.transform.name == "fix_numerics"
            self.outcome = self.found
            if only is not None:
                self.before = self.module.clone()

    def _try(self, step: Step, module: Op, **more: Any) -> str | None:
        """Run a pass on `module`; what is wrong with what it made of it, if anything is."""
        step.apply(module, self.number, **more)
        return self.wrong(module, step.transform.gives or self.form)

    def numbers(self) -> dict[str, int]:
        """What the size symbols of the entry stand for."""
        numbers: dict[str, int] = {}
        try:
            bind_sizes(self.types, self.arrays, numbers)
        except UserError:
            return {}
        return numbers

    def differentiate(self) -> None:
        """InternalError where a derivative that the module takes is not what differences give."""
        if (found := derivatives.mistake(self.module, self.entry, self.arrays)) is not None:
            message, loc = found
            raise self.leave(InternalError(f"pass grad: {message}", code="MLC0662", loc=loc), self.module, "grad",
                             "mlc-wrong-grad.mlir")

    def _failed(self, step: Step, before: Op, error: Exception) -> InternalError:
        """The error of a pass that does not come to an end."""
        message = error.message if isinstance(error, Error) else str(error)
        wrong = InternalError(f"pass {step.transform.name} fails on @{self.entry}: {type(error).__name__}: {message}",
                              code="MLC0660", loc=getattr(error, "loc", UNKNOWN),
                              notes=tuple(getattr(error, "__notes__", ())))
        return self.leave(wrong, before, str(step), f"mlc-wrong-{step.transform.name}.mlir")

    def _wrong_rule(self, step: Step, before: Op, firings: rules.Firings) -> InternalError:
        """The error of a rewrite whose two sides differ, whether or not the program shows it."""
        assert firings.wrong is not None
        name, number, message = firings.wrong
        error = InternalError(f"pass {step.transform.name} changes the answer of @{self.entry}: {message} where an "
                              "operation is rewritten", code="MLC0661",
                              notes=(f"rule {name} does it: firing {number}",))
        return self.leave(error, before, str(_limited(step, number)), f"mlc-wrong-{step.transform.name}.mlir")

    def wrong(self, module: Op, form: Form | None = None) -> str | None:
        """What is wrong with a module that should mean the same."""
        try:
            verify(module)
            if form is not None:
                form.check(module)
            self.found = self.interpret(module)
            found = self.found.difference(self.outcome, self.exact, self._slack)
            return None if found and self.limit and not self.exact and self.leaves_the_range() else found
        except IRError as error:
            return f"ill-formed: {error.message} [{error.code}]"
        except FAILURES as error:
            return f"not interpretable: {type(error).__name__}: {error}"

    def leaves_the_range(self) -> bool:
        """Whether numbers come so near to the greatest or the least that a formula of theirs may overflow."""
        found = False

        def watch(op: Op, results: Sequence[Any]) -> None:
            nonlocal found
            found = found or any(isinstance(x, np.ndarray) and x.dtype.name in RANGES and _is_extreme(x)
                                 for x in results)

        given = [np.array(a) for a in self.arrays]
        watch(self.before, given)
        run_function(self.before, self.entry, given, watch)
        return found

    def _slack(self) -> list[Array]:
        """How far rounding may move the results of the program that the pass was given."""
        return rounding.spread(self.before, self.entry, self.arrays, self.outcome.results)

    def _guilty(self, step: Step, before: Op, broken: str) -> InternalError:
        """The error that names the pass, the rule if there is one, and the line that replays it."""
        rule = guilty_rule(before, step, self._try, self.number)
        notes = list[str]()
        if rule is not None:
            number, total, name = rule
            notes.append(f"rule {name} does it: firing {number} of {total}")
            step = _limited(step, number)
        error = InternalError(f"pass {step.transform.name} changes the answer of @{self.entry}: {broken}",
                              code="MLC0901", notes=tuple(notes))
        return self.leave(error, before, str(step), f"mlc-wrong-{step.transform.name}.mlir")

    def leave(self, error: InternalError, before: Op, steps: str, name: str) -> InternalError:
        """Write what replays `error`, and say so in it."""
        if not self.keep:
            return error
        path = files.scratch_file(name)
        text = inputs.reproducer(to_text(before, locations=True), steps, self.entry, self.arrays, self.types,
                                 self.exact)
        files.write(str(path), text)
        error.reproducer = f"mlc run {path} --check{allowances(parse_pipeline(steps))}"
        error.hint = f"replay it with: {error.reproducer}"
        return error

    def native(self, target: Target | None = None) -> list[Array]:
        """Run the module, which is at the llvm level, as native code; it gives the interpreter's bits.

        Also with 1 and 2 threads, in memory with red zones: InternalError names the way that differs.
        """
        from mlc.backends.executable import build
        from mlc.backends.target import host
        plain = target is None
        target = target or host()
        entry = build(self.module, target).entry(self.entry)
        found = self.outcome
        if plain:
            found, _ = self._run_native(entry, None)
            self._compare_native(found, "")
        for count in (1, 2):
            again, damage = self._run_native(entry, count)
            where = f" with {target.vector_bits}-bit vectors and {count} thread{'s' * (count > 1)}"
            self._compare_native(again, where, damage)
        self.say(f"  native code: same to the bit, with 1 and 2 threads, for {target.vector_bits}-bit vectors, within "
                 "its memory")
        if found.error is not None:
            raise found.error
        return found.results

    def _run_native(self, entry: Entry, count: int | None) -> tuple[Outcome, str | None]:
        """What a call gives; with so many threads, in memory with red zones, and what it did to those."""
        from mlc.backends.cpu import threads
        from mlc.tools.redzones import FencedEntry, Memory
        fenced = None if count is None else FencedEntry(entry, Memory())
        before = threads.get_num_threads()
        threads.set_num_threads(before if count is None else count)
        out = Outcome()
        try:
            out.results = (fenced or entry).call([a.copy() for a in self.arrays])
        except UserError as error:
            out.error = error
        finally:
            threads.set_num_threads(before)
        return out, fenced.damage if fenced is not None else None

    def _compare_native(self, found: Outcome, where: str, damage: str | None = None) -> None:
        broken = found.difference(self.outcome, True)
        if broken or damage:
            message = (f"differs from its meaning: {broken}" if broken else f"leaves its memory: {damage}")
            wrong = InternalError(f"native code of @{self.entry}{where} {message}", code="MLC0902")
            raise self.leave(wrong, self.module, "", "mlc-wrong-native.mlir")


def narrow_target() -> Target:
    """A machine with narrower vectors than this one, whose code runs here; or this one."""
    from mlc.backends.target import LEVELS, host
    return next((t for t in LEVELS.values() if host().runs(t) and t.vector_bits < host().vector_bits), host())


def other_steps(module: Op) -> list[Step]:
    """The passes from where a module stands to the llvm level, as they would be for narrower vectors and more work.

    There are none where the module has its schedules already.
    """
    steps = pipeline.remaining(module, "llvm", narrow_target().vector_bits)
    if not any(step.transform.name == SCHEDULED for step in steps):
        return []
    return [Step(s.transform, (("worth", 1),)) if s.transform.name == SCHEDULED else s for s in steps]


def _limited(step: Step, number: int) -> Step:
    """A pass that stops after so many rewrites, where it can."""
    if "limit" not in inspect.signature(step.transform.run).parameters:
        return step
    return Step(step.transform, (*(o for o in step.options if o[0] != "limit"), ("limit", number)))


def guilty_rule(before: Op, step: Step, attempt: Callable[..., str | None],
                number: int = 0) -> tuple[int, int, str] | None:
    """(firing, of how many, `pass/rule@place`) of the rewrite with which a pass first goes wrong, found by bisection.

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
        from mlc.backends.target import host
        before, exact = module.clone(), run.exact
        run.run(pipeline.remaining(module, "llvm", host().vector_bits))
        results = run.native()
        check_otherwise(before, entry, arrays, exact, say, keep)
        return results
    if run.outcome.error is not None:
        raise run.outcome.error
    return run.outcome.results


def check_otherwise(module: Op, entry: str, arrays: Sequence[Any], exact: bool, say: Callable[[str], None],
                    keep: bool) -> None:
    """Check a second lowering of a module: where schedules stand, and native code; if that is wrong, every pass."""
    if not (steps := other_steps(module)):
        return
    limit = steps_of(module, entry, arrays) * PATIENCE + 1000
    for given in (peculiar(arrays), arrays):
        try:
            run = Check(module.clone(), entry, given, exact, say, keep, limit)
        except IRError:                                    # it may go on for ever: then with its own numbers
            continue
        try:
            run.run(steps, only=("fix_numerics", SCHEDULED))
            run.native(narrow_target())
        except UserError:                                  # the program's own, and its meaning
            continue
        except (InternalError, *FAILURES):
            Check(module, entry, given, exact, keep=keep, limit=limit).run(steps)
            raise
        return


def steps_of(module: Op, entry: str, arrays: Sequence[Any]) -> int:
    """How many operations an entry takes."""
    count = 0

    def watch(op: Op, results: Sequence[Any]) -> None:
        nonlocal count
        count += 1

    try:
        run_function(module, entry, [np.array(a) for a in arrays], watch)
    except UserError:
        pass
    return count


def peculiar(arrays: Sequence[Any]) -> list[Array]:
    """Arguments of which many floats are such that formulas go wrong, or equal to others; integers may be indices."""
    rng = np.random.default_rng(len(arrays))
    out = []
    for x in map(np.array, arrays):
        if x.dtype.name in TOLERANCES and x.size:
            way = rng.random(x.shape)
            with np.errstate(all="ignore"):
                odd = rng.choice(PECULIAR, x.shape).astype(x.dtype)
            x = np.where(way < 0.1, odd, np.where(way < 0.25, rng.permutation(x.reshape(-1)).reshape(x.shape), x))
        out.append(np.asarray(x))
    return out


def _is_extreme(x: Array) -> bool:
    greatest, least = RANGES[x.dtype.name]
    size = np.abs(x.astype(np.float64))
    return bool(np.any(np.isfinite(size) & (size > greatest) | (size > 0) & (size < least)))


def _row(name: str) -> int:
    return [text.split("{")[0] for _, text, _ in pipeline.ORDER].index(name)
