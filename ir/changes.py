"""Which optional changes passes make, one by one: what `mlc bisect` searches, and a way round a wrong one.

A change is one firing of a rewrite rule, one decision of a pass (two kernels fused, a result written in place, a loop
shared out), or the run of a pass that keeps the form and does not ask about parts. What a lowering has to do is none.
Before each the pass asks `allowed`; the answer is yes, and costs nothing, unless the environment says otherwise:

    MLC_CHANGES=none               what has to be done, and nothing else
    MLC_CHANGES=1f0c22ab9d,...     these changes, and no others
    MLC_CHANGES=-1f0c22ab9d,...    all but these
    MLC_CHANGES=@FILE              what the file says, separated by commas or spaces
    MLC_CHANGES_LOG=FILE           where a line of JSON is added for each change that is made

A key says the module, the pass, the rule, and the operation: by the number of the one it comes from in the module as it
was given. So it means the same whatever other changes are made, and in each place where a pipeline has the pass. For
that the locations of a module carry numbers from its first pass on (`Loc.via`), as long as changes are chosen.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from mlc.ir.core import BlockArg, Op, OpResult, Value
from mlc.ir.diag import UserError
from mlc.ir.files import append_line
from mlc.ir.printer import nameless_text, op_line

VARIABLE, LOG = "MLC_CHANGES", "MLC_CHANGES_LOG"
FEW = 64
"""Of so many changes at most a log also says what they did."""
_KEY = re.compile(r"-?[0-9a-f]{10}")
_MARK = "#"


@dataclass(frozen=True)
class Change:
    """One change that was made.

    step    the pass, after its place in the pipeline: `04 canonicalize`
    rule    of the pass; "" for the pass as a whole
    before  the operation, and what came of it, or what else it is about: for people, and only where few are allowed
    """

    key: str
    step: str
    rule: str
    op: str
    loc: str
    before: str = ""
    after: str = ""
    beside: str = ""


class Choice:
    """Which changes are made, and a record of them.

    only     no others than these; None: all
    without  none of these
    log      where a line is added for each
    explain  those of which the record says what they did, which takes time; None: all, if these are few
    tried    whether rules that are tried are recorded as if they fired: for one in which the process ends
    """

    def __init__(self, only: Iterable[str] | None = None, without: Iterable[str] = (), log: str | None = None,
                 explain: Iterable[str] | None = None, tried: bool = False) -> None:
        self.only = frozenset(only) if only is not None else None
        self.without = frozenset(without)
        self.log = log
        few = self.only if self.only is not None and len(self.only) <= FEW else ()
        self.explain = frozenset(few if explain is None else explain)
        self.tried = tried
        self.made: dict[str, Change] = {}

    def allows(self, key: str) -> bool:
        return (self.only is None or key in self.only) and key not in self.without

    def record(self, change: Change) -> None:
        if change.key in self.made:
            return
        self.made[change.key] = change
        if self.log is None:
            return
        try:
            append_line(self.log, json.dumps(asdict(change)))
        except OSError as error:
            raise UserError(f"{LOG}: cannot write {self.log}: {error.strerror}", code="MLC0680",
                            hint="give a file that can be written, and not a link") from None


def parse(text: str, log: str | None = None) -> Choice:
    """The choice that a value of MLC_CHANGES stands for.

    >>> parse("-1f0c22ab9d").allows("1f0c22ab9d"), parse("none").allows("1f0c22ab9d")
    (False, False)
    """
    if text.startswith("@"):
        try:
            with open(text[1:], encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise UserError(f"{VARIABLE}: cannot read {text[1:]}: {error.strerror}", code="MLC0680",
                            hint="@FILE names a file of keys") from None
    words = text.replace(",", " ").split()
    if words in ([], ["all"]):
        return Choice(None, log=log)
    if words == ["none"]:
        return Choice((), log=log)
    if wrong := next((w for w in words if not _KEY.fullmatch(w)), None):
        raise UserError(f"{VARIABLE}: {wrong!r} is no key of a change", code="MLC0680",
                        hint="write all, none, KEY,KEY,..., -KEY,-KEY,... or @FILE; mlc bisect prints keys")
    left_out = [w[1:] for w in words if w.startswith("-")]
    if len(left_out) not in (0, len(words)):
        raise UserError(f"{VARIABLE} both names changes to make and, by -KEY, some to leave out", code="MLC0680",
                        hint="keys without - leave out all others already")
    return Choice(None, left_out, log) if left_out else Choice(words, log=log)


class _Chosen:
    """The choice of this process: that of the environment, unless `chosen` gives another."""

    choice: Choice | None = None
    read = False


class _Here(threading.local):
    """The pass that runs in this thread, where changes are chosen."""

    run: Run | None = None


_here = _Here()


def choice() -> Choice | None:
    """Which changes are chosen; None where nobody chooses, and all are made."""
    if not _Chosen.read:
        text, log = os.environ.get(VARIABLE), os.environ.get(LOG)
        _Chosen.choice = parse(text or "all", log) if text or log else None
        _Chosen.read = True
    return _Chosen.choice


@contextmanager
def chosen(made: Choice | None) -> Iterator[None]:
    """Within, this choice is the process's."""
    before, read = _Chosen.choice, _Chosen.read
    _Chosen.choice, _Chosen.read = made, True
    try:
        yield
    finally:
        _Chosen.choice, _Chosen.read = before, read


def current() -> Run | None:
    """The pass that runs in this thread, to ask about many changes; None where all are allowed."""
    return _here.run


def allowed(rule: str, op: Op, *others: Op | Value) -> bool:
    """Whether the pass that runs may make a change that it is ready to make: `rule` on `op`, given the `others`."""
    run = _here.run
    return run is None or run.asked(rule, op, others)


class Run:
    """One pass on one module: names its operations, so that keys can be made of them."""

    def __init__(self, choice: Choice, step: str, module: Op) -> None:
        self.choice = choice
        self.step = step
        self.module = _marked(module)
        self.names: dict[Op, str] = {}
        self.counts: dict[str, int] = {}
        for op in module.walk():
            self.name(op)

    def name(self, op: Op) -> str:
        """Identifier of an operation: its origin, its class, and its number among the operations of both."""
        if (known := self.names.get(op)) is None:
            base = "".join(n for n in op.loc.via if n.startswith(_MARK)) + " " + op.name
            self.counts[base] = number = self.counts.get(base, -1) + 1
            known = self.names[op] = f"{base} {number}"
        return known

    def key(self, rule: str, op: Op, others: Sequence[Op | Value] = ()) -> str:
        about = [self.module, self.step.partition(" ")[2], rule, self.name(op),
                 *(self.name(o) if isinstance(o, Op) else self.value(o) for o in others)]
        return hashlib.sha256("\n".join(about).encode()).hexdigest()[:10]

    def value(self, value: Value) -> str:
        """The same of a value: what it is of which operation."""
        owner = value.op if value.op is not None else value.block.parent_op  # type: ignore[attr-defined]
        return f"{owner is value.op} {value.index} {self.name(owner)}"  # type: ignore[attr-defined]

    def asked(self, rule: str, op: Op, others: Sequence[Op | Value]) -> bool:
        key = self.key(rule, op, others)
        if not self.choice.allows(key):
            return False
        beside = ""
        if key in self.choice.explain:
            beside = "\n".join(op_line(o) if isinstance(o, Op) else described(o) for o in others)
        self.choice.record(Change(key, self.step, rule, op.name, str(op.loc), self.text(key, (op,)), beside=beside))
        return True

    def started(self, key: str, rule: str, op: Op, failed: bool = False) -> None:
        """Record a rule that fails, or may."""
        if failed or self.choice.tried:
            self.choice.record(Change(key, self.step, rule, op.name, str(op.loc), self.text(key, (op,))))

    def fired(self, key: str, rule: str, op: Op, before: str, made: Sequence[Op], values: Sequence[Value]) -> None:
        """Record a rewrite; what it made is named after it."""
        for i, new in enumerate(inner for m in made for inner in m.walk()):
            self.names[new] = f"{key} {i}"
        after = ""
        if key in self.choice.explain:
            instead = made[::-1] or ([v.op for v in values if v.op is not None] if values else [op])
            after = self.text(key, instead) or "an argument"
        self.choice.record(Change(key, self.step, rule, op.name, str(op.loc), before, after))

    def text(self, key: str, ops: Sequence[Op]) -> str:
        """Operations for people, a line each, where a change is to be explained."""
        return "\n".join(op_line(op) for op in ops) if key in self.choice.explain else ""


def described(value: Value) -> str:
    """A value for people: what makes it."""
    if isinstance(value, OpResult):
        return f"result {value.index} of {op_line(value.op)}"
    return f"argument {value.index}{value.name and f', %{value.name}'}" if isinstance(value, BlockArg) else str(value)


@contextmanager
def considered(step: str, module: Op) -> Iterator[None]:
    """Within, what this thread's passes ask is about `module`, and `step` is the pass and its place."""
    made = choice()
    before, _here.run = _here.run, Run(made, step, module) if made is not None else None
    try:
        yield
    finally:
        _here.run = before


def _marked(module: Op) -> str:
    """Identifier of a module, from its first pass on; its operations get numbers then."""
    if (known := next((n for n in module.loc.via if n.startswith(_MARK)), None)) is not None:
        return known
    known = _MARK + hashlib.sha256(nameless_text(module).encode()).hexdigest()[:16]
    for i, op in enumerate(module.walk()):
        op.loc = op.loc.through(f"{_MARK}{i}" if i else known)
    return known
