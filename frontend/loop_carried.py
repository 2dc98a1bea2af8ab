"""Loops and conditions on tensors: loop-carried values, and results of branches.

A loop's body is recorded with the types of the initial values. If it yields other types, it is recorded again with the
joins of both (a Python number takes on the type that it is combined with), to a fixed point. With promotion on demand,
a Python value becomes a tensor only if the body changes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from mlc.dialects import scf
from mlc.dialects import tensor as T
from mlc.dialects.tensor import control
from mlc.frontend import tree
from mlc.frontend.abstract_values import (
    AbstractTree,
    AbstractTrees,
    AbstractValue,
    SourceConstruct,
    Trees,
    Undefined,
    abstract_tree,
    join,
    join_trees,
    same_trees,
    trees_of,
    types_of,
    values_of,
)
from mlc.frontend.buffers import Buffers
from mlc.frontend.carried_state import Again, CarriedState, as_they_are, with_state
from mlc.frontend.functionalization import captured, replace, spoil
from mlc.frontend.operands import boolean, broadcast_to, number, reshape
from mlc.frontend.operation_errors import as_user_error, describe
from mlc.frontend.trace import current, discard
from mlc.frontend.tracer import Tracer
from mlc.ir.core import Block, Region, Value, located
from mlc.ir.diag import Error, Loc, UserTypeError
from mlc.ir.sizes import Dim
from mlc.ir.types import i64, index


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
                values.append(as_they_are(parts[-1], changes))
                assigned.append(buffers.take())
            changed.append(changes.after)
            spoiled += changes.spoiled
        which, bases = sorted({*assigned[0], *assigned[1]}), [*changed[0] | changed[1]]
        held = {i: captured(buffers.before[i]) for i in which}
        state = [[*(new[i] if i in new else after.get(held[i], held[i]) for i in which),
                  *(after.get(x, x) for x in bases)] for new, after in zip(assigned, changed)]
        first, second = ([*part, *rest] for part, rest in zip(parts, state))
        site = with_state(site, buffers, which, bases)

        def differ(path: str, a: Any, b: Any) -> NoReturn:
            raise UserTypeError(f"{path} is {a} in one branch of {site.what} and {b} in the other",
                                code="MLC0603", loc=site.loc, hint="give both the same structure, shape and dtype")

        abstract = join_trees(site, [abstract_tree(x, on_demand) for x in first], second, on_demand, differ)
        abstract = [_fold_unchanged(p, x, y) for p, x, y in zip(abstract, first, second)]
        for block, found, rest in zip(blocks, values, state):
            with trace.region(block, site.loc), located(site.loc):
                scf.Yield(tuple(values_of(abstract, [*found, *rest])))
    except BaseException:
        for block in blocks:
            discard(block)
        buffers.restore()
        raise
    with located(site.loc):
        op = scf.If(pred, Region(blocks[0]), Region(blocks[1]), tuple(types_of(abstract)))
    results = trees_of(abstract, op.results, trace)
    count = len(parts[0])
    buffers.assign(dict(zip(which, results[count:])))
    for x, new in zip(bases, results[count + len(which):]):
        replace(x, new.value)
    for x, loc in spoiled:
        spoil(x, loc)
    return results[:count]


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
    memory = current().root.loops
    abstract = _widened([abstract_tree(x, on_demand) for x in init], memory.abstract)

    def differ(path: str, a: Any, b: Any) -> NoReturn:
        raise UserTypeError(f"{site.what} carries {path}, which begins as {a} and is {b} after the body",
                            code="MLC0601", loc=site.loc,
                            hint="begin with what the body gives (mlc.zeros of that shape, a cast), or cast in the "
                                 "body")

    while True:
        memory.begin()
        blocks, after, rest = record(abstract)
        try:
            wider = join_trees(site, abstract, after, on_demand, differ)
        except BaseException:
            for block in blocks:
                discard(block)
            raise
        if same_trees(wider, abstract):
            memory.abstract = abstract
            return abstract, blocks, after, rest
        for block in blocks:
            discard(block)
        abstract = wider


def _widened(abstract: AbstractTrees, known: AbstractTrees) -> AbstractTrees:
    """The joins of abstract values with those that the loop was found to carry, where there are any."""
    if len(abstract) != len(known):
        return abstract
    return [p if p is None or q is None or p.structure != q.structure else
            AbstractTree(p.structure, [join(k, l) or k for k, l in zip(p.leaves, q.leaves)])
            for p, q in zip(abstract, known)]


LoopResults = tuple[list[Any], list[Tracer]]
"""Carried values after a loop, and its stacked arrays."""


def _with_state_carried(init: Trees, site: SourceConstruct,
                        record: Callable[[Trees, SourceConstruct, CarriedState], LoopResults]) -> LoopResults:
    """Record a loop with the state that its body changes as loop-carried values."""
    root = current().root
    around, memory = root.loops, root.loops.of_next(site.loc)
    state = CarriedState(Buffers.in_progress(), init, memory)
    root.loops = memory
    try:
        while True:
            named = with_state(site, state.buffers, state.which, state.bases)
            try:
                found, rows = record(state.before, named, state)
                break
            except Again:
                pass
    except BaseException:
        state.restore()
        raise
    finally:
        root.loops = around
    state.remember(memory)
    return list(state.done(found)), rows


def while_(predicate: Callable[[Trees], Any], body: Callable[[Trees], Trees], init: Trees, site: SourceConstruct,
           on_demand: bool = False) -> list[Any]:
    """Record `while predicate(x): x = body(x)` as a loop."""
    def record(init: Trees, site: SourceConstruct, state: CarriedState) -> LoopResults:
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
        before, after = Block(types_of(abstract)), Block(types_of(abstract))
        with trace.region(before, site.loc):
            goes_on = condition(predicate(trees_of(abstract, before.args, trace)), site)
        try:
            with trace.region(after, site.loc):
                return [before, after], body(trees_of(abstract, after.args, trace)), goes_on
        except BaseException:
            discard(before)
            raise

    abstract, (before, after), out, goes_on = _fixed_point(init, site, on_demand, record)
    with trace.region(after, site.loc), located(site.loc):
        scf.Yield(tuple(values_of(abstract, out)))
    with trace.region(before, site.loc), located(site.loc):
        scf.Condition(goes_on, tuple(before.args))
    with located(site.loc):
        values = tuple(values_of(abstract, init))
        op = scf.While(values, Region(before), Region(after), tuple(types_of(abstract)))
    return trees_of(abstract, op.results, trace)


def for_(lower: Value, upper: Value, body: Callable[[Value, Trees], tuple[Trees, StackedRows | None]], init: Trees,
         site: SourceConstruct, on_demand: bool = False) -> LoopResults:
    """Record `for i in range(lower, upper): x, rows = body(i, x)` as a loop; the result is (x, stacked rows)."""
    def record(init: Trees, site: SourceConstruct, state: CarriedState) -> LoopResults:
        def step(i: Value, carried: Trees) -> tuple[Trees, StackedRows | None]:
            out, rows = body(i, state.enter(carried))
            return state.leave(out), rows
        return _for(lower, upper, step, init, site, on_demand)
    return _with_state_carried(init, site, record)


def _for(lower: Value, upper: Value, body: Callable[[Value, Trees], tuple[Trees, StackedRows | None]], init: Trees,
         site: SourceConstruct, on_demand: bool) -> LoopResults:
    trace = current()

    def record(abstract: AbstractTrees) -> tuple[list[Block], Trees, StackedRows | None]:
        block = Block([index, *types_of(abstract)])
        with trace.region(block, site.loc):
            out, rows = body(block.args[0], trees_of(abstract, block.args[1:], trace))
        return [block], out, rows

    abstract, (block,), out, rows = _fixed_point(init, site, on_demand, record)
    with located(site.loc):
        with trace.region(block, site.loc):
            values = values_of(abstract, out)
            if rows is not None:
                values += rows.put(block)
            scf.Yield(tuple(values))
        count = len(values) - (len(rows.now) if rows is not None else 0)
        begin = values_of(abstract, init) + (rows.begin() if rows is not None else [])
        op = scf.For(lower, upper, control.as_index(1), tuple(begin), Region(block))
    return trees_of(abstract, op.results[:count], trace), [Tracer(v, trace) for v in op.results[count:]]


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
