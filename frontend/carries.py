"""Values that loops carry and branches yield: trees, each leaf of which is a Python value or a tensor of a known type.

A loop's body is recorded with the types that its carries begin with. If it gives other ones that hold both (a Python
number takes on the type of what it meets), it is recorded again with those, until they stay. So do Python values that
the body changes: `lazily`, they become tensors only then.
"""

from __future__ import annotations

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
from mlc.frontend.operands import NUMBER, boolean, broadcast_to, cast, is_tensor, number, reshape, tracer
from mlc.frontend.operands import kind as kind_of_dtype
from mlc.frontend.tensor import as_backing_array
from mlc.frontend.trace import Trace, Tracer, as_user_error, current, describe, discard
from mlc.ir.core import Block, Region, Value, located
from mlc.ir.diag import Error, Loc, UserError, UserTypeError
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import TensorType, f64, from_numpy, i1, i64, index

Trees = Sequence[Any]


class Undefined:
    """Placeholder for the value of a variable that may be unassigned."""


UNDEFINED = Undefined()


@dataclass(frozen=True)
class Site:
    """A loop or condition as errors speak of it: what it is, where, and the names of its variables."""

    what: str
    loc: Loc
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Kind:
    """A leaf: a tensor of `type`, weak if it stands for a Python number; without a type, the Python value itself."""

    type: TensorType | None
    weak: bool = False
    value: Any = None

    def __str__(self) -> str:
        if self.type is None:
            kind = type(self.value).__name__
            return f"a {kind}" if tree.children(self.value) else f"the {kind} {self.value!r}"[:80]
        return f"a Python {'float' if self.type.dtype.is_float else 'int'}" if self.weak else str(self.type)


@dataclass(frozen=True, eq=False)
class Pattern:
    """A tree with kinds in place of its leaves."""

    structure: tree.Structure
    kinds: list[Kind]

    @property
    def types(self) -> list[TensorType]:
        return [k.type for k in self.kinds if k.type is not None]

    def tree(self, tensors: Iterator[Tracer]) -> Any:
        return self.structure.unflatten([k.value if k.type is None else next(tensors) for k in self.kinds])


Patterns = list[Pattern | None]
"""One per variable; None of one that is undefined."""


def is_number(x: Any) -> bool:
    return isinstance(x, NUMBER) or isinstance(x, Size)


def is_array(x: Any) -> bool:
    return is_tensor(x) or isinstance(x, np.generic)


def kind_of(x: Any, lazily: bool = False) -> Kind:
    if isinstance(x, Tracer):
        return Kind(x.type, x.weak)
    if lazily or not (is_number(x) or is_array(x)):
        return Kind(None, value=x)
    return _tensor_kind(Kind(None, value=x)) or Kind(None, value=x)


def _tensor_kind(k: Kind) -> Kind | None:
    """Kind of a Python value as a tensor; None if the value is neither a number nor an array."""
    if k.type is not None:
        return k
    x = k.value
    if is_number(x):
        dtype = i1 if isinstance(x, bool) else f64 if isinstance(x, float) else i64
        return Kind(TensorType((), dtype), dtype != i1)
    if not is_array(x):
        return None
    held = as_backing_array(x)
    return Kind(TensorType(held.shape, from_numpy(held.dtype)))


def join(a: Kind, b: Kind) -> Kind | None:
    """Join of two kinds: a kind that holds both; None if there is none."""
    if a.type is None and b.type is None and same_value(a.value, b.value):
        return a
    s, t = _tensor_kind(a), _tensor_kind(b)
    if s is None or t is None or s.type is None or t.type is None or s.type.shape != t.type.shape:
        return None
    if s.type == t.type:
        return Kind(s.type, s.weak and t.weak)
    if s.weak and t.weak:
        return Kind(TensorType(s.type.shape, promote(s.type.dtype, t.type.dtype)), True)
    if s.weak == t.weak:
        return None
    weak, strong = (s, t) if s.weak else (t, s)
    assert weak.type is not None and strong.type is not None
    return strong if kind_of_dtype(weak.type.dtype) <= kind_of_dtype(strong.type.dtype) else None


_PLAIN = (*NUMBER, str, bytes, Size, DType, range, slice)


def same_value(a: Any, b: Any) -> bool:
    """Whether two Python values are one for all that is recorded."""
    if a is b:
        return True
    return type(a) is type(b) and isinstance(a, _PLAIN) and (
        tree.frozen_leaf(a) == tree.frozen_leaf(b))


def pattern_of(x: Any, lazily: bool) -> Pattern | None:
    if isinstance(x, Undefined):
        return None
    leaves, structure = tree.flatten(x)
    return Pattern(structure, [kind_of(leaf, lazily) for leaf in leaves])


def _same(a: Patterns, b: Patterns) -> bool:
    return all(p is q or (p is not None and q is not None and p.structure == q.structure and all(
        k is l or (k.type == l.type and k.weak == l.weak and same_value(k.value, l.value))
        for k, l in zip(p.kinds, q.kinds))) for p, q in zip(a, b))


def _joined(site: Site, before: Patterns, trees: Trees, lazily: bool, differ: Callable[..., NoReturn]) -> Patterns:
    """The patterns that hold what was there `before` and the trees; `differ(path, kind, kind)` where none does."""
    out: Patterns = []
    for name, p, x in zip(site.names, before, trees):
        q = pattern_of(x, lazily)
        if p is None or q is None:
            out.append(p or q)
            continue
        if p.structure != q.structure:
            try:                                           # dicts match by key
                q = Pattern(p.structure, [kind_of(leaf, lazily) for leaf in tree.matching_leaves(p.structure, x)])
            except UserTypeError as error:
                where, _, kinds = error.message.removeprefix("the trees differ at tree").partition(": ")
                a, _, b = kinds.partition(" and ")
                differ(name + where, *((a, b) if where else (_container(p), _container(q))))
        joined = []
        for i, (k, l) in enumerate(zip(p.kinds, q.kinds)):
            if (found := join(k, l)) is None:
                differ(tree.paths(p.structure.unflatten(range(len(p.kinds))), name)[i], k, l)
            joined.append(found)
        out.append(Pattern(p.structure, joined))
    return out


def _container(p: Pattern) -> str:
    if len(p.structure) == 1 and p.kinds:
        return str(p.kinds[0])
    kind = p.structure[0][0]
    return "None" if kind is type(None) else f"a {kind.__name__}"


def _values(patterns: Patterns, trees: Trees) -> list[Value]:
    """The trees' leaves as tensors of the patterns' types, 0 where a variable is undefined."""
    trace, out = current(), []
    for p, x in zip(patterns, trees):
        if p is None:
            continue
        if isinstance(x, Undefined):
            leaves: list[Any] = [x] * len(p.kinds)
        else:
            leaves = tree.matching_leaves(p.structure, x)
        out += [trace.local(_as_kind(leaf, k, k.type)) for leaf, k in zip(leaves, p.kinds) if k.type is not None]
    return out


def _as_kind(x: Any, k: Kind, type: TensorType) -> Tracer:
    if isinstance(x, Undefined):
        return broadcast_to(number(0, type.dtype), type.shape)
    return number(x, type.dtype, k.weak) if isinstance(x, NUMBER) else cast(tracer(x), type.dtype, k.weak)


def _types(patterns: Patterns) -> list[TensorType]:
    return [t for p in patterns if p is not None for t in p.types]


def _trees(patterns: Patterns, values: Sequence[Value], trace: Trace) -> list[Any]:
    weak = [k.weak for p in patterns if p is not None for k in p.kinds if k.type is not None]
    tensors = iter([Tracer(v, trace, w) for v, w in zip(values, weak)])
    return [UNDEFINED if p is None else p.tree(tensors) for p in patterns]


# -- conditions -------------------------------------------------------------------------------------------------------
def condition(x: Any, site: Site) -> Value:
    """The truth of a tensor of one element, as i1."""
    with located(site.loc):
        try:
            found = boolean(x)
            if any(d != 1 for d in found.shape):
                raise UserTypeError(f"the condition of {site.what} is {describe(x)}, not a tensor of one element",
                                    code="MLC0602", loc=site.loc,
                                    hint="say which elements decide: mlc.all(...) or mlc.any(...)")
            return T.Item(current().local(found)).result
        except Error as error:
            raise as_user_error(error, site.what, (x,), site.loc) from None


def branch(where: Value, then: Callable[[], Trees], otherwise: Callable[[], Trees], site: Site,
           lazily: bool = False) -> list[Any]:
    """`where ? then() : otherwise()`, recorded as a condition."""
    trace, blocks = current(), (Block(), Block())
    buffers, parts, assigned = Buffers.in_progress(), list[list[Any]](), list[dict[int, Any]]()
    try:
        for block, part in zip(blocks, (then, otherwise)):
            with trace.region(block, site.loc):
                parts.append([*part()])
                assigned.append(buffers.take())
        which = sorted({*assigned[0], *assigned[1]})
        first, second = ([*part, *(new.get(i, buffers.before[i]) for i in which)]
                         for part, new in zip(parts, assigned))
        site = Site(site.what, site.loc, (*site.names, *map(buffers.path, which)))

        def differ(path: str, a: Any, b: Any) -> NoReturn:
            raise UserTypeError(f"{path} is {a} in one branch of {site.what} and {b} in the other",
                                code="MLC0603", loc=site.loc, hint="give both the same structure, shape and dtype")

        patterns = _joined(site, [pattern_of(x, lazily) for x in first], second, lazily, differ)
        patterns = [_passed(p, x, y) for p, x, y in zip(patterns, first, second)]
        for block, trees in zip(blocks, (first, second)):
            with trace.region(block, site.loc), located(site.loc):
                scf.Yield(tuple(_values(patterns, trees)))
    except BaseException:
        for block in blocks:
            discard(block)
        buffers.restore()
        raise
    with located(site.loc):
        op = scf.If(where, Region(blocks[0]), Region(blocks[1]), tuple(_types(patterns)))
    found = _trees(patterns, op.results, trace)
    buffers.assign(dict(zip(which, found[len(parts[0]):])))
    return found[: len(parts[0])]


def _passed(p: Pattern | None, x: Any, y: Any) -> Pattern | None:
    """Pattern in which leaves that both branches leave unchanged are constants, so that no branch yields them."""
    if p is None or isinstance(x, Undefined) or isinstance(y, Undefined):
        return p
    pairs = zip(p.kinds, tree.matching_leaves(p.structure, x), tree.matching_leaves(p.structure, y))
    return Pattern(p.structure, [Kind(None, value=a) if a is b else k for k, a, b in pairs])


# -- loops ------------------------------------------------------------------------------------------------------------
def _settled(init: Trees, site: Site, lazily: bool, record: Callable[[Patterns], tuple[list[Block], Trees, Any]],
             ) -> tuple[Patterns, list[Block], Trees, Any]:
    """Results of `record` at the fixed point of the carried types: (blocks, carries after the body, anything)."""
    patterns: Patterns = [pattern_of(x, lazily) for x in init]

    def differ(path: str, a: Any, b: Any) -> NoReturn:
        raise UserTypeError(f"{site.what} carries {path}, which begins as {a} and is {b} after the body",
                            code="MLC0601", loc=site.loc,
                            hint="begin with what the body gives (mlc.zeros of that shape, a cast), or cast in the "
                                 "body")

    while True:
        blocks, after, rest = record(patterns)
        try:
            wider = _joined(site, patterns, after, lazily, differ)
        except BaseException:
            for block in blocks:
                discard(block)
            raise
        if _same(wider, patterns):
            return patterns, blocks, after, rest
        for block in blocks:
            discard(block)
        patterns = wider


class _More(Exception):
    """A loop assigns buffers of modules that it does not carry yet."""

    def __init__(self, which: Iterable[int]) -> None:
        self.which = which


class _State:
    """The buffers of modules that a loop carries, after its other carries."""

    def __init__(self, buffers: Buffers, which: Sequence[int]) -> None:
        self.buffers, self.which = buffers, which

    def enter(self, carried: Trees) -> Trees:
        """Let the modules hold what is carried; the other carries."""
        count = len(carried) - len(self.which)
        self.buffers.assign(dict(zip(self.which, carried[count:])))
        return carried[:count]

    def leave(self, carried: Trees) -> list[Any]:
        """The carries after the body; the modules hold again what they did."""
        new = self.buffers.take()
        if more := new.keys() - set(self.which):
            raise _More(more)
        return [*carried, *(new[i] for i in self.which)]


Recorded = tuple[list[Any], list[Tracer]]
"""The carries after a loop, and the arrays that it has collected."""


def _with_buffers(init: Trees, site: Site, record: Callable[[Trees, Site, _State], Recorded]) -> Recorded:
    """Record a loop together with the buffers of modules that it assigns."""
    buffers, which = Buffers.in_progress(), list[int]()
    try:
        while True:
            state = _State(buffers, which)
            named = Site(site.what, site.loc, (*site.names, *map(buffers.path, which)))
            try:
                found, rows = record([*init, *(buffers.before[i] for i in which)], named, state)
                break
            except _More as more:
                which = sorted({*which, *more.which})
    except BaseException:
        buffers.restore()
        raise
    state.enter(found)
    return found[: len(init)], rows


def while_(going: Callable[[Trees], Any], body: Callable[[Trees], Trees], init: Trees, site: Site,
           lazily: bool = False) -> list[Any]:
    """`while going(x): x = body(x)`, recorded as a loop."""
    def record(init: Trees, site: Site, state: _State) -> Recorded:
        def test(carried: Trees) -> Any:
            goes_on = going(state.enter(carried))
            after = state.leave(())
            if any(a is not b for a, b in zip(after, carried[len(carried) - len(after):])):
                raise UserError(f"the condition of {site.what} assigns a buffer of a module", code="MLC0608",
                                loc=site.loc, hint="compute it in the body, and test what it gave")
            return goes_on

        return _while(test, lambda x: state.leave(body(state.enter(x))), init, site, lazily), []
    return _with_buffers(init, site, record)[0]


def _while(going: Callable[[Trees], Any], body: Callable[[Trees], Trees], init: Trees, site: Site,
           lazily: bool) -> list[Any]:
    trace = current()

    def record(patterns: Patterns) -> tuple[list[Block], Trees, Value]:
        before, after = Block(_types(patterns)), Block(_types(patterns))
        with trace.region(before, site.loc):
            goes_on = condition(going(_trees(patterns, before.args, trace)), site)
        try:
            with trace.region(after, site.loc):
                return [before, after], body(_trees(patterns, after.args, trace)), goes_on
        except BaseException:
            discard(before)
            raise

    patterns, (before, after), out, goes_on = _settled(init, site, lazily, record)
    with trace.region(after, site.loc), located(site.loc):
        scf.Yield(tuple(_values(patterns, out)))
    with trace.region(before, site.loc), located(site.loc):
        scf.Condition(goes_on, tuple(before.args))
    with located(site.loc):
        values = tuple(_values(patterns, init))
        op = scf.While(values, Region(before), Region(after), tuple(_types(patterns)))
    return _trees(patterns, op.results, trace)


def for_(lower: Value, upper: Value, body: Callable[[Value, Trees], tuple[Trees, Rows | None]], init: Trees,
         site: Site, lazily: bool = False) -> Recorded:
    """`for i in range(lower, upper): x, rows = body(i, x)`, recorded as a loop: (x, the rows of all iterations)."""
    def record(init: Trees, site: Site, state: _State) -> Recorded:
        def step(i: Value, carried: Trees) -> tuple[Trees, Rows | None]:
            out, rows = body(i, state.enter(carried))
            return state.leave(out), rows
        return _for(lower, upper, step, init, site, lazily)
    return _with_buffers(init, site, record)


def _for(lower: Value, upper: Value, body: Callable[[Value, Trees], tuple[Trees, Rows | None]], init: Trees,
         site: Site, lazily: bool) -> Recorded:
    trace = current()

    def record(patterns: Patterns) -> tuple[list[Block], Trees, Rows | None]:
        block = Block([index, *_types(patterns)])
        with trace.region(block, site.loc):
            out, rows = body(block.args[0], _trees(patterns, block.args[1:], trace))
        return [block], out, rows

    patterns, (block,), out, rows = _settled(init, site, lazily, record)
    with located(site.loc):
        with trace.region(block, site.loc):
            values = _values(patterns, out)
            if rows is not None:
                values += rows.put(block)
            scf.Yield(tuple(values))
        count = len(values) - (len(rows.now) if rows is not None else 0)
        begin = _values(patterns, init) + (rows.begin() if rows is not None else [])
        op = scf.For(lower, upper, control.as_index(1), tuple(begin), Region(block))
    return _trees(patterns, op.results[:count], trace), [Tracer(v, trace) for v in op.results[count:]]


@dataclass(frozen=True)
class Rows:
    """Rows that an iteration appends to stacked arrays: the rows `now`, and at which place of `length`."""

    now: list[Tracer]
    at: Value
    length: Dim

    def begin(self) -> list[Value]:
        return [broadcast_to(number(0, t.type.dtype), (self.length, *t.shape)).value for t in self.now]

    def put(self, block: Block) -> list[Value]:
        """The arrays, which become further arguments of the loop's body, with the rows in their places."""
        out = list[Value]()
        for t in self.now:
            array = block.add_arg(t.type.with_shape((self.length, *t.shape)))
            row = reshape(t, (1, *t.shape)).value
            starts = (self.at, *(number(0, i64).value for _ in t.shape))
            out.append(T.DynamicUpdateSlice(array, row, starts).result if self.length != 0 else array)
        return out
