"""Optional changes of passes, which can be disabled one by one: `mlc bisect` searches them for one that miscompiles.

A change is one firing of a rewrite rule, one decision of a pass (to fuse two kernels, to write a result in place, to
parallelize a loop), or the run of a pass that keeps the form and does not ask about parts of it. Required lowering
steps are not changes. Before each change a pass calls `allowed`, which returns True at no cost unless the environment
selects changes:

    MLC_CHANGES=none               no changes
    MLC_CHANGES=1f0c22ab9d,...     only these changes
    MLC_CHANGES=-1f0c22ab9d,...    all changes but these
    MLC_CHANGES=@FILE              keys from a file, separated by commas or spaces
    MLC_CHANGES_LOG=FILE           append a line of JSON to FILE for each change that is made

A key is a hash of the module, the pass, the rule and the operation, identified by the number of its origin in the input
module. So a key does not depend on which other changes are made, nor on the position of the pass in the pipeline. To
this end the first pass numbers the locations of a module (`Loc.via`), if changes are selected.
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
"""Most selected changes for which a log also describes their effect."""
_KEY = re.compile(r"-?[0-9a-f]{10}")
_MARK = "#"


@dataclass(frozen=True)
class Change:
    """A change that was made.

    step    position in the pipeline and name of the pass: `04 canonicalize`
    rule    rule of the pass; "" for the pass as a whole
    before  text of the operation; `after` is that of its replacement, `beside` that of other operations involved; only
            if few changes are selected
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
    """A selection of changes, and a record of those made.

    only     changes that are allowed; None allows all
    without  changes that are not allowed
    log      file to which a line is appended for each change
    explain  changes whose effect is recorded, which takes time; None: all of `only`, if these are few
    tried    whether rules are recorded before they are tried, to find one that crashes the process
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
    """Parse a value of MLC_CHANGES.

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
        raise UserError(f"{VARIABLE}: {wrong!r} is not a key of a change", code="MLC0680",
                        hint="write all, none, KEY,KEY,..., -KEY,-KEY,... or @FILE; mlc bisect prints keys")
    left_out = [w[1:] for w in words if w.startswith("-")]
    if len(left_out) not in (0, len(words)):
        raise UserError(f"{VARIABLE} both names changes to make and, by -KEY, some to leave out", code="MLC0680",
                        hint="keys without - leave out all others already")
    return Choice(None, left_out, log) if left_out else Choice(words, log=log)


class _Chosen:
    """The choice of this process: from the environment, unless `chosen` overrides it."""

    choice: Choice | None = None
    read = False


class _Here(threading.local):
    """The pass that this thread runs, if changes are selected."""

    run: Run | None = None


_here = _Here()


def choice() -> Choice | None:
    """The choice in effect; None if all changes are allowed."""
    if not _Chosen.read:
        text, log = os.environ.get(VARIABLE), os.environ.get(LOG)
        _Chosen.choice = parse(text or "all", log) if text or log else None
        _Chosen.read = True
    return _Chosen.choice


@contextmanager
def chosen(made: Choice | None) -> Iterator[None]:
    """Context manager: set the choice of the process."""
    before, read = _Chosen.choice, _Chosen.read
    _Chosen.choice, _Chosen.read = made, True
    try:
        yield
    finally:
        _Chosen.choice, _Chosen.read = before, read


def current() -> Run | None:
    """The pass that this thread runs, for callers with many changes; None if all are allowed."""
    return _here.run


def allowed(rule: str, op: Op, *others: Op | Value) -> bool:
    """Whether the running pass may apply `rule` to `op` and the `others`; call it only when about to do so."""
    run = _here.run
    return run is None or run.asked(rule, op, others)


class Run:
    """Run of a pass on a module; identifies operations for the keys of changes."""

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
        if (name := self.names.get(op)) is None:
            base = "".join(n for n in op.loc.via if n.startswith(_MARK)) + " " + op.name
            self.counts[base] = number = self.counts.get(base, -1) + 1
            name = self.names[op] = f"{base} {number}"
        return name

    def key(self, rule: str, op: Op, others: Sequence[Op | Value] = ()) -> str:
        about = [self.module, self.step.partition(" ")[2], rule, self.name(op),
                 *(self.name(o) if isinstance(o, Op) else self.value(o) for o in others)]
        return hashlib.sha256("\n".join(about).encode()).hexdigest()[:10]

    def value(self, value: Value) -> str:
        """Identifier of a value: result or block argument, index, and identifier of the operation."""
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
        """Record a rule that has failed or, with `tried`, is about to be tried."""
        if failed or self.choice.tried:
            self.choice.record(Change(key, self.step, rule, op.name, str(op.loc), self.text(key, (op,))))

    def fired(self, key: str, rule: str, op: Op, before: str, inserted: Sequence[Op], values: Sequence[Value]) -> None:
        """Record a rewrite; the operations that it inserted are identified by its key."""
        for i, new in enumerate(inner for outer in inserted for inner in outer.walk()):
            self.names[new] = f"{key} {i}"
        after = ""
        if key in self.choice.explain:
            instead = inserted[::-1] or ([v.op for v in values if v.op is not None] if values else [op])
            after = self.text(key, instead) or "an argument"
        self.choice.record(Change(key, self.step, rule, op.name, str(op.loc), before, after))

    def text(self, key: str, ops: Sequence[Op]) -> str:
        """Operations in readable form, a line each, if the change is to be explained."""
        return "\n".join(op_line(op) for op in ops) if key in self.choice.explain else ""


def described(value: Value) -> str:
    """Readable description of a value by its definition."""
    if isinstance(value, OpResult):
        return f"result {value.index} of {op_line(value.op)}"
    return f"argument {value.index}{value.name and f', %{value.name}'}" if isinstance(value, BlockArg) else str(value)


@contextmanager
def considered(step: str, module: Op) -> Iterator[None]:
    """Context manager: this thread runs the pass `step` (position and name) on `module`."""
    selected = choice()
    before, _here.run = _here.run, Run(selected, step, module) if selected is not None else None
    try:
        yield
    finally:
        _here.run = before


def _marked(module: Op) -> str:
    """Identifier of a module; its first pass assigns it and numbers the operations."""
    if (mark := next((n for n in module.loc.via if n.startswith(_MARK)), None)) is not None:
        return mark
    mark = _MARK + hashlib.sha256(nameless_text(module).encode()).hexdigest()[:16]
    for i, op in enumerate(module.walk()):
        op.loc = op.loc.through(f"{_MARK}{i}" if i else mark)
    return mark
