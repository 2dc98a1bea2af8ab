"""Blocks and statements: bindings, and `if`, `for` and `while` as Python has them.

On compile-time constants they are evaluated. On tensors they are recorded: the variables that a block assigns are
results of the branch, or loop-carried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend import loop_carried, tree
from mlc.frontend.abstract_values import UNDEFINED, SourceConstruct
from mlc.frontend.control import bound, counter, row
from mlc.frontend.language import library
from mlc.frontend.language import syntax as S
from mlc.frontend.language.bindings import assign, declare, give, hold, is_buffer, misplaced, misplaced_yield, unused
from mlc.frontend.language.expressions import EVALUATE, bind, evaluate, look_up, names_in, nothing_is_known, unrolled
from mlc.frontend.language.flow import ALWAYS, NEVER, SOMETIMES, assigned, returns, statements_in
from mlc.frontend.language.library import call_library
from mlc.frontend.language.operators import binary
from mlc.frontend.language.values import (
    POISON,
    Environment,
    Missing,
    Poison,
    Span,
    Zipped,
    deeper,
    is_function,
    is_poisoned,
    report,
    session,
    shown,
)
from mlc.frontend.loop_carried import StackedRows
from mlc.frontend.operands import to_default_dtype, tracer
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.trace import current
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError
from mlc.ir.sizes import Size

NOTHING = object()
"""Sentinel result of a block that does not return."""
_IN_ONE_BRANCH, _IN_THE_LOOP = Missing("has a value in one branch only"), Missing("has a value within the loop only")
_VALUES = (Tensor, int, float, Size, str, tuple, list, dict, tree.AttributeTree, Missing, Poison)
"""Classes of what a branch or loop can give, besides none."""


def run_block(body: Sequence[S.Node], env: Environment) -> Any:
    """Run a block: its return value, or NOTHING."""
    for i, statement in enumerate(body):
        with deeper(env, statement.at):
            try:
                if isinstance(statement, S.If):
                    out = _if(statement, body[i + 1:], env)
                    if out is not NOTHING:
                        return out
                elif isinstance(statement, S.Returned):
                    return None if statement.value is None else evaluate(statement.value, env)
                elif isinstance(statement, S.Broken):
                    for name in statement.names:
                        env.names[name] = POISON
                    run_block(statement.body, env.copy())
                elif session.around is not None:
                    session.around(_STATEMENTS[type(statement)], statement, env)
                else:
                    _STATEMENTS[type(statement)](statement, env)
            except UserError as error:
                report(error)
                for name in assigned([statement]):
                    env.names[name] = POISON
                if returns([statement]) != NEVER:
                    return POISON
    return NOTHING


# -- branches ---------------------------------------------------------------------------------------------------------
def _site(what: str, node: S.Node, env: Environment, names: Sequence[str]) -> SourceConstruct:
    return SourceConstruct(what, env.loc(node.at), tuple(names))


def _located(f: Callable[[], Any], what: str, node: S.Node, env: Environment) -> Any:
    return call_library(f, what, (), {}, node.at, env)


def _if(node: S.If, rest: Sequence[S.Node], env: Environment) -> Any:
    """Return value of the function if the branches return; the statements after this one then belong to them."""
    condition = evaluate(node.condition, env)
    if isinstance(condition, bool):
        return run_block(node.body if condition else node.other, env)
    if condition is POISON:
        for body in (node.body, node.other):
            run_block(body, env.copy())
        for name in assigned([node]):
            env.names[name] = POISON
        return POISON if returns([node]) == ALWAYS else NOTHING
    if not isinstance(condition, Tensor):
        raise env.error(node.condition.at, "MLC0634", f"{shown(condition)} is neither true nor false",
                          "compare it: x != 0")
    ways = returns(node.body), returns(node.other)
    if SOMETIMES in ways and ALWAYS not in ways:
        raise env.error(node.at, "MLC0644", "a branch returns on some of its ways and not on others",
                          "return on all ways of one of the branches, or on none of both")
    if ALWAYS in ways:
        bodies = [[*body, *([] if way == ALWAYS else rest)] for body, way in zip((node.body, node.other), ways)]
        if any(returns(body) != ALWAYS for body in bodies):
            raise env.error(node.at, "MLC0644", "one way through the function returns and the other does not",
                              "end both with return")
        return _branches(node, condition, ("the result",), [lambda f=f: [run_block(f, env.copy())]  # type: ignore[misc]
                                                           for f in bodies], env)[0]
    _assigning(node, condition, env)
    return NOTHING


def _assigning(node: S.If, condition: Any, env: Environment) -> None:
    """An `if` whose branches assign."""
    both = set(assigned(node.body)) & set(assigned(node.other))
    own = _own([node], env)
    names = [n for n in own if n in both or _has_value(n, env)]

    def run(body: Sequence[S.Node]) -> list[Any]:
        inner = env.copy()
        run_block(body, inner)
        return [_value_of(n, inner) for n in names]

    found = _branches(node, condition, names, [lambda: run(node.body), lambda: run(node.other)], env)
    env.names.update(dict.fromkeys(own, _IN_ONE_BRANCH) | dict(zip(names, found)))


def _own(body: Sequence[S.Node], env: Environment) -> list[str]:
    """The names that statements assign, without the buffers of the model, which have their values there."""
    return [n for n in assigned(body) if not is_buffer(n, env)]


def _value_of(name: str, env: Environment) -> Any:
    """The value that a name has at the end of a branch, or before a loop. A function of outside is none: blocks give
    values, and a block that assigns its name has another thing in mind."""
    if name in env.names:
        return env.names[name]
    try:
        found = look_up(name, env)
    except KeyError:
        return _IN_ONE_BRANCH
    return found if found is None or isinstance(found, _VALUES) else _IN_ONE_BRANCH


def _has_value(name: str, env: Environment) -> bool:
    return not isinstance(_value_of(name, env), Missing)


def _branches(node: S.Node, condition: Any, names: Sequence[str], ways: Sequence[Callable[[], list[Any]]],
              env: Environment) -> list[Any]:
    """The values of names after one of two branches; POISON if one of them is, Missing if one has none."""
    site = _site("this if", node, env, names)
    none: dict[int, Any] = {}

    def side(way: Callable[[], list[Any]]) -> list[Any]:
        values = way()
        for i, x in enumerate(values):
            if is_poisoned(x) or x is NOTHING:
                none[i] = POISON
            elif isinstance(x, Missing):
                none.setdefault(i, _IN_ONE_BRANCH)
        return [UNDEFINED if i in none else x for i, x in enumerate(values)]

    with deeper(env, node.at, 4):
        found = _located(lambda: loop_carried.branch(loop_carried.condition(condition, site), lambda: side(ways[0]),
                                                lambda: side(ways[1]), site, True), "if", node, env)
    return [POISON if found is POISON else none.get(i, found[i]) for i in range(len(names))]


def chosen(node: S.Choice, env: Environment) -> Any:
    """value if condition else other: only the selected operand is computed"""
    condition = evaluate(node.condition, env)
    if isinstance(condition, bool):
        return evaluate(node.value if condition else node.other, env)
    if condition is POISON:
        evaluate(node.value, env), evaluate(node.other, env)
        return POISON
    if not isinstance(condition, Tensor):
        raise env.error(node.condition.at, "MLC0634", f"{shown(condition)} is neither true nor false",
                          "compare it: x != 0")
    return _branches(node, condition, ("the value",), [lambda: [evaluate(node.value, env)],
                                                      lambda: [evaluate(node.other, env)]], env)[0]


# -- loops ------------------------------------------------------------------------------------------------------------
class _Body:
    """The body of a loop as a function of the loop-carried values.

    own     all names that the loop assigns
    names   those with a value before it, which are carried
    """

    def __init__(self, node: S.While | S.For, env: Environment) -> None:
        through = names_in(node.target) if isinstance(node, S.For) else []
        self.node = node
        self.own = [*dict.fromkeys([*through, *_own(node.body, env)])]
        self.names = [n for n in self.own if _has_value(n, env) and (n in env.names or n not in through)]
        self.env = env
        start = [_value_of(n, env) for n in self.names]
        self.wrong = {n for n, x in zip(self.names, start) if is_poisoned(x)}
        self.start = [None if n in self.wrong else x for n, x in zip(self.names, start)]

    def inside(self, values: Sequence[Any]) -> Environment:
        inner = self.env.copy()
        inner.names.update({n: x if n not in self.wrong else POISON for n, x in zip(self.names, values)})
        return inner

    def after(self, inner: Environment, values: Sequence[Any]) -> list[Any]:
        """Values of the names at the end of the block; for POISON, the values before it."""
        for n in self.own:
            if n not in self.names and n not in self.env.names and is_function(inner.names.get(n)) and (
                    n in self.env.scope.names() or library.find(n) is not None):
                raise self.env.error(self.node.at, "MLC0646", f"{n} is a function outside of the loop, which gives the "
                                     "name to another one", "choose another name")
        now = [inner.names[n] for n in self.names]
        self.wrong.update(n for n, x in zip(self.names, now) if is_poisoned(x))
        return [before if n in self.wrong else x for n, x, before in zip(self.names, now, values)]

    def finish(self, found: Any) -> None:
        """Assign the values after the loop to the names."""
        self.env.names.update(dict.fromkeys(self.own, _IN_THE_LOOP))
        for i, n in enumerate(self.names):
            self.env.names[n] = POISON if n in self.wrong or found is POISON else found[i]


def _no_return(node: S.While | S.For, env: Environment) -> None:
    if returns(node.body) != NEVER:
        at = next((x.at for x in statements_in(node.body) if isinstance(x, S.Returned)), node.at)
        raise env.error(at, "MLC0644", "a loop on tensors cannot be left by return",
                          "give a name the value, and return it after the loop")


def _while(node: S.While, env: Environment) -> None:
    _no_return(node, env)
    body = _Body(node, env)
    site = _site("this loop", node, env, body.names)

    def going(values: Sequence[Any]) -> Any:
        found = evaluate(node.condition, body.inside(values))
        if found is POISON:
            return False
        if not isinstance(found, bool | Tensor):
            raise env.error(node.condition.at, "MLC0634", f"{shown(found)} is neither true nor false",
                              "compare it: x != 0")
        return found

    def step(values: Sequence[Any]) -> list[Any]:
        inner = body.inside(values)
        run_block(node.body, inner)
        return body.after(inner, values)

    with deeper(env, node.at, 4):
        body.finish(_located(lambda: loop_carried.while_(going, step, body.start, site, True), "while", node, env))


def _look_inside(node: S.For, env: Environment) -> None:
    """Check the body of a loop whose source has an error."""
    inner = env.copy()
    bind(node.target, POISON, inner)
    run_block([x for x in node.body if not isinstance(x, S.Yielded)], inner)
    for n in assigned([node]):
        env.names[n] = POISON


def _for(node: S.For, env: Environment) -> None:
    source = evaluate(node.source, env)
    if nothing_is_known(source):
        _look_inside(node, env)
        return
    is_static = node.unrolled or not isinstance(source, Span | Zipped | Tensor) or (
        isinstance(source, Zipped) and all(isinstance(x, list | tuple) for x in source.parts))
    last = node.body[-1] if node.body else None
    for x in statements_in(node.body, collecting=False):
        if isinstance(x, S.Yielded) and (node.results is None or x is not last):
            raise env.error(x.at, "MLC0642", "yield stands last in a loop whose values are collected",
                              "write results = for x in xs:, and yield at the end of its block")
    if node.results is not None and not isinstance(last, S.Yielded):
        raise env.error(node.at, "MLC0642", "the loop collects values and yields none",
                          "end its block with yield value")
    if is_static:
        _unrolled(node, source, env)
        return
    _no_return(node, env)
    body = _Body(node, env)
    with deeper(env, node.at, 4):
        _recorded(node, source, body, env)


def _unrolled(node: S.For, source: Any, env: Environment) -> None:
    if returns(node.body) != NEVER:
        _no_return(node, env)
    results = []
    for value in unrolled(source, node.source.at, env):
        bind(node.target, value, env)
        statements = node.body
        if node.results is not None:
            *statements, last = node.body
        run_block(statements, env)
        if node.results is not None:
            results.append(evaluate(last.value, env))  # type: ignore[attr-defined]
    if node.results is not None:
        if is_poisoned(results):
            give(node.results, POISON, env)
            return
        if not results:
            raise env.error(node.source.at, "MLC0632", "there is nothing to go through, so that nothing tells the "
                              "type of what is collected", "use a range or list that is not empty")
        flat = [tree.flatten(x) for x in results]
        stacked = [call_library(OPERATIONS["stack"], "for", (list(xs),), {}, node.at, env)
                   for xs in zip(*(leaves for leaves, _ in flat))]
        give(node.results, flat[0][1].unflatten(stacked), env)


def _recorded(node: S.For, source: Any, body: _Body, env: Environment) -> None:
    """A loop on tensors: over a range, or over the rows of tensors."""
    site = _site("this loop", node, env, body.names)
    parts = source.parts if isinstance(source, Zipped) else (source,)
    spans = [x for x in parts if isinstance(x, Span)]
    arrays = [x for x in parts if not isinstance(x, Span)]
    for x in arrays:
        if not isinstance(x, Tensor) or not x.shape:
            raise env.error(node.source.at, "MLC0632", f"{shown(x)} is nothing to go through",
                              "use a range first..last, or a tensor with rows")
    if not spans:
        length = _same_length([x.shape[0] for x in arrays], node, env)
        first, last = 0, length
    else:
        first, last = spans[0].first, spans[0].last
        if len(parts) > 1:
            lengths = [_length(x, node, env) for x in spans]
            length = _same_length([*lengths, *(x.shape[0] for x in arrays)], node, env)
        else:
            length = _length(spans[0], node, env) if node.results is not None else None
    found: list[Any] = []

    def step(i: Any, values: Sequence[Any]) -> tuple[list[Any], StackedRows | None]:
        inner = body.inside(values)
        at = counter(i, site)
        given = []
        for x in parts:
            if isinstance(x, Span):
                given.append(at if x is spans[0] else binary("+", x.first, binary("-", at, first, node.at, env),
                                                             node.at, env))
            else:
                offset = at if not spans else binary("-", at, first, node.at, env)
                given.append(row(tracer(x), tracer(offset), length))
        bind(node.target, given[0] if not isinstance(source, Zipped) else tuple(given), inner)
        statements = node.body
        if node.results is not None:
            *statements, last_one = node.body
        run_block(statements, inner)
        if node.results is None:
            return body.after(inner, values), None
        value = evaluate(last_one.value, inner)  # type: ignore[attr-defined]
        if is_poisoned(value):
            found[:] = [POISON]
            return body.after(inner, values), None
        leaves, structure = tree.flatten(value)
        found[:] = [structure]
        place = current().local(tracer(at if first == 0 else binary("-", at, first, node.at, env)))
        return body.after(inner, values), StackedRows([_strong(x) for x in leaves], place, length)

    def run() -> Any:
        return loop_carried.for_(bound(first, site), bound(last, site), step, body.start, site, True)

    out = _located(run, "for", node, env)
    body.finish(out if out is POISON else out[0])
    if node.results is not None:
        wrong = out is POISON or not found or found[0] is POISON
        give(node.results, POISON if wrong else found[0].unflatten(out[1]), env)


def _strong(x: Any) -> Tracer:
    return to_default_dtype(tracer(x))


def _length(span: Span, node: S.For, env: Environment) -> Any:
    if isinstance(span.first, Tensor) or isinstance(span.last, Tensor):
        raise env.error(node.source.at, "MLC0632", "what is collected over a range of tensors has no size that is "
                          "known", "use numbers or sizes as bounds")
    return max(0, span.last - span.first) if isinstance(span.last - span.first, int) else span.last - span.first


def _same_length(lengths: Sequence[Any], node: S.For, env: Environment) -> Any:
    if any(n != lengths[0] for n in lengths):
        raise env.error(node.source.at, "MLC0632", f"lengths {' and '.join(map(str, lengths))} are gone through "
                          "together", "zip what is equally long")
    return lengths[0]


_STATEMENTS: dict[type, Callable[[Any, Environment], None]] = {
    S.Assigned: assign, S.Declared: declare, S.Evaluated: unused, S.Asserted: hold,
    S.Yielded: misplaced_yield, S.While: _while, S.For: _for, S.Function: misplaced, S.Model: misplaced,
    S.Import: misplaced,
}
EVALUATE[S.Choice] = chosen
