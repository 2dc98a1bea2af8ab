"""A program for every form of Python's grammar, in which a tensor decides or is what is acted upon: functions and names.

Loops and other statements are in grammar_statements.py, expressions in grammar_expressions.py.

Each takes a float32 vector v of three elements. Beside it stands what becomes of it when it is recorded: "compiled" (one
recording serves all inputs), or the code of the error that refuses it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import mlc

PROGRAMS: dict[str, tuple[Callable[[Any], Any], str]] = {}
"""By name: the program, and "compiled" or the code of the error."""


def program(becomes: str = "compiled") -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    def note(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        PROGRAMS[f.__name__] = f, becomes
        return f
    return note


# -- functions, returns, names ----------------------------------------------------------------------------------------
@program()
def early_return(v: Any) -> Any:
    if v.sum() > 3:
        return v * 2
    return v


@program()
def nested_function(v: Any) -> Any:
    def inner(x: Any, scale: float = 2.0) -> Any:
        return x * scale if x.sum() > 3 else -x
    return inner(v) + inner(v, scale=3.0)


@program()
def closure_reads_a_later_value(v: Any) -> Any:
    scale = 1.0

    def inner(x: Any) -> Any:
        return x * scale
    scale = 3.0
    return inner(v)


@program()
def closure_writes(v: Any) -> Any:
    total = v * 0

    def add(x: Any) -> None:
        nonlocal total
        if x.sum() > 3:
            total = total + x
    add(v)
    add(v * 2)
    return total


@program()
def lambda_in_a_branch(v: Any) -> Any:
    f = (lambda x: x + 1) if v.shape[0] == 3 else (lambda x: x - 1)
    return f(v) if v.sum() > 3 else v


@program()
def recursion_that_python_ends(v: Any) -> Any:
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else x * power(x, n - 1)
    return power(v, 4)


@program()
def decorated(v: Any) -> Any:
    def twice(f: Any) -> Any:
        @functools.wraps(f)
        def both(x: Any) -> Any:
            return f(f(x))
        return both

    @twice
    def step(x: Any) -> Any:
        if x.sum() > 3:
            return x * 0.5
        return x + 1
    return step(v)


@program()
def star_arguments(v: Any) -> Any:
    def add(*xs: Any, **named: Any) -> Any:
        return sum(xs) + named["last"] if v.sum() > 3 else named["last"]
    return add(*[v, v], **{"last": v * 2})


@program()
def a_class_within(v: Any) -> Any:
    class Box:
        def __init__(self, x: Any) -> None:
            self.x = x

        def get(self) -> Any:
            return self.x if self.x.sum() > 3 else -self.x
    return Box(v).get()


@program()
def a_property_and_an_operator(v: Any) -> Any:
    class Box:
        def __init__(self, x: Any) -> None:
            self.x = x

        @property
        def size(self) -> Any:
            return self.x.sum() if self.x.sum() > 3 else self.x.max()

        def __add__(self, other: Any) -> Any:
            return Box(self.x + other)
    return (Box(v) + 1).size


# -- assignments ------------------------------------------------------------------------------------------------------
@program()
def targets(v: Any) -> Any:
    a, (b, *c) = v[0], (v[1], v[2], v[0])
    if a > 1:
        (a, b), c = (b, a), [c[1], c[0]]
    return a - b * 2 + c[0] * 3 + c[1]


@program()
def several_targets(v: Any) -> Any:
    a = b = v
    if v.sum() > 3:
        a = b = v * 2
    return a + b


@program()
def augmented_names(v: Any) -> Any:
    x = v * 1
    for _ in range(3):
        if x.sum() > 3:
            x += v
        else:
            x *= 2
            x -= 1
    return x


@program()
def augmented_element(v: Any) -> Any:
    xs = [v, v * 2]
    xs[0] += 1
    xs[-1] **= 2
    return xs[0] + xs[1]


@program("MLC0608")
def augmented_element_in_a_branch(v: Any) -> Any:
    xs = [v, v * 2]
    if v.sum() > 3:
        xs[0] += 1
    return xs[0] + xs[1]


@program("MLC0608")
def augmented_element_of_a_call_in_a_branch(v: Any) -> Any:
    xs = [v, v * 2]

    def get() -> Any:
        return xs
    if v.sum() > 3:
        get()[0] += 1
    return xs[0] + xs[1]


@program("MLC0608")
def assigned_element_of_an_element_in_a_branch(v: Any) -> Any:
    xs = [[v, v], [v]]
    if v.sum() > 3:
        xs[0][1] = v * 5
    return xs[0][0] + xs[0][1]


@program("MLC0608")
def a_starred_target_that_is_an_element(v: Any) -> Any:
    xs = [v, v]
    if v.sum() > 3:
        (xs[0], *xs[1:]), _ = (v * 2, v * 3), 0
    return xs[0] + xs[1]


@program("MLC0608")
def a_loop_target_that_is_an_element(v: Any) -> Any:
    xs = [v[0]]
    if v.sum() > 3:
        for xs[0] in (v[1], v[2]):
            pass
    return xs[0]


@program("MLC0608")
def a_with_target_that_is_an_element(v: Any) -> Any:
    xs = [v]
    if v.sum() > 3:
        with contextlib.nullcontext(v * 2) as xs[0]:
            pass
    return xs[0]


@program("MLC0608")
def an_attribute_in_a_branch(v: Any) -> Any:
    box = Box(v)
    if v.sum() > 3:
        box.x = v * 2
    return box.x


@program("MLC0608")
def setattr_in_a_branch(v: Any) -> Any:
    box = Box(v)
    if v.sum() > 3:
        setattr(box, "x", v * 2)
    return box.x


@program("MLC0608")
def a_method_that_assigns_in_a_branch(v: Any) -> Any:
    box = Box(v)
    if v.sum() > 3:
        box.double()
    return box.x


@program("MLC0608")
def appending_in_a_branch(v: Any) -> Any:
    xs = [v]
    if v.sum() > 3:
        xs.append(v)
    return sum(xs)


@program("MLC0608")
def appending_by_another_name_in_a_branch(v: Any) -> Any:
    xs = [v]
    add = xs.append
    if v.sum() > 3:
        add(v)
    return sum(xs)


@program("MLC0608")
def appending_by_the_class_in_a_branch(v: Any) -> Any:
    xs = [v]
    if v.sum() > 3:
        list.append(xs, v)
    return sum(xs)


@program("MLC0608")
def a_dictionary_in_a_branch(v: Any) -> Any:
    d = {"a": v}
    if v.sum() > 3:
        d["a"] = v * 2
        d |= {"b": v}
    return d["a"]


@program("MLC0608")
def a_comprehension_that_appends_in_a_branch(v: Any) -> Any:
    xs = [v]
    if v.sum() > 3:
        [xs.append(v * i) for i in range(2)]
    return sum(xs)


@program("MLC0608")
def functools_reduce_that_appends_in_a_branch(v: Any) -> Any:
    xs = [v]
    if v.sum() > 3:
        list(map(xs.append, [v, v]))
    return sum(xs)


@program("MLC0608")
def an_iterator_goes_on_in_a_branch(v: Any) -> Any:
    it = iter([v, v * 2])
    x = next(it)
    if v.sum() > 3:
        x = next(it)
    return x


@program("MLC0615")
def a_global_that_is_declared(v: Any) -> Any:
    global COUNTER
    COUNTER = 2
    return v * COUNTER if v.sum() > 3 else v


COUNTER = 1


@program("MLC0615")
def a_global_in_a_branch(v: Any) -> Any:
    global COUNTER
    COUNTER = 1
    if v.sum() > 3:
        COUNTER = 2
    return v * COUNTER


@program()
def annotated_assignment(v: Any) -> Any:
    y: Any = v * 2
    z: Any
    if v.sum() > 3:
        z = y
    else:
        z = -y
    return z


@program()
def deleted_name(v: Any) -> Any:
    y = v * 2
    if v.sum() > 3:
        z = y + 1
        del z
    del y
    return v


@program("MLC0607")
def a_name_that_only_one_branch_gives(v: Any) -> Any:
    if v.sum() > 3:
        z = v
    return z


class Box:
    def __init__(self, x: Any) -> None:
        self.x = x

    def double(self) -> None:
        self.x = self.x * 2


# -- assignment expressions -------------------------------------------------------------------------------------------
@program()
def named_in_if(v: Any) -> Any:
    if (s := v.sum()) > 3:
        v = v + s
    elif (s := v.max()) > 1:
        v = v - s
    return v * s


@program()
def named_in_while(v: Any) -> Any:
    while (s := v.sum()) < 20:
        v = v + s + 1
    return v, s


@program()
def named_in_while_with_jumps(v: Any) -> Any:
    while (s := v.sum()) < 40:
        if s > 25:
            break
        v = v + 1
        if s > 10:
            continue
        v = v + s
    return v, s


@program("MLC0350")
def named_in_a_later_operand(v: Any) -> Any:
    t = v.sum()
    if v.sum() > 3 and (t := v.max()) > 1:
        v = v + t
    return v + t


@program("MLC0350")
def named_in_a_conditional_expression(v: Any) -> Any:
    y = (s := v.sum()) if v.sum() > 3 else (s := v.max())
    return y + s


@program("MLC0350")
def named_in_a_call(v: Any) -> Any:
    return mlc.maximum(t := v * 2, v) + t if v.sum() > 3 else v


@program("MLC0350")
def named_in_a_comprehension(v: Any) -> Any:
    xs = [t for i in range(3) if (t := v[i]) > 1]
    return sum(xs) + t


@program()
def named_without_a_tensor(v: Any) -> Any:
    if (n := v.shape[0]) == 3 and v.sum() > 3:
        v = v * n
    return v
