"""Loop-carried values and results of branches: trees whose leaves are Python values or tensors of a known type.

A loop's body is recorded with the types of the initial values. If it yields other types, it is recorded again with the
joins of both (a Python number takes on the type that it is combined with), to a fixed point. With promotion on demand,
a Python value becomes a tensor only if the body changes it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from mlc.dialects import scf
from mlc.dialects import tensor as T
from mlc.dialects.tensor import control
from mlc.dialects.tensor.promotion import promote
from mlc.frontend import tree
from mlc.frontend.buffers import Buffers
from mlc.frontend.dtypes import DType
from mlc.frontend.functionalization import base_of, give_up, replace, spoil
from mlc.frontend.location import user_loc
from mlc.frontend.operands import NUMBER, boolean, broadcast_to, cast, is_tensor, number, reshape, tracer
from mlc.frontend.operands import kind as dtype_kind
from mlc.frontend.operation_errors import as_user_error, describe
from mlc.frontend.tensor import as_backing_array
from mlc.frontend.trace import Changes, Trace, Tracer, current, discard
from mlc.ir.core import Block, Region, Value, located
from mlc.ir.diag import Error, Loc, UserError, UserTypeError
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import TensorType, f64, from_numpy, i1, i64, index

Trees = Sequence[Any]


class Undefined:
    """Placeholder for the value of a variable that may be unassigned."""


UNDEFINED = Undefined()


@dataclass(frozen=True)
class SourceConstruct:
    """A loop or condition of the source, for diagnostics: description, location and variable names."""

    what: str
    loc: Loc
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class AbstractValue:
    """Type of a leaf: a tensor type, weak if the value is a Python number; without a type, a constant Python value."""

    type: TensorType | None
    weak: bool = False
    value: Any = None

    def __str__(self) -> str:
        if self.type is None:
            kind = type(self.value).__name__
            return f"a {kind}" if tree.children(self.value) else f"the {kind} {self.value!r}"[:80]
        return f"a Python {'float' if self.type.dtype.is_float else 'int'}" if self.weak else str(self.type)


@dataclass(frozen=True, eq=False)
class AbstractTree:
    """A tree definition with an abstract value for each leaf."""

    structure: tree.TreeDef
    leaves: list[AbstractValue]

    @property
    def types(self) -> list[TensorType]:
        return [k.type for k in self.leaves if k.type is not None]

    def tree(self, tensors: Iterator[Tracer]) -> Any:
        return self.structure.unflatten([k.value if k.type is None else next(tensors) for k in self.leaves])


AbstractTrees = list[AbstractTree | None]
"""One per variable; None if the variable is undefined."""


def is_number(x: Any) -> bool:
    return isinstance(x, NUMBER) or isinstance(x, Size)


def is_array(x: Any) -> bool:
    return is_tensor(x) or isinstance(x, np.generic)


def abstract_value(x: Any, on_demand: bool = False) -> AbstractValue:
    if isinstance(x, Tracer):
        return AbstractValue(x.type, x.weak)
    if on_demand or not (is_number(x) or is_array(x)):
        return AbstractValue(None, value=x)
    return _as_tensor(AbstractValue(None, value=x)) or AbstractValue(None, value=x)


def _as_tensor(k: AbstractValue) -> AbstractValue | None:
    """Promote to a tensor; None if the value is neither a number nor an array."""
    if k.type is not None:
        return k
    x = k.value
    if is_number(x):
        dtype = i1 if isinstance(x, bool) else f64 if isinstance(x, float) else i64
        return AbstractValue(TensorType((), dtype), dtype != i1)
    if not is_array(x):
        return None
    array = as_backing_array(x)
    return AbstractValue(TensorType(array.shape, from_numpy(array.dtype)))


def join(a: AbstractValue, b: AbstractValue) -> AbstractValue | None:
    """Join of two abstract values; None if they have none."""
    if a.type is None and b.type is None and same_value(a.value, b.value):
        return a
    s, t = _as_tensor(a), _as_tensor(b)
    if s is None or t is None or s.type is None or t.type is None or s.type.shape != t.type.shape:
        return None
    if s.type == t.type:
        return AbstractValue(s.type, s.weak and t.weak)
    if s.weak and t.weak:
        return AbstractValue(TensorType(s.type.shape, promote(s.type.dtype, t.type.dtype)), True)
    if s.weak == t.weak:
        return None
    weak, strong = (s, t) if s.weak else (t, s)
    assert weak.type is not None and strong.type is not None
    return strong if dtype_kind(weak.type.dtype) <= dtype_kind(strong.type.dtype) else None


_PLAIN = (*NUMBER, str, bytes, Size, DType, range, slice)


def same_value(a: Any, b: Any) -> bool:
    """Whether a recording cannot distinguish two Python values."""
    if a is b:
        return True
    return type(a) is type(b) and isinstance(a, _PLAIN) and (
        tree.frozen_leaf(a) == tree.frozen_leaf(b))


def abstract_tree(x: Any, on_demand: bool) -> AbstractTree | None:
    if isinstance(x, Undefined):
        return None
    leaves, structure = tree.flatten(x)
    return AbstractTree(structure, [abstract_value(leaf, on_demand) for leaf in leaves])


def _same(a: AbstractTrees, b: AbstractTrees) -> bool:
    return all(p is q or (p is not None and q is not None and p.structure == q.structure and all(
        k is l or (k.type == l.type and k.weak == l.weak and same_value(k.value, l.value))
        for k, l in zip(p.leaves, q.leaves))) for p, q in zip(a, b))


def _join_trees(site: SourceConstruct, before: AbstractTrees, trees: Trees, on_demand: bool,
                differ: Callable[..., NoReturn]) -> AbstractTrees:
    """Joins of `before` with the trees; `differ(path, leaf, leaf)` raises where there is none."""
    out: AbstractTrees = []
    for name, p, x in zip(site.names, before, trees):
        q = abstract_tree(x, on_demand)
        if p is None or q is None:
            out.append(p or q)
            continue
        if p.structure != q.structure:
            try:                                           # dicts match by key
                q = AbstractTree(p.structure, [abstract_value(leaf, on_demand)
                                               for leaf in tree.matching_leaves(p.structure, x)])
            except UserTypeError as error:
                path, _, leaves = error.message.removeprefix("the trees differ at tree").partition(": ")
                a, _, b = leaves.partition(" and ")
                differ(name + path, *((a, b) if path else (_container(p), _container(q))))
        joined = []
        for i, (k, l) in enumerate(zip(p.leaves, q.leaves)):
            if (found := join(k, l)) is None:
                differ(tree.paths(p.structure.unflatten(range(len(p.leaves))), name)[i], k, l)
            joined.append(found)
        out.append(AbstractTree(p.structure, joined))
    return out


def _container(p: AbstractTree) -> str:
    if len(p.structure) == 1 and p.leaves:
        return str(p.leaves[0])
    kind = p.structure[0][0]
    return "None" if kind is type(None) else f"a {kind.__name__}"


def _values(abstract: AbstractTrees, trees: Trees) -> list[Value]:
    """Leaves of the trees as tensors of the abstract types, zeros for undefined variables."""
    trace, out = current(), []
    for p, x in zip(abstract, trees):
        if p is None:
            continue
        if isinstance(x, Undefined):
            leaves: list[Any] = [x] * len(p.leaves)
        else:
            leaves = tree.matching_leaves(p.structure, x)
        out += [trace.local(_promote_to(leaf, k, k.type)) for leaf, k in zip(leaves, p.leaves) if k.type is not None]
    return out


def _promote_to(x: Any, k: AbstractValue, type: TensorType) -> Tracer:
    if isinstance(x, Undefined):
        return broadcast_to(number(0, type.dtype), type.shape)
    return number(x, type.dtype, k.weak) if isinstance(x, NUMBER) else cast(tracer(x), type.dtype, k.weak)


def _types(abstract: AbstractTrees) -> list[TensorType]:
    return [t for p in abstract if p is not None for t in p.types]


def _trees(abstract: AbstractTrees, values: Sequence[Value], trace: Trace) -> list[Any]:
    weak = [k.weak for p in abstract if p is not None for k in p.leaves if k.type is not None]
    tensors = iter([Tracer(v, trace, w) for v, w in zip(values, weak)])
    return [UNDEFINED if p is None else p.tree(tensors) for p in abstract]


# -- conditions -------------------------------------------------------------------------------------------------------
def condition(x: Any, site: SourceConstruct) -> Value:
    """Condition of a loop or branch, as i1, of a tensor of one element."""
    with located(site.loc):
        try:
            truth = boolean(x)
            if any(d != 1 for d in truth.shape):
                raise UserTypeError(f"the condition of {site.what} is {describe(x)}, not a tensor of one element",
                                    code="MLC0602", loc=site.loc,
                                    hint="say which elements decide: mlc.all(...) or mlc.any(...)")
            return T.Item(current().local(truth)).result
        except Error as error:
            raise as_user_error(error, site.what, (x,), site.loc) from None


def branch(pred: Value, then: Callable[[], Trees], otherwise: Callable[[], Trees], site: SourceConstruct,
           on_demand: bool = False) -> list[Any]:
    """Record `pred ? then() : otherwise()` as a branch."""
    trace, blocks = current(), (Block(), Block())
    buffers, parts, assigned = Buffers.in_progress(), list[list[Any]](), list[dict[int, Any]]()
    changed: list[dict[Tracer, Tracer]] = []               # tensors of outside, in place
    spoiled: list[tuple[Tracer, Loc]] = []
    values: list[Trees] = []                               # of the parts, at the end of their regions
    try:
        for block, part in zip(blocks, (then, otherwise)):
            with trace.region(block, site.loc) as changes:
                parts.append([*part()])
                values.append(_as_they_are(parts[-1], changes))
                assigned.append(buffers.take())
            changed.append(changes.after)
            spoiled += changes.spoiled
        which, bases = sorted({*assigned[0], *assigned[1]}), [*changed[0] | changed[1]]
        state = [[*(new[i] if i in new else after.get(buffers.before[i], buffers.before[i]) for i in which),
                  *(after.get(x, x) for x in bases)] for new, after in zip(assigned, changed)]
        first, second = ([*part, *rest] for part, rest in zip(parts, state))
        site = _with_state(site, buffers, which, bases)

        def differ(path: str, a: Any, b: Any) -> NoReturn:
            raise UserTypeError(f"{path} is {a} in one branch of {site.what} and {b} in the other",
                                code="MLC0603", loc=site.loc, hint="give both the same structure, shape and dtype")

        abstract = _join_trees(site, [abstract_tree(x, on_demand) for x in first], second, on_demand, differ)
        abstract = [_fold_unchanged(p, x, y) for p, x, y in zip(abstract, first, second)]
        for block, found, rest in zip(blocks, values, state):
            with trace.region(block, site.loc), located(site.loc):
                scf.Yield(tuple(_values(abstract, [*found, *rest])))
    except BaseException:
        for block in blocks:
            discard(block)
        buffers.restore()
        raise
    with located(site.loc):
        op = scf.If(pred, Region(blocks[0]), Region(blocks[1]), tuple(_types(abstract)))
    results = _trees(abstract, op.results, trace)
    count = len(parts[0])
    buffers.assign(dict(zip(which, results[count:])))
    for x, new in zip(bases, results[count + len(which):]):
        replace(x, new.value)
    for x, loc in spoiled:
        spoil(x, loc)
    return results[:count]


def _as_they_are(trees: Trees, changes: Changes) -> list[Any]:
    """Trees with tensors of their own in place of those that the region has changed, which the region's end undoes."""
    changed = changes.tensors
    return _mapped(lambda x: Tracer(x.value, x.owner, x.weak) if isinstance(x, Tracer) and any(
        base_of(x) is base for base in changed) else x, trees)


def _with_state(site: SourceConstruct, buffers: Buffers, which: Iterable[int],
                bases: Sequence[Tracer]) -> SourceConstruct:
    """The construct with names for buffers, and tensors that it changes in place, after those of its variables."""
    return SourceConstruct(site.what, site.loc, (*site.names, *map(buffers.path, which), *(
        x.value.name or "a tensor" for x in bases)))


def _fold_unchanged(p: AbstractTree | None, x: Any, y: Any) -> AbstractTree | None:
    """Tree in which leaves that both branches leave unchanged are constants, so that no branch yields them."""
    if p is None or isinstance(x, Undefined) or isinstance(y, Undefined):
        return p
    pairs = zip(p.leaves, tree.matching_leaves(p.structure, x), tree.matching_leaves(p.structure, y))
    return AbstractTree(p.structure, [AbstractValue(None, value=a) if a is b else k for k, a, b in pairs])


# -- loops ------------------------------------------------------------------------------------------------------------
def _fixed_point(init: Trees, site: SourceConstruct, on_demand: bool,
                 record: Callable[[AbstractTrees], tuple[list[Block], Trees, Any]],
                 ) -> tuple[AbstractTrees, list[Block], Trees, Any]:
    """Results of `record` at the fixed point of the carried types."""
    abstract: AbstractTrees = [abstract_tree(x, on_demand) for x in init]

    def differ(path: str, a: Any, b: Any) -> NoReturn:
        raise UserTypeError(f"{site.what} carries {path}, which begins as {a} and is {b} after the body",
                            code="MLC0601", loc=site.loc,
                            hint="begin with what the body gives (mlc.zeros of that shape, a cast), or cast in the "
                                 "body")

    while True:
        blocks, after, rest = record(abstract)
        try:
            wider = _join_trees(site, abstract, after, on_demand, differ)
        except BaseException:
            for block in blocks:
                discard(block)
            raise
        if _same(wider, abstract):
            return abstract, blocks, after, rest
        for block in blocks:
            discard(block)
        abstract = wider


class _Again(Exception):
    """Raised when the body of a loop changes state that is not carried yet."""


class _Same:
    """Leaf of a loop-carried tree that is one tensor throughout, which the body changes in place."""

    def __init__(self, tensor: Tracer) -> None:
        self.tensor = tensor


class _CarriedState:
    """State that a loop's body changes besides its variables, as loop-carried values after these.

    In the body, a variable stands for a tensor of its own: it may be another one in each iteration. If that is changed
    in place, the loop is recorded again: where the variable is the same tensor after the body, that is what the body
    works on, and is carried as a tensor of outside; else the former tensor may not be used any more.

    init     the loop-carried variables before the loop
    which    the buffers of modules that are assigned, by their numbers
    bases    the tensors of outside that are changed in place
    same     those that variables are throughout, by the id of the tensor
    given_up those that a variable is before the loop, and not after it
    """

    def __init__(self, buffers: Buffers, init: Trees) -> None:
        self.buffers, self.init = buffers, init
        self.which: list[int] = []
        self.bases: list[Tracer] = []
        self.same: dict[int, _Same] = {}
        self.given_up: list[Tracer] = []
        self._spoiled: list[tuple[Tracer, Loc]] = []
        self._entered: list[tuple[Any, Any, Any]] = []     # per leaf: what the body gets, its value, and what is before

    @property
    def before(self) -> list[Any]:
        """The carried values before the loop."""
        return [*self._fixed(self.init), *(self.buffers.before[i] for i in self.which), *self.bases]

    def _fixed(self, trees: Trees) -> Trees:
        return _mapped(lambda x: self.same.get(id(x), x), trees) if self.same else trees

    def enter(self, carried: Trees) -> Trees:
        """Have the state be what is carried; returns the other carried values."""
        count = len(carried) - len(self.which) - len(self.bases)
        self.buffers.assign(dict(zip(self.which, carried[count:])))
        for base, x in zip(self.bases, carried[count + len(self.which):]):
            replace(base, x.value)
        for x in self.given_up:
            x.changed = user_loc()
        own = _mapped(lambda x: x.tensor if isinstance(x, _Same) else x, carried[:count])
        self._entered = [(x, getattr(x, "value", None), first)
                         for x, first in zip(tree.leaves(own), tree.leaves(self.init))]
        return own

    def leave(self, carried: Trees) -> list[Any]:
        """The carried values after the body; restores buffers."""
        new = self._left(tree.leaves(carried))
        changes = current().changes[-1]
        self._spoiled = list(changes.spoiled)
        carried = _as_they_are(self._fixed(carried), changes)
        return [*carried, *(new[i] for i in self.which), *(Tracer(x.value, x.owner) for x in self.bases)]

    def check_condition(self, site: SourceConstruct) -> None:
        """UserError if the condition of a loop has changed state."""
        before = [*self.which], [*self.bases], dict(self.same), [*self.given_up]
        values = [x.value for x in self.bases]
        try:
            self._left([x for x, _, _ in self._entered])
        except _Again:
            pass
        if before != ([*self.which], [*self.bases], self.same, self.given_up) or values != [
                x.value for x in self.bases]:
            raise UserError(f"the condition of {site.what} assigns a buffer of a module, or changes a tensor",
                            code="MLC0608", loc=site.loc, hint="compute it in the body, and test what it gave")

    def _left(self, after: Sequence[Any]) -> dict[int, Any]:
        """The buffers after the body; _Again if more is changed than is known."""
        new = self.buffers.take()
        for x in self.given_up:
            x.changed = None
        changed = current().changes[-1].tensors
        more = [x for x in changed if not any(x is known for known in self.bases)]
        which = sorted({*self.which, *new})
        again = bool(more) or which != self.which
        self.which, self.bases = which, self.bases + more
        if self._follow(after, changed) or again:
            raise _Again
        return new

    def _follow(self, after: Sequence[Any], changed: Sequence[Tracer]) -> bool:
        """Note which variables are tensors that the body changes in place; whether that is new."""
        tensors = [(i, x, first) for i, (x, value, first) in enumerate(self._entered)
                   if isinstance(first, Tracer) and not first.weak and isinstance(x, Tracer) and (
                       x.value is not value or any(base_of(first) is base for base in changed))]
        moved = bool(tensors) and any(
            x is y for i, x in enumerate(after) for j, (y, _, first) in enumerate(self._entered)
            if i != j and isinstance(x, Tracer) and (
                i >= len(self._entered) or self._entered[i][2] is not first))
        found = False
        if moved:                                          # any of them may be the one that is changed
            tensors = [(i, x, first) for i, (x, _, first) in enumerate(self._entered) if isinstance(first, Tracer)]
        for i, x, first in tensors:
            stays = not moved and len(after) == len(self._entered) and after[i] is x
            if any(first is known for known in self.given_up):
                continue
            if not stays:
                self.same.pop(id(first), None)
                self.given_up.append(first)
                found = True
            elif id(first) not in self.same:
                self.same[id(first)] = _Same(first)
                found = True
        return found

    def done(self, found: Trees) -> Trees:
        """Have the state be what the loop leaves; returns the other values that it leaves."""
        out = self.enter(found)
        first = [x for x in tree.leaves(self.init) if isinstance(x, Tracer)]
        for x in self.given_up:
            x.changed = None
            give_up(x, sum(x is y for y in first) > 1)
        for x, loc in self._spoiled:
            spoil(x, loc)
        return out

    def restore(self) -> None:
        """Undo what a failed attempt has changed."""
        self.buffers.restore()
        for x in self.given_up:
            x.changed = None


def _mapped(f: Callable[[Any], Any], trees: Trees) -> list[Any]:
    """Trees with f applied to their leaves."""
    out = []
    for x in trees:
        if isinstance(x, Undefined):
            out.append(x)
            continue
        leaves, structure = tree.flatten(x)
        new = [f(leaf) for leaf in leaves]
        out.append(x if all(map(operator.is_, leaves, new)) else structure.unflatten(new))
    return out


LoopResults = tuple[list[Any], list[Tracer]]
"""Carried values after a loop, and its stacked arrays."""


def _with_state_carried(init: Trees, site: SourceConstruct,
                        record: Callable[[Trees, SourceConstruct, _CarriedState], LoopResults]) -> LoopResults:
    """Record a loop with the state that its body changes as loop-carried values."""
    state = _CarriedState(Buffers.in_progress(), init)
    try:
        while True:
            named = _with_state(site, state.buffers, state.which, state.bases)
            try:
                found, rows = record(state.before, named, state)
                break
            except _Again:
                pass
    except BaseException:
        state.restore()
        raise
    return list(state.done(found)), rows


def while_(predicate: Callable[[Trees], Any], body: Callable[[Trees], Trees], init: Trees, site: SourceConstruct,
           on_demand: bool = False) -> list[Any]:
    """Record `while predicate(x): x = body(x)` as a loop."""
    def record(init: Trees, site: SourceConstruct, state: _CarriedState) -> LoopResults:
        def test(carried: Trees) -> Any:
            goes_on = predicate(state.enter(carried))
            state.check_condition(site)
            return goes_on

        return _while(test, lambda x: state.leave(body(state.enter(x))), init, site, on_demand), []
    return _with_state_carried(init, site, record)[0]


def _while(predicate: Callable[[Trees], Any], body: Callable[[Trees], Trees], init: Trees, site: SourceConstruct,
           on_demand: bool) -> list[Any]:
    trace = current()

    def record(abstract: AbstractTrees) -> tuple[list[Block], Trees, Value]:
        before, after = Block(_types(abstract)), Block(_types(abstract))
        with trace.region(before, site.loc):
            goes_on = condition(predicate(_trees(abstract, before.args, trace)), site)
        try:
            with trace.region(after, site.loc):
                return [before, after], body(_trees(abstract, after.args, trace)), goes_on
        except BaseException:
            discard(before)
            raise

    abstract, (before, after), out, goes_on = _fixed_point(init, site, on_demand, record)
    with trace.region(after, site.loc), located(site.loc):
        scf.Yield(tuple(_values(abstract, out)))
    with trace.region(before, site.loc), located(site.loc):
        scf.Condition(goes_on, tuple(before.args))
    with located(site.loc):
        values = tuple(_values(abstract, init))
        op = scf.While(values, Region(before), Region(after), tuple(_types(abstract)))
    return _trees(abstract, op.results, trace)


def for_(lower: Value, upper: Value, body: Callable[[Value, Trees], tuple[Trees, StackedRows | None]], init: Trees,
         site: SourceConstruct, on_demand: bool = False) -> LoopResults:
    """Record `for i in range(lower, upper): x, rows = body(i, x)` as a loop; the result is (x, stacked rows)."""
    def record(init: Trees, site: SourceConstruct, state: _CarriedState) -> LoopResults:
        def step(i: Value, carried: Trees) -> tuple[Trees, StackedRows | None]:
            out, rows = body(i, state.enter(carried))
            return state.leave(out), rows
        return _for(lower, upper, step, init, site, on_demand)
    return _with_state_carried(init, site, record)


def _for(lower: Value, upper: Value, body: Callable[[Value, Trees], tuple[Trees, StackedRows | None]], init: Trees,
         site: SourceConstruct, on_demand: bool) -> LoopResults:
    trace = current()

    def record(abstract: AbstractTrees) -> tuple[list[Block], Trees, StackedRows | None]:
        block = Block([index, *_types(abstract)])
        with trace.region(block, site.loc):
            out, rows = body(block.args[0], _trees(abstract, block.args[1:], trace))
        return [block], out, rows

    abstract, (block,), out, rows = _fixed_point(init, site, on_demand, record)
    with located(site.loc):
        with trace.region(block, site.loc):
            values = _values(abstract, out)
            if rows is not None:
                values += rows.put(block)
            scf.Yield(tuple(values))
        count = len(values) - (len(rows.now) if rows is not None else 0)
        begin = _values(abstract, init) + (rows.begin() if rows is not None else [])
        op = scf.For(lower, upper, control.as_index(1), tuple(begin), Region(block))
    return _trees(abstract, op.results[:count], trace), [Tracer(v, trace) for v in op.results[count:]]


@dataclass(frozen=True)
class StackedRows:
    """Rows that iteration `at` of `length` contributes to stacked arrays: `now`, one row per array."""

    now: list[Tracer]
    at: Value
    length: Dim

    def begin(self) -> list[Value]:
        return [broadcast_to(number(0, t.type.dtype), (self.length, *t.shape)).value for t in self.now]

    def put(self, block: Block) -> list[Value]:
        """Update the stacked arrays, which become further arguments of the body, with the rows."""
        out = list[Value]()
        for t in self.now:
            array = block.add_arg(t.type.with_shape((self.length, *t.shape)))
            row = reshape(t, (1, *t.shape)).value
            starts = (self.at, *(number(0, i64).value for _ in t.shape))
            out.append(T.DynamicUpdateSlice(array, row, starts).result if self.length != 0 else array)
        return out
