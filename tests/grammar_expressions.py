"""Programs for Python's expressions; see grammar_programs.py."""

from __future__ import annotations

import functools
import itertools
import random
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mlc
from tests.grammar_programs import program



@program()
def and_or_not(v: Any) -> Any:
    a, b, c = v
    if (a > 1 and b > 1) or not c > 1:
        v = v * 2
    if a > 5 or (b < 3 and not (c == 2)):
        v = v + 10
    return v


@program()
def and_or_as_values(v: Any) -> Any:
    a, b = v[0], v[1]
    return (a and b) + 2 * (a or b)


@program()
def and_or_with_python_values(v: Any) -> Any:
    x = None
    y = x or v
    z = [] or 2
    return y * z if v.sum() > 3 and z else y


@program()
def chained_comparisons(v: Any) -> Any:
    a, b, c = v
    if 0 < a < 3 <= b != c:
        v = v * 2
    return v + (a < b < c)


@program()
def a_chain_evaluates_its_middle_once(v: Any) -> Any:
    calls = []

    def middle() -> Any:
        calls.append(1)
        return v.sum()
    found = 0 < middle() < 10
    return v * len(calls) + found


@program()
def short_circuits(v: Any) -> Any:
    i = v.sum().to(mlc.int64)
    if i < 3 and v[i] > 0:
        return v * 2
    return v


@program()
def is_and_is_not(v: Any) -> Any:
    w = v
    if w is v and v is not None and v.sum() > 3:
        return v * 2
    return v


@program("MLC0350")
def a_tensor_in_a_list(v: Any) -> Any:
    return v * 2 if v[0] in [1, 2] else v


@program()
def sets_and_not_in(v: Any) -> Any:
    found = {i * 2 for i in range(v.shape[0])} | {7}
    return v * 2 if 5 not in found and v.sum() > 3 else v * len(found)


@program()
def conditional_expressions(v: Any) -> Any:
    return v * (2 if v.sum() > 3 else 3) + (v if v.max() > 2 else -v if v.min() < 1 else v * 0)


@program()
def list_comprehension(v: Any) -> Any:
    return sum([x * i for i, x in enumerate(v) if i != 1])


@program()
def nested_comprehensions(v: Any) -> Any:
    return sum(x * y for x in v for y in [1.0, 2.0]) + sum({i: v[i] for i in range(3)}.values()) + len({1, 1, 2})


@program("MLC0350")
def a_comprehension_that_a_tensor_filters(v: Any) -> Any:
    return sum([x for x in v if x > 1])


@program()
def a_conditional_expression_in_a_comprehension(v: Any) -> Any:
    return sum([x if x.sum() > 1 else x * 0 for x in v])


@program("MLC0350")
def a_generator_function_that_a_tensor_steers(v: Any) -> Any:
    def parts() -> Any:
        for x in v:
            if x > 1:
                yield x
    return sum(parts())


@program()
def a_generator_function(v: Any) -> Any:
    def parts() -> Any:
        for i in range(3):
            yield v[i] * i
        yield from (v[0], v[1])
    return sum(parts()) if v.sum() > 3 else v[0]


@program("MLC0350")
def any_and_all_of_a_list(v: Any) -> Any:
    return v * 2 if any(x > 2 for x in v) else v


@program()
def min_and_max_and_sum(v: Any) -> Any:
    a, b, c = v
    return min(a, b, c) + max(a, b) + sum([a, b, c]) + abs(a) + pow(b, 2) 


@program("MLC0350")
def sorted_of_tensors(v: Any) -> Any:
    return sorted(v)[0] + v


@program("MLC0350")
def max_with_a_key(v: Any) -> Any:
    return max(v, key=lambda x: -x) + v


@program()
def numbers_of_tensors(v: Any) -> Any:
    return v * float(v[0]) + int(v[1]) + bool(v[2] > 1)


@program()
def slices_and_subscripts(v: Any) -> Any:
    i = (v[0] > 1).to(mlc.int64)
    return v[::-1] * v[i] + v[1:][0] + v[..., None][0] + v[-1]


@program("MLC0350")
def a_tensor_as_a_list_index(v: Any) -> Any:
    return [v, v * 2][v.sum().to(mlc.int64)]


@program("MLC0350")
def an_f_string_of_an_item(v: Any) -> Any:
    return v * len(f"{v.sum().item():.1f}")


@program()
def an_f_string(v: Any) -> Any:
    n = 3
    return v * len(f"{n:>{4}}{n!r}") if v.sum() > 3 else v


@program()
def arithmetic(v: Any) -> Any:
    return ((v + 1) - v * 2) / (v + 3) ** 2 + v // 2 + v % 3 + (-v) + (+v) + (v @ v)


@program()
def integer_arithmetic(v: Any) -> Any:
    i = v.to(mlc.int64)
    return (i << 1) + (i >> 1) + (i & 3) + (i | 4) + (i ^ 1) + ~i


@program()
def comparisons(v: Any) -> Any:
    return (v < 2) * 1 + (v <= 2) * 2 + (v > 2) * 4 + (v >= 2) * 8 + (v == 2) * 16 + (v != 2) * 32


@program()
def containers(v: Any) -> Any:
    found = {"a": (v, [v * 2]), **{"b": v}}
    first, *rest = *found["a"][1], v
    return (first + rest[0] if v.sum() > 3 else found["b"]), {"x": found["a"][0]}


@program()
def lambda_with_defaults(v: Any) -> Any:
    f = lambda x, n=2, *more, k=3: x * n + k if x.sum() > 3 else x
    return f(v) + f(v, 1, k=0)


@program()
def method_calls_and_partials(v: Any) -> Any:
    add = functools.partial(mlc.add, v)
    return add(v) if v.sum().ge(3) else v.mul(2).add(1)


@dataclass
class Pair:
    a: Any
    b: Any


@program()
def dataclasses_through_branches(v: Any) -> Any:
    p = Pair(v, v * 2)
    if v.sum() > 3:
        p = Pair(p.b, p.a)
    return p.a - p.b


@program("MLC0350")
def a_tensor_as_a_dictionary_value_that_python_compares(v: Any) -> Any:
    return v * (2 if {"a": v.sum()} == {"a": 6} else 3)


@program("MLC0350")
def a_coroutine_that_a_tensor_steers(v: Any) -> Any:
    async def part() -> Any:
        return v * 2 if v.sum() > 3 else v
    routine = part()
    try:
        routine.send(None)
    except StopIteration as found:
        return found.value


@program("MLC0616")
def the_time(v: Any) -> Any:
    return v + time.time()


@program("MLC0616")
def chance(v: Any) -> Any:
    return v + random.random()


@program("MLC0616")
def chance_of_numpy(v: Any) -> Any:
    return v + np.random.rand()


@program("MLC0615")
def a_counter_outside(v: Any) -> Any:
    CALLS.append(1)
    return v * len(CALLS)


CALLS: list[int] = []


@program("MLC0616")
def an_identifier_nobody_else_has(v: Any) -> Any:
    return v + uuid.uuid4().int % 1000


@program("MLC0616")
def a_file(v: Any) -> Any:
    with open(__file__) as source:
        return v * len(source.read())


@program("MLC0616")
def a_file_by_its_path(v: Any) -> Any:
    return v * len(Path(__file__).read_text())


@program("MLC0616")
def the_hour(v: Any) -> Any:
    return v * time.localtime().tm_hour


TICKS, LETTERS = itertools.count(), (letter for letter in "abcdefgh")


@program("MLC0615")
def a_count_outside(v: Any) -> Any:
    return v * next(TICKS)


@program("MLC0615")
def a_generator_outside(v: Any) -> Any:
    return v * ord(next(LETTERS))


@program("MLC0350")
def the_text_of_a_tensor(v: Any) -> Any:
    return v * len(f"{v.sum()}")


@program()
def its_type(v: Any) -> Any:
    return v * (2 if type(v) is mlc.Tensor and v.__class__ is mlc.Tensor else 3)


@program()
def an_iterator_is_gone_through_once(v: Any) -> Any:
    pairs, rows = zip(v, v * 2), enumerate(v)
    _, total = next(rows)
    for a, b in pairs:
        total = total + a * b
    for i, a in rows:
        total = total + i * a
    return total + len(list(pairs)) + len(list(reversed(v)))


@program()
def an_iterator_in_each_step_of_a_loop(v: Any) -> Any:
    rows, numbers, total = enumerate(v), iter([1.0, 2.0]), v.sum()
    for a in v:
        for i, b in rows:
            total = total + i * a * b
        for n in numbers:
            total = total + n * a
    return total


@program()
def an_iterator_of_what_another_one_has_left(v: Any) -> Any:
    rows = enumerate(v)
    numbered = enumerate(rows)
    _, (_, total) = next(numbered)
    for i, a in rows:
        total = total + i * a
    for (_, a), (_, b) in zip(again := enumerate(v), again):
        total = total + a * b
    return total + len(list(numbered))


@program("MLC0609")
def what_a_break_leaves_of_an_iterator(v: Any) -> Any:
    rows, total = enumerate(v), 0.0
    for _, a in rows:
        total = total + a
        if total > v[0]:
            break
    for _, a in rows:
        total = total + 100 * a
    return total


@program("MLC0608")
def what_a_break_leaves_of_a_plain_iterator(v: Any) -> Any:
    numbers, total = iter([1.0, 2.0, 3.0]), v.sum()
    for n in numbers:
        total = total + n
        if total > v[0]:
            break
    return total + sum(numbers)


@program("MLC0608")
def what_a_break_leaves_of_a_chain(v: Any) -> Any:
    numbers, total = itertools.chain([1.0, 2.0], [3.0]), v.sum()
    for n in numbers:
        total = total + n
        if total > v[0]:
            break
    return total + sum(numbers)


@program("MLC0608")
def an_iterator_that_a_branch_goes_through(v: Any) -> Any:
    rows, total = enumerate(v), v.sum()
    if total > 1000:
        for i, a in rows:
            total = total + i * a
    for i, a in rows:
        total = total + i * a
    return total
