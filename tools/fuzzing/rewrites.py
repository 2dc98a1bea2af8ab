"""Random programs around one rewrite: a few operations of the classes that its rule matches, and suitable constants.

Programs of arbitrary operations seldom contain the two or three in a row that a rule matches, with the attributes for
which it is wrong. Here the classes are those that the rule's code names, so new rules are covered automatically. For
constant folding, that is only the class of the folded operation.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module
from mlc.dialects.tensor.binary import Binary
from mlc.dialects.tensor.elementwise import Unary
from mlc.dialects.tensor.reduce import Reduce
from mlc.frontend.script.origin import codes_of
from mlc.ir.core import REGISTRY, Op, Value, at_end
from mlc.ir.rewrite import RULES
from mlc.ir.sizes import Dim, sym
from mlc.ir.types import IntType, ScalarType, TensorType, f32, f64, i1, i8, i32
from mlc.tools.fuzzing import families as families_of
from mlc.tools.fuzzing import registry
from mlc.tools.fuzzing.programs import DTYPES, Generator, Program, broadcasts, kind, program

Family = Callable[[Generator, Value], Value | None]
MADE_BY: tuple[tuple[type[Op], Family], ...] = (
    (Unary, Generator.unary), (Binary, Generator.binary), (tn.Compare, Generator.compare),
    (tn.Select, Generator.select), (tn.Cast, Generator.cast), (Reduce, Generator.reduce),
    (tn.Reshape, Generator.reshape), (tn.Transpose, Generator.transpose), (tn.BroadcastTo, Generator.broadcast),
    (tn.Slice, Generator.slice), (tn.Pad, Generator.pad), (tn.Concat, Generator.concat),
    (tn.Reverse, Generator.reverse), (tn.Take, Generator.take), (tn.TakeAlong, Generator.take_along),
    (tn.DotGeneral, Generator.dot), (tn.Full, Generator.source), (tn.Constant, Generator.source),
    (tn.MaxPool, Generator.window), (tn.Windows, families_of.windows), (tn.Place, families_of.windows),
    (tn.Pick, families_of.windows), (tn.DynamicSlice, families_of.pieces), (tn.DynamicUpdateSlice, families_of.pieces))
"""The family that makes operations of a class with operands that suit it."""
ATTEMPTS = 25
SIZES: tuple[Dim, ...] = (1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 5, 0, sym("B"), sym("N"))
"""Few elements are enough to observe the semantics of an operation."""


@cache
def subjects() -> list[tuple[str, type[Op], tuple[type[Op], ...]]]:
    """(rule, rewritten class, classes that it matches) of all rules and foldings of tensor operations."""
    out = []
    for target, rules in RULES.items():
        if target.__module__.startswith(tn.__name__):
            out += [(r.name, target, tuple({*concrete(target), *_named(r.apply)})) for r in rules if concrete(target)]
    out += [("fold", cls, (cls, tn.Full, tn.Constant)) for name, cls in REGISTRY.items()
            if name.startswith("tensor.") and not registry.is_left_out(cls) and cls.fold is not Op.fold]
    return sorted(((name, target, tuple(sorted(pool, key=lambda c: c.name))) for name, target, pool in out),
                  key=lambda row: (row[0], row[1].__name__))


def concrete(cls: type[Op]) -> list[type[Op]]:
    """The operations of a class that accept random operands."""
    return [c for n, c in REGISTRY.items() if n.startswith("tensor.") and issubclass(c, cls)
            and (not registry.is_left_out(c) or families(c))]


def families(cls: type[Op]) -> list[Family]:
    return [family for base, family in MADE_BY if issubclass(cls, base)]


def _named(f: Callable[..., Any]) -> Iterator[type[Op]]:
    """The operations whose classes the code of a rule names, or that of functions of its module which it calls."""
    work, seen = [f], set[Any]()
    while work:
        f = work.pop()
        if not isinstance(f, types.FunctionType) or f in seen:
            continue
        seen.add(f)
        for name in (n for code in codes_of(f.__code__) for n in code.co_names):
            value = f.__globals__.get(name)
            if isinstance(value, type) and issubclass(value, Op):
                yield from concrete(value)
            elif isinstance(value, types.FunctionType) and value.__module__ == f.__module__:
                work.append(value)


class RewriteGenerator(Generator):
    """A program of 2 to 7 operations, the last of which is of the class that a rule rewrites."""

    def __init__(self, seed: int, subject: int | None = None) -> None:
        super().__init__(seed)
        every = subjects()
        self.rule, self.target, self.pool = every[subject if subject is not None else self.rng.randrange(len(every))]

    def make(self) -> Module:
        rng = self.rng
        cls = rng.choice(concrete(self.target))
        accepted = getattr(cls, "accepts", ("float", "int", "bool"))
        dtype = rng.choice([d for d in (f32, f64, i32, i8, i1, i1, *DTYPES) if kind(d) in accepted])
        shape = self.shape()
        self.argument(TensorType(shape, rng.choice((i1, dtype))))
        self.argument(TensorType(shape, dtype))
        with at_end(self.main.block):
            for _ in range(rng.randint(1, 4)):
                self.keep(self.splat() if rng.random() < 0.15 else self.one_of(self.pool))
            self.keep(self.one_of([cls]))
        self.finish()
        return self.inside

    def other(self, dtype: ScalarType, shape: Sequence[Dim]) -> Value:
        """Often the last value that fits, or a splat, since rules match these."""
        way = self.rng.random()
        if way < 0.5:
            for v in reversed(self.values):
                if v.type.dtype == dtype and broadcasts(v.type.shape, shape) and not is_constant(v):
                    return v
        if way < 0.75:
            number = self.number(dtype)
            return number if way < 0.65 else tn.BroadcastTo(number, tuple(shape)).result
        return super().other(dtype, shape)

    def splat(self) -> Value | None:
        """A splat of the type of an existing value; sometimes any other source."""
        x = self.pick()
        if self.rng.random() < 0.2:
            return self.source(x)
        number = self.number(x.type.dtype)
        return number if self.rng.random() < 0.4 else tn.BroadcastTo(number, x.type.shape).result

    def number(self, dtype: ScalarType) -> Value:
        """Most often a number that is peculiar to an operation."""
        if kind(dtype) == "bool" or self.rng.random() < 0.3:
            return super().number(dtype)
        if kind(dtype) == "int":
            return tn.Full(self.rng.choice((0, 1, 1, 2, 2 if is_unsigned(dtype) else -1)), (), dtype).result
        return tn.Full(self.rng.choice((0.0, -0.0, 1.0, 1.0, 2.0, -1.0)), (), dtype).result

    def keep(self, value: Value | None) -> None:
        if value is not None and self.fits(value):
            self.values.append(value)

    def pick(self) -> Value:
        """Mostly the last value that is not a number in disguise, which would be folded."""
        several = [v for v in self.values if not is_constant(v)] if self.rng.random() < 0.85 else self.values
        return several[-1] if self.rng.random() < 0.6 else self.rng.choice(several)

    def shape(self) -> tuple[Dim, ...]:
        return tuple(self.rng.choice(SIZES) for _ in range(self.rng.choices(range(5), (1, 3, 6, 8, 3))[0]))

    def one_of(self, pool: Sequence[type[Op]]) -> Value | None:
        """The result of an operation of one of some classes, if one can be built from the existing values."""
        cls = self.rng.choice(pool)
        made_by = families(cls)
        for _ in range(ATTEMPTS):
            if made_by and self.rng.random() < 0.9:
                value = made_by[0](self, self.pick())
                if value is not None and isinstance(value.op, cls | tn.Reshape | tn.BroadcastTo):
                    return value
            elif (op := registry.drawn(cls, self.values, self.rng)) is not None:
                return op.results[0] if isinstance(op.results[0].type, TensorType) else None
        return None


def is_unsigned(dtype: ScalarType) -> bool:
    return isinstance(dtype, IntType) and dtype.unsigned


def is_constant(value: Value) -> bool:
    """Whether a value is computed from no argument."""
    return value.op is not None and all(map(is_constant, value.op.operands))


def generate(seed: int) -> Program:
    """The program of a seed, around one of the rewrite rules."""
    return program(seed, RewriteGenerator(seed))


def generate_for(subject: int, seed: int) -> Program:
    """A program around one rule, by its place in `subjects()`."""
    return program(seed, RewriteGenerator(seed, subject))
