"""Programs for Python's loops, `try`, `with`, `raise`, `assert` and `match`; see grammar_programs.py."""

from __future__ import annotations

import contextlib
from typing import Any

import mlc
from tests.grammar_programs import Box, program



# -- loops -----------------------------------------------------------------------------------------------------------
@program()
def while_else(v: Any) -> Any:
    while v.sum() < 20:
        v = v + 1
        if v.max() > 6:
            break
    else:
        v = -v
    return v


@program()
def while_true(v: Any) -> Any:
    while True:
        v = v + 1
        if v.sum() > 20:
            return v


@program()
def while_one_with_two_returns(v: Any) -> Any:
    while 1:
        v = v + 1
        if v.sum() > 20:
            return v
        if v.sum() > 19:
            return -v
        v = v + 0.5


@program()
def while_true_in_a_loop(v: Any) -> Any:
    for i in range(3):
        while True:
            v = v + 1
            if v.sum() > 6 * i:
                break
        else:
            v = v * 0
    return v


@program()
def for_over_a_tensor(v: Any) -> Any:
    total = v[0] * 0
    for i, x in enumerate(v):
        if x > 1:
            total = total + x * i
            continue
        total = total - x
    return total


@program()
def for_else_and_break(v: Any) -> Any:
    for i in range(5):
        v = v + i
        if v.sum() > 40:
            break
    else:
        v = -v
    return v, i


@program()
def for_over_a_list_with_return(v: Any) -> Any:
    for scale in [1.0, 2.0, 3.0]:
        if (v * scale).sum() > 6:
            return v * scale
    return -v


@program()
def for_target_after_the_loop(v: Any) -> Any:
    for i in range(4):
        if v.sum() > 8:
            break
        v = v + 1
    return v * i


@program()
def for_over_zip_and_reversed(v: Any) -> Any:
    total = v[0] * 0
    for a, b in zip(v, reversed(v)):
        total = total + a * b if a > b else total - a
    return total


@program()
def for_over_a_generator_expression(v: Any) -> Any:
    total = v[0] * 0
    for x in (t * 2 for t in v):
        total = total + x if x > 2 else total
    return total


@program()
def for_over_a_dictionary(v: Any) -> Any:
    total = v * 0
    for name, x in {"a": v, "b": v * 2}.items():
        if x.sum() > 6:
            total = total + x * len(name)
    return total


@program()
def a_range_that_a_tensor_bounds(v: Any) -> Any:
    n = v.sum().to(mlc.int64)
    total = v * 0
    for i in range(n):
        total = total + v * i
    return total


# -- try, with, raise, assert, match ----------------------------------------------------------------------------------
@program()
def try_finally(v: Any) -> Any:
    try:
        if v.sum() > 3:
            v = v * 2
    finally:
        v = v + 1
    return v


@program()
def try_that_python_raises_in(v: Any) -> Any:
    for shape in ((2, 5), (3, 1)):
        try:
            x = v.reshape(shape)
        except mlc.UserError:
            x = v
        else:
            x = x + 1
        v = x if x.sum() > 3 else -x
    return v


@program()
def exceptions_with_names(v: Any) -> Any:
    error = v * 2
    try:
        {}["missing"]
    except KeyError as missing:
        found = missing
        if v.sum() > 3:
            v = v + len(missing.args)
    try:
        [][1]
    except IndexError as error:
        v = v + len(error.args) - len(found.args)
    with contextlib.suppress(NameError):
        v = v + error
    if v.sum() > 2:
        error = v * 3
    else:
        error = -v
    return v + error


@program()
def variables_deleted_on_a_way(v: Any) -> Any:
    w = v * 2
    for i in range(2):
        with contextlib.suppress(NameError):
            v = v + w
        if i == 0:
            del w
    if v.sum() > 3:
        v = -v
    return v


@program("MLC0350")
def try_around_the_truth_of_a_tensor(v: Any) -> Any:
    try:
        return v if bool(v.sum() > 3) and list(v > 0)[0].item() else -v
    except ZeroDivisionError:
        return v


@program("MLC0611")
def raise_in_a_branch(v: Any) -> Any:
    if v.sum() > 3:
        raise ValueError("too large")
    return v


@program("MLC0610")
def a_raise_that_is_caught(v: Any) -> Any:
    try:
        if v.sum() > 3:
            raise ValueError("too large")
        y = v
    except ValueError:
        y = -v
    return y


@program("MLC0610")
def an_assert_that_is_caught(v: Any) -> Any:
    try:
        assert v.sum() > 3
        y = v
    except AssertionError:
        y = -v
    return y


@program()
def an_assert(v: Any) -> Any:
    assert v.sum() > -1000, "too small"
    return v


@program()
def a_with_statement(v: Any) -> Any:
    with contextlib.nullcontext(v * 2) as w:
        if w.sum() > 6:
            v = w
    return v


@program("MLC0350")
def contextlib_suppress(v: Any) -> Any:
    y = v
    with contextlib.suppress(mlc.UserError):
        y = -v
        if list(v)[0].item() > 1:
            y = v * 3
    return y


@program("MLC0350")
def match_of_a_tensor(v: Any) -> Any:
    match v.sum():
        case 6:
            return v
        case _:
            return -v


@program("MLC0350")
def match_with_a_guard(v: Any) -> Any:
    match v.shape:
        case (n,) if v.sum() > 3:
            return v * n
        case _:
            return -v


@program()
def match_of_a_structure(v: Any) -> Any:
    y = v
    for structure in ({"kind": "vector", "x": [v, v * 2], "n": 3}, {"kind": "scalar"}, Box(v), None):
        match structure:
            case {"kind": "scalar"}:
                y = y * 7
            case {"kind": "vector" | "list", "x": [first, *others], **rest}:
                y = first + sum(others) if v.sum() > 3 else first * rest["n"]
            case Box(x=z) as box:
                y = y + z + box.x
            case None:
                y = y * v
    return y


def raises(v: Any) -> Any:
    raise ValueError


@program()
def a_with_that_suppresses_a_return(v: Any) -> Any:
    if v.shape[0] == 3:
        with contextlib.suppress(ValueError):
            return raises(v)
    return v * 3


@program()
def a_with_that_suppresses_a_continue(v: Any) -> Any:
    for i in range(3):
        if i < 2:
            with contextlib.suppress(ValueError):
                if i == 0:
                    raises(v)
                continue
        v = v * 5
    return v


@program()
def a_return_within_a_with_in_a_branch(v: Any) -> Any:
    if v.sum() > 3:
        with contextlib.nullcontext():
            return v * 2
    return v


@program()
def a_finally_that_returns(v: Any) -> Any:
    try:
        raises(v)
    finally:
        return v * 2


@program()
def pass_and_ellipsis_and_expressions(v: Any) -> Any:
    if v.sum() > 3:
        pass
    else:
        ...
    v.sum()
    "a string"
    return v


@program()
def imports(v: Any) -> Any:
    import math
    from math import tau as turn
    return v * math.pi if v.sum() > 3 else v * turn
