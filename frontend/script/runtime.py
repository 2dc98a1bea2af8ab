"""Runtime of rewritten functions: Python semantics on Python values, recorded operations on tensors."""

from __future__ import annotations

import functools
import itertools
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mlc.dialects import tensor as T
from mlc.frontend import loop_carried, tree
from mlc.frontend.abstract_values import (
    UNDEFINED,
    SourceConstruct,
    Trees,
    Undefined,
    abstract_value,
    is_array,
    join,
)
from mlc.frontend.functionalization import after_branch
from mlc.frontend.location import user_loc
from mlc.frontend.operands import boolean, number, reshape
from mlc.frontend.python_arithmetic import on_numbers
from mlc.frontend.refusals import asking, attempt, refusal
from mlc.frontend.script import builtin, cached_calls, capture
from mlc.frontend.script import changes as python_state
from mlc.frontend.script.builtin import Steps
from mlc.frontend.script.capture import way_out
from mlc.frontend.script.jumps import VALUE
from mlc.frontend.script.reach import Place
from mlc.frontend.script.report import UNRECORDED
from mlc.frontend.script.undefined import Maybe, unbound
from mlc.frontend.tensor import OPERATIONS
from mlc.frontend.trace import current, note, state
from mlc.frontend.tracer import Tracer, as_number, texts, value_of_number
from mlc.frontend.tree import AttributeTree
from mlc.ir.core import located
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import i64

__all__ = ["UNDEFINED", "Variables", "and_", "assert_", "callee", "captured", "chain", "changed", "choose", "for_",
           "grows", "if_", "not_", "or_", "raises", "same", "truths", "use", "way_out", "while_"]

Names = tuple[str, ...]
State = tuple[Any, ...]
Thunk = Callable[[], Any]
R = TypeVar("R")
LOOP = "the `for` loop"
MOST_ITEMS = 1000
"""Items of an iterable of Python that a tensor may leave at any; each of them is an `if`."""


_cell = types.CellType(sys.modules[__name__])


def captured(f: Any) -> Any:
    """Callable to use in place of `f` during recording, rewritten to call the functions of this module."""
    return capture.captured(f, _cell)


def callee(f: Any) -> Any:
    """Callable to use in place of f: f itself while nothing is recorded."""
    if state.trace is None:
        return f
    found = cached_calls.function_called(f) or builtin.replaced(f) or captured(f)
    where = _CALLS.get(id(f))
    if where is None and isinstance(f, types.BuiltinMethodType) and f.__name__ == "sort":
        where = None, "key"
    return found if where is None else functools.partial(_with_function, found, *where)


_CALLS: dict[int, tuple[int | None, str]] = {
    id(f): where for where, fs in {
        (0, ""): (map, filter, functools.reduce, itertools.starmap, itertools.takewhile, itertools.dropwhile,
                  itertools.filterfalse),
        (1, "func"): (itertools.accumulate,), (1, "key"): (itertools.groupby,), (None, "key"): (sorted, min, max),
    }.items() for f in fs}
"""Functions of Python that call an argument: its position, if it has one, and its keyword."""


def _with_function(f: Any, position: int | None, keyword: str, /, *args: Any, **keywords: Any) -> Any:
    """Call such a function; the argument that it calls is recorded as where it is called by its name."""
    if position is not None and position < len(args) and args[position] is not None:
        args = (*args[:position], callee(args[position]), *args[position + 1:])
    if keywords.get(keyword) is not None:
        keywords[keyword] = callee(keywords[keyword])
    return f(*args, **keywords)


def use(value: Any, name: str) -> Any:
    """Read a variable that may be unassigned."""
    if isinstance(value, Undefined):
        unbound(value, name)
    return value


def changed(x: R, attribute: str | None) -> R:
    """Check that an attribute or element of x may be assigned, and return x. Buffers of modules are loop-carried."""
    if not (isinstance(x, AttributeTree) and attribute in x._buffers):
        python_state.check(x, f"a {type(x).__name__} is changed")
    return x


def grows(x: Any) -> None:
    """Check that x may be changed in place by `x += ...`."""
    if isinstance(x, python_state.CONTAINERS):
        changed(x, None)


def is_tensor(x: Any) -> bool:
    """Whether the value of x is known only at run time."""
    return isinstance(x, Tracer)


def decided(test: Any) -> bool:
    """The truth of a Python value, or of a captured tensor, which reports note."""
    found = bool(test)
    if state.trace is not None and is_array(test):
        note("value", f"a tensor from outside is {found}, and the function was recorded for that")
    return found


# -- expressions ------------------------------------------------------------------------------------------------------
def truth(x: Tracer, what: str) -> Tracer:
    """The truth of a tensor of one element, as a bool tensor of no dimensions."""
    with located(user_loc()):
        found = boolean(x)
        if any(d != 1 for d in found.shape):
            raise UserTypeError(f"{what} asks whether a {x.type} is true, which has more than one element",
                                code="MLC0602", loc=user_loc(),
                                hint="say which elements decide: mlc.all(...) or mlc.any(...)")
        return reshape(found, ())


def not_(x: Any) -> Any:
    return as_number(OPERATIONS["logical_not"](truth(x, "`not`"))) if is_tensor(x) else not x


def same(x: Any, y: Any) -> bool:
    """`x is y`"""
    if x is y:
        return True
    captures = state.trace.root.captures if state.trace is not None and (is_tensor(x) or is_tensor(y)) else None
    return captures is not None and captures.are_one(x, y)


def truths(x: Any) -> Any:
    """An operand of `and` or `or` in a boolean context: a bool, or a tensor."""
    return x if is_tensor(x) else bool(x)


def and_(a: Any, b: Thunk, cheap: bool) -> Any:
    if not is_tensor(a):
        return a and b()
    return _either(a, b, lambda: a, "and", cheap)


def or_(a: Any, b: Thunk, cheap: bool) -> Any:
    if not is_tensor(a):
        return a or b()
    return _either(a, lambda: a, b, "or", cheap)


def _either(test: Tracer, a: Thunk, b: Thunk, word: str, cheap: bool) -> Any:
    """`test ? a() : b()` of an `and` or `or`; without a branch if both are cheap bools."""
    where = truth(test, f"`{word}`")
    if cheap and test.type.dtype.is_bool:
        other = python_state.perhaps(a if word == "and" else b, f"an operand of `{word}` behind a tensor")
        if isinstance(other, bool) or (is_tensor(other) and other.type.dtype.is_bool and other.shape == test.shape):
            with on_numbers():
                return OPERATIONS[f"logical_{word}"](test, other)
        a, b = ((lambda: other), b) if word == "and" else (a, (lambda: other))
    return _chosen(where, a, b, f"`{word}`")


def choose(test: Any, a: Thunk, b: Thunk, free: bool) -> Any:
    """`a if test else b`"""
    if not is_tensor(test):
        return a() if test else b()
    where = truth(test, "the conditional expression")
    if free:
        with asking(value_of_number(test)):
            x, y = (python_state.perhaps(part, "a part of a conditional expression on a tensor") for part in (a, b))
        k = join(abstract_value(x), abstract_value(y))
        if k is not None and k.type is not None and not k.weak:
            return after_branch(OPERATIONS["where"](where, x, y), (x, y))
        a, b = (lambda: x), (lambda: y)
    return _chosen(where, a, b, "the conditional expression")


def _chosen(where: Tracer, a: Thunk, b: Thunk, what: str) -> Any:
    note("if", what)
    site = SourceConstruct(what, user_loc(), ("its value",))
    frame = sys._getframe(2)
    left: list[Any] = []

    def of(part: Thunk) -> Callable[[], list[Any]]:
        def branch() -> list[Any]:
            left.append(part())
            return left[-1:]
        return branch

    with python_state.region(frame), asking(value_of_number(where)):
        found, = loop_carried.branch(loop_carried.condition(where, site), of(a), of(b), site, on_demand=True)
    leaves, structure = tree.flatten(found)
    if len(leaves) != 1:
        return found
    return structure.unflatten([after_branch(leaves[0], [x for part in left for x in tree.leaves(part)])])


def chain(left: Any, cheap: bool, *pairs: tuple[Callable[[Any, Any], Any], Thunk]) -> Any:
    """`left < middle < right`; each operand is evaluated once, and only if needed."""
    (compare, operand), *rest = pairs
    right = operand()
    found = compare(left, right)
    return and_(found, lambda: chain(right, cheap, *rest), cheap) if rest else found


# -- statements -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Variables:
    """The variables that an `if` or loop assigns.

    get, put   read and write all their values
    live       those that are read after the construct
    head       of a loop: also those that an iteration reads before it assigns them
    """

    get: Callable[[], State]
    put: Callable[[State], None]
    names: Names
    live: Names
    head: Names

    @property
    def places(self) -> set[Place]:
        """Where they are: in cells that `put` assigns, or in its globals."""
        put: Any = self.put
        return {(id(cell), None) for cell in put.__closure__ or ()} | {(id(put.__globals__), n) for n in self.names}

    def recording(self, run: Callable[[], R]) -> R:
        """`run()`; if it fails, the variables are restored."""
        before = self.get()
        try:
            return run()
        except BaseException:
            self.put(before)
            raise


def if_(test: Any, then: Thunk, otherwise: Thunk, variables: Variables, guarded: bool) -> None:
    if not is_tensor(test):
        return then() if decided(test) else otherwise()  # type: ignore[no-any-return]
    site, names = _site("the `if`", variables.names, guarded), variables.names
    before = variables.get()
    wanted = [i for i, n in enumerate(names) if n in variables.live]
    left: list[State] = []

    def run(part: Thunk) -> Callable[[], list[Any]]:
        def branch() -> list[Any]:
            variables.put(before)
            part()
            left.append(variables.get())
            return [left[-1][i] for i in wanted]
        return branch

    note("if", site.what)
    with python_state.region(sys._getframe(1), variables.places), asking(value_of_number(test)):
        found = variables.recording(lambda: loop_carried.branch(
            loop_carried.condition(test, site), run(then), run(otherwise), _only(site, wanted), on_demand=True))
    after: list[Any] = [a if a is b else UNDEFINED for a, b in zip(*left)]
    for i, x in zip(wanted, found):
        missing = [isinstance(s[i], Undefined) for s in left]
        if any(missing) and names[i] != VALUE:
            x = UNDEFINED if all(missing) else Maybe(f"only one branch of the `if` at {site.loc} gives it a value")
        after[i] = after_branch(x, [s[i] for s in left])
    variables.put(tuple(after))


def while_(test: Thunk, body: Thunk, variables: Variables, guarded: bool) -> None:
    while not is_tensor(going := test()):
        if not decided(going):
            return
        body()
    loop = _Loop(_site("the `while` loop", variables.names, guarded), variables)
    note("while", loop.site.what)
    with python_state.region(sys._getframe(1), variables.places), asking(value_of_number(going)):
        loop.run(test, body)


def for_(iterable: Any, body: Callable[[Any], None], stop: Thunk | None, variables: Variables, guarded: bool) -> None:
    if isinstance(iterable, Iterator):
        python_state.check_position(iterable)
        python_state.check(iterable, "an iterator goes on by a `for` loop")
    if (steps := builtin.steps(iterable)) is not None:
        loop = _Loop(_site(LOOP, variables.names, guarded), variables)
        around = python_state.region(sys._getframe(1), variables.places)
        try:
            with attempt(), around, asking(value_of_number(steps.length)):
                loop.over(steps, body, stop)
            steps.leave(stop is not None)
            return note("for", LOOP)
        except UserError as error:
            if steps.known is None or error.code not in UNRECORDED or not around.undone():
                raise
            note("value", f"{LOOP} is written out, {steps.length} times its body: {error.message}")
        iterable = steps
    pending, iterations, before = iter(iterable), 0, _emitted()
    for item in pending:
        body(item)
        iterations += 1
        stopped = stop() if stop is not None else False
        if is_tensor(stopped):
            assert stop is not None
            site = _site(LOOP, variables.names, guarded)
            with python_state.region(sys._getframe(1), variables.places):
                if isinstance(iterable, Iterator):         # its position must not be observable later
                    python_state.check_here(iterable, "an iterator goes on by a `for` loop")
                return _rest(_all_of(pending, iterable, site), isinstance(iterable, range), body, stop, variables, site)
        if stopped:
            break
    if iterations > 1 and _emitted() > before:
        note("value", f"{LOOP} is written out, {iterations} times its body: it goes through Python's values")
    return None


def _all_of(pending: Iterator[Any], iterable: Any, site: SourceConstruct) -> list[Any]:
    """The items that are left; UserError if there are so many that the iterable may be endless."""
    found = list(pending if isinstance(iterable, range) else itertools.islice(pending, MOST_ITEMS + 1))
    if not isinstance(iterable, range) and len(found) > MOST_ITEMS:
        raise refusal(f"{site.what} goes through more than {MOST_ITEMS} items, and a tensor decides how many",
                      code="MLC0609", loc=site.loc, hint="use `while True` and a counter for what has no end")
    return found


def _emitted() -> int:
    """Number of operations recorded so far."""
    return state.trace.root.emitted if state.trace is not None else 0


def _rest(items: Sequence[Any], counts: bool, body: Callable[[Any], None], stop: Thunk, variables: Variables,
          site: SourceConstruct) -> None:
    """Remaining steps of a loop over Python values that a tensor may end: a loop if it counts, else `if`s."""
    if counts and len(items) > 1:
        try:
            with attempt():
                _Loop(site, variables).over(builtin.counted(items), body, stop)
            return note("for", f"{site.what}, after its first step")
        except UserError as error:                         # the body needs the numbers
            if error.code not in UNRECORDED:
                raise
    every = Variables(variables.get, variables.put, variables.names, tuple({*variables.live, *variables.head}), ())
    for item in items:
        if_(not_(stop()), functools.partial(body, item), lambda: None, every, False)
    return note("for", f"{site.what}, as one `if` for each of the {len(items)} steps that are left,")


class _Loop:
    """A loop on tensors and the variables of the function that it assigns.

    carried   numbers of the loop-carried variables: those that an iteration or the code after the loop reads
    """

    def __init__(self, site: SourceConstruct, variables: Variables) -> None:
        self.variables, self.names = variables, variables.names
        before = variables.get()
        self.carried = [i for i, n in enumerate(self.names) if n in variables.head and (
            n == VALUE or not isinstance(before[i], Undefined))]
        self.init = [before[i] for i in self.carried]
        self.left: list[list[Any]] = []                    # per recorded iteration: what it leaves
        self.entered: list[list[Any]] = []                 # per recorded iteration: the leaves carried into it
        self.site = _only(site, self.carried)

    def enter(self, carried: Trees) -> None:
        """Begin an iteration: variables that are not carried are unassigned."""
        self.entered.append(tree.leaves(carried))
        now: list[Any] = [UNDEFINED] * len(self.names)
        for i, x in zip(self.carried, carried):
            now[i] = x
        self.variables.put(tuple(now))

    def leave(self) -> list[Any]:
        now = self.variables.get()
        for i in self.carried:
            if isinstance(now[i], Undefined) and self.names[i] != VALUE:
                unbound(now[i], self.names[i])
        self.left.append([now[i] for i in self.carried])
        return self.left[-1]

    def run(self, test: Thunk, run: Thunk) -> None:
        """`while test(): run()`"""
        def going(x: Trees) -> Any:
            self.enter(x)
            before = self.variables.get()
            found = test()
            if assigned := [n for n, a, b in zip(self.names, before, self.variables.get()) if a is not b]:
                raise refusal(f"the test of {self.site.what} assigns {assigned[0]} by a function that it calls",
                              code="MLC0608", loc=self.site.loc, hint="assign it in the body, or use `while True` and "
                              "an `if` with `break`")
            return found

        def body(x: Trees) -> list[Any]:
            self.enter(x)
            run()
            return self.leave()

        self.done(self.variables.recording(lambda: loop_carried.while_(going, body, self.init, self.site, True)))

    def over(self, steps: Steps, body: Callable[[Any], None], stop: Thunk | None) -> None:
        """Iterate over `steps`; a loop that may end early counts its own steps."""
        def step(at: Tracer, x: Trees) -> list[Any]:
            self.enter(x)
            body(steps.item(at))
            return self.leave()

        if stop is None:
            self.done(self.variables.recording(lambda: loop_carried.for_(
                *builtin.bounds(steps, self.site), lambda i, x: (step(builtin.index(i, self.site), x), None),
                self.init, self.site, True)[0]))
            return

        def going(x: Trees) -> Any:
            self.enter(x[:-1])
            return and_(not_(stop()), lambda: x[-1] < steps.length, True)

        counted = SourceConstruct(self.site.what, self.site.loc, (*self.site.names, "its counter"))
        with located(counted.loc):
            first = number(0, i64, weak=True)
        found = self.variables.recording(lambda: loop_carried.while_(
            going, lambda x: [*step(x[-1], x[:-1]), x[-1] + 1], [*self.init, first], counted, True))
        self.done(found[:-1])

    def done(self, found: Trees) -> None:
        """Give the variables their values after the loop."""
        after: list[Any] = [
            Maybe(f"the loop at {self.site.loc} gives it a value, and may run no iteration") if n in self.variables.live
            else UNDEFINED for n in self.names]
        origins = {id(c): x for entered in self.entered for x, c in zip(tree.leaves(self.init), entered)}
        for i, (x, first, *ends) in zip(self.carried, zip(found, self.init, *self.left)):
            after[i] = after_branch(x, [first, *(origins.get(id(e), e) for e in ends)])
        self.variables.put(tuple(after))


def _only(site: SourceConstruct, which: Sequence[int]) -> SourceConstruct:
    return SourceConstruct(site.what, site.loc, tuple("what is returned" if site.names[i] == VALUE else site.names[i]
                                           for i in which))


def _site(what: str, names: Names, guarded: bool) -> SourceConstruct:
    """Location of a construct on tensors; UserError if it is within `try`."""
    loc = user_loc()
    if guarded:
        raise refusal(f"{what} stands within `try` and depends on a tensor: what it raises only the compiled function "
                      "would know", code="MLC0610", loc=loc,
                      hint="move it out of the `try`, or write both cases as values with mlc.where")
    return SourceConstruct(what, loc, names)


def raises() -> None:
    """Check that a `raise` may be executed here."""
    if state.trace is not None and current().in_region:
        raise refusal("this `raise` depends on a tensor, whose value is known only when the compiled function runs",
                      code="MLC0611", loc=user_loc(), hint="use `assert condition, message`")


def assert_(test: Any, message: Thunk | None, guarded: bool) -> None:
    if is_tensor(test):
        site = _site("the `assert`", (), guarded)
        note("assert", site.what)
        bad = loop_carried.condition(not_(test), site)
        said = "assertion failed" if message is None else str(python_state.perhaps(
            lambda: _message(message), "the message of an `assert` on a tensor"))
        with located(site.loc):
            T.FailIf(bad, said)
        return
    if not test:
        raise AssertionError(*([_message(message)] if message is not None else []))


def _message(message: Thunk) -> Any:
    before, texts.of_types = texts.of_types, True
    try:
        return message()
    finally:
        texts.of_types = before
