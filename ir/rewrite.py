"""Named rewrite rules and the driver that applies them.

    @rewrite(Mul)
    def mul_by_one(op: Mul) -> Value | None:
        \"\"\"x * 1 == x\"\"\"
        return op.lhs if is_splat(op.rhs, 1) else None

Conventions: the replacement is never more expensive than the original; correctness does not depend on the order of
rules; constants go to the right of commutative operations, and nothing else is commuted; a rule that does not
preserve IEEE results is marked `fast=True` and is off by default. A rule returns the value (or values) that replace
the results of its op, True if it changed the op in place, or None if it does not apply.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mlc.ir import changes
from mlc.ir.core import Op, Value, builder, insertion
from mlc.ir.diag import IRError

MAX_FIRINGS = 100
"""Firings per operation after which the rules are assumed to undo each other without end."""

Outcome = Value | Sequence[Value] | bool | None


@dataclass(eq=False)
class Rule:
    """A rewrite rule for one class of operations, with its statistics in this process."""

    name: str
    target: type[Op]
    apply: Callable[[Any], Outcome]
    fast: bool = False
    tried: int = 0
    fired: int = 0
    seconds: float = 0.0

    @property
    def equation(self) -> str:
        return (self.apply.__doc__ or "").strip().splitlines()[0]


RULES: dict[type[Op], list[Rule]] = {}
"""Rules by the class that they match; a rule for a base class matches its subclasses too."""


def rewrite(*targets: type[Op], fast: bool = False) -> Callable[[Callable[[Any], Outcome]], Callable[[Any], Outcome]]:
    """Register a rule for each class. The function's name is the rule's, its docstring the equation."""
    def register(apply: Callable[[Any], Outcome]) -> Callable[[Any], Outcome]:
        for target in targets:
            RULES.setdefault(target, []).append(Rule(apply.__name__, target, apply, fast))
        return apply
    return register


def rules_for(cls: type[Op], fast: bool = False) -> list[Rule]:
    """The rules of a class and of its bases."""
    return [r for base in cls.__mro__ for r in RULES.get(base, ()) if fast or not r.fast]


Watch = Callable[[Op, Sequence[Value], str, int], None]
_watching: list[Watch] = []


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Call `watch(op, values, rule, firing)` before a rule replaces `op` by `values`; in-place changes are not
    reported."""
    _watching.append(watch)
    try:
        yield
    finally:
        _watching.remove(watch)


@dataclass
class Counters:
    """How often each rule was tried and fired in one run, and a limit (`mlc run --check` bisects with it)."""

    tried: dict[str, int] = field(default_factory=dict)
    fired: dict[str, int] = field(default_factory=dict)
    total: int = 0
    limit: int | None = None
    log: list[str] = field(default_factory=list)

    @property
    def exhausted(self) -> bool:
        return self.limit is not None and self.total >= self.limit


def apply_rules(root: Op, pass_name: str, rules: Callable[[type[Op]], list[Rule]] = rules_for,
                counters: Counters | None = None, simplify: Callable[[Op], Outcome] | None = None) -> Counters:
    """Apply rules inside `root` to a fixed point. `simplify` (constant folding) is tried first on every op."""
    counters = counters if counters is not None else Counters()
    with insertion(None):                        # restores the insertion point, which every attempt sets
        _apply(root, pass_name, rules, counters, simplify)
    return counters


def _apply(root: Op, pass_name: str, rules: Callable[[type[Op]], list[Rule]], counters: Counters,
           simplify: Callable[[Op], Outcome] | None) -> None:
    table: dict[type[Op], list[Rule]] = {}
    work: dict[Op, None] = dict.fromkeys(reversed([op for op in root.walk() if op is not root]))
    patience = 1000 + MAX_FIRINGS * len(work) + counters.total
    while work:
        op, _ = work.popitem()
        if op.parent is None:
            continue
        removable = (op.pure or op.reads) and not op.terminator and not op.regions and op.results
        if removable and all(not r.uses for r in op.results):
            work.update(_definitions(op))
            op.erase()
            continue
        if (candidates := table.get(type(op))) is None:
            candidates = table[type(op)] = rules(type(op))
        if simplify is not None and not counters.exhausted and _fire(op, simplify, pass_name, "fold", counters, work):
            continue
        for rule in candidates:
            if counters.exhausted:
                break
            rule.tried += 1
            started = time.perf_counter()
            done = _fire(op, rule.apply, pass_name, rule.name, counters, work)
            rule.seconds += time.perf_counter() - started
            if done:
                rule.fired += 1
                break
        if counters.total > patience:
            most = max(counters.fired, key=lambda name: counters.fired[name])
            raise IRError(f"{pass_name} does not terminate; the rule that fires most is {most}", code="MLC0142",
                          loc=op.loc)


def _definitions(op: Op) -> dict[Op, None]:
    return dict.fromkeys(v.op for v in op.operands if v.op is not None)


def _fire(op: Op, apply: Callable[[Any], Outcome], pass_name: str, rule: str, counters: Counters,
          work: dict[Op, None]) -> bool:
    """Try one rule on one op; if it fires, add the affected operations to the work-list."""
    chosen, key, before = changes.current(), "", ""
    if chosen is not None:
        key = chosen.key(rule, op)
        if not chosen.choice.allows(key):
            return False
        before = chosen.text(key, (op,))
        chosen.started(key, rule, op)
    counters.tried[rule] = counters.tried.get(rule, 0) + 1
    previous = op.prev
    builder.block, builder.before, builder.loc = op.parent, op, op.loc
    try:
        outcome = apply(op)
    except Exception as error:
        error.add_note(f"rule {rule} fails at {op.loc}")
        if chosen is not None:
            chosen.started(key, rule, op, failed=True)
        raise
    if outcome is None or outcome is False:
        return False
    counters.fired[rule] = counters.fired.get(rule, 0) + 1
    counters.total += 1
    counters.log.append(f"{pass_name}/{rule}@{op.loc}")
    users = [u for r in op.results for u in r.users]
    inserted = _between(previous, op)
    for new in inserted:
        for inner in new.walk():
            inner.loc = inner.loc.through(f"{pass_name}/{rule}")
    values = () if outcome is True else (outcome,) if isinstance(outcome, Value) else tuple(outcome)
    if chosen is not None:
        chosen.fired(key, rule, op, before, inserted, values)
    if outcome is True:
        work[op] = None
    else:
        sources = _definitions(op)
        for watch in _watching:
            watch(op, values, rule, counters.total)
        op.replace_by(*values)
        work.update(dict.fromkeys(s for s in sources if s.parent is not None))
    work.update(dict.fromkeys(users))
    work.update(dict.fromkeys(inserted))
    return True


def _between(previous: Op | None, op: Op) -> list[Op]:
    """The operations that a rule inserted before `op`."""
    out = []
    current = op.prev
    while current is not None and current is not previous:
        out.append(current)
        current = current.prev
    return out
