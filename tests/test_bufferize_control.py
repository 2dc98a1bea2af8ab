"""Buffers under loops, conditions and calls: random programs mean after bufferize what they meant before, to the bit.

Memory that two values share by mistake shows in the numbers: every value is the result of arithmetic on others.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mlc.dialects import func
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import module
from mlc.dialects.func import Func, Return, call, function
from mlc.dialects.tensor import control
from mlc.ir.core import Value, at_end
from mlc.ir.interp import run_function
from mlc.ir.passes import Pipeline
from mlc.ir.sizes import evaluate
from mlc.ir.types import i64
from mlc.ir.verify import verify
from mlc.passes.forms import BUFFERIZED
from tests.op_samples import t
from tests.public_case import thinned

Array = np.ndarray[Any, Any]


class Nest:
    """A random program on vectors of two sizes: loops that carry some, conditions, and calls of functions made so."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.module = module()
        self.functions: list[Func] = []
        for name in ("inner", "outer"):
            self.functions.append(self.function(name, private=True))
        self.function("main", private=False)

    def function(self, name: str, private: bool) -> Func:
        types = [t(self.rng.choice(("5xf32", "Bxf32"))) for _ in range(3)] + [t("5xf32"), t("Bxf32"), t("i64")]
        out = function(name, types, private=private)
        self.module.body.block.insert(out)
        self.base: list[Value] = list(out.args[:-1])
        with at_end(out.block):
            values = self.steps(list(out.args[:-1]), out.args[-1], 6, 0)
            Return(tuple(self.rng.choice(values) for _ in range(3)))
        out.update_type()
        if not private and self.rng.random() < 0.7:
            out.attrs["donate"] = (0, 1, 2)
        return out

    def steps(self, values: list[Value], n: Value, count: int, depth: int) -> list[Value]:
        for _ in range(count):
            make = self.rng.choice([self.compute] * 3 + ([self.loop, self.until, self.choose] if depth < 2 else [])
                                   + ([self.call] if self.functions else []))
            values = values + list(make(values, n, depth))
        return values

    def like(self, values: Sequence[Value], v: Value) -> Value:
        return self.rng.choice([x for x in values if x.type == v.type])

    def compute(self, values: list[Value], n: Value, depth: int) -> list[Value]:
        x = self.rng.choice(values)
        y = self.like([*values[-6:], x], x)
        how = self.rng.randrange(4)
        if how == 0:
            return [tn.Sin(x + y).result]
        if how == 1:
            return [tn.Reverse(tn.Cos(x).result, (0,)).result + y]
        if how == 2:
            return [x * tn.ReduceMax(y, (0,)).result, tn.Abs(x).result]
        return [tn.Reshape(tn.Sin(tn.Reshape(x, (1, *x.type.shape)).result).result, x.type.shape).result]

    def chosen(self, values: list[Value]) -> list[Value]:
        return [self.rng.choice(values[-8:]) for _ in range(self.rng.randrange(1, 4))]

    def loop(self, values: list[Value], n: Value, depth: int) -> Sequence[Value]:
        def body(i: Value, *carried: Value) -> list[Value]:
            inside = self.steps([*values[-3:], *carried], n, 3, depth + 1)
            return [self.like([*inside[-4:], c, *carried], c) for c in carried]
        upper: Any = self.rng.choice([0, 1, 3, n])
        return control.for_loop(0, upper, self.chosen(values), body)

    def until(self, values: list[Value], n: Value, depth: int) -> Sequence[Value]:
        def body(count: Value, *carried: Value) -> list[Value]:
            inside = self.steps([*values[-3:], *carried], n, 2, depth + 1)
            return [count + 1, *(self.like([*inside[-3:], c, *carried], c) for c in carried)]
        zero = tn.Full(0, (), i64).result
        return control.while_loop(lambda count, *_: tn.Compare("lt", count, n).result, body,
                                  [zero, *self.chosen(values)])[1:]

    def choose(self, values: list[Value], n: Value, depth: int) -> Sequence[Value]:
        types = [v.type for v in self.chosen(values)]

        def branch() -> list[Value]:
            inside = self.steps(values[-4:] + values[:5], n, 2, depth + 1)
            return [self.rng.choice([v for v in [*self.base, *inside] if v.type == type]) for type in types]
        x = self.rng.choice(values)
        zero = tn.Full(0.0, (), x.type.dtype).result
        return control.cond(tn.Compare("gt", tn.ReduceMin(x, (0,)).result, zero).result, branch, branch)

    def call(self, values: list[Value], n: Value, depth: int) -> Sequence[Value]:
        callee = self.rng.choice(self.functions)
        args = [self.rng.choice([v for v in [*self.base, *values] if v.type == a.type]) for a in callee.args[:-1]]
        return call(callee, [*args, n])

    def arguments(self) -> list[Array]:
        main = next(f for f in func.functions(self.module) if f.sym_name == "main")
        numbers = np.random.default_rng(1)
        return [np.asarray(2) if a.type.dtype == i64 else numbers.standard_normal(
            [evaluate(d, {"B": 4}) for d in a.type.shape]).astype("f4") for a in main.args]


@pytest.mark.parametrize("seed", thinned(range(40), 8))
def test_loops_conditions_and_calls_keep_every_bit(seed: int) -> None:
    nest = Nest(seed)
    verify(nest.module)
    Pipeline(["canonicalize", "cse", "dead_argument_elimination", "fix_numerics"]).run(nest.module)
    arguments = nest.arguments()
    wanted = run_function(nest.module, "main", arguments)
    Pipeline(["fuse", "bufferize"]).run(nest.module)
    verify(nest.module)
    BUFFERIZED.check(nest.module)
    for a, b in zip(run_function(nest.module, "main", arguments), wanted, strict=True):
        assert np.array_equal(a, b, equal_nan=True)
