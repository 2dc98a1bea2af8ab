"""Random well-typed programs on tensors.

A program is a graph of 3 to 25 operations of every family on shapes with sizes of 0, 1, primes and symbols, with
several results, donated arguments and mixed element types. All of it follows from the seed: the module, the numbers
of its symbols, and the arrays. Indices are computed to be in range, so any arrays will do, and what the reducer
leaves of a module can be called with random ones too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module, module
from mlc.dialects.func import Func, Return, function
from mlc.dialects.tensor.binary import Binary
from mlc.dialects.tensor.elementwise import Unary
from mlc.ir.core import REGISTRY, Op, Value, at_end
from mlc.ir.parser import parse_module
from mlc.ir.printer import to_text
from mlc.ir.sizes import Dim, evaluate, product, sym, symbols
from mlc.ir.types import (
    FloatType,
    IndexType,
    IntType,
    ScalarType,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
    to_numpy,
)
from mlc.ir.verify import verify
from mlc.tools.fuzzing import families, registry

Array = np.ndarray[Any, Any]

DTYPES: tuple[ScalarType, ...] = (f32, f32, f32, f32, f64, f16, bf16, i32, i64, i8, i1, *(
    IntType(w, unsigned=True) for w in (8, 32, 64)))
SIZES: tuple[Dim, ...] = (0, 1, 1, 2, 3, 4, 5, 7, 13, 16, 17, 33, 64, 70, sym("B"), sym("B"), sym("N"))
NUMBERS = {"B": (1, 2, 3, 7, 20, 0), "N": (1, 5, 37, 0)}
"""Values that a symbol may take; 0 is drawn rarely."""
MOST_ELEMENTS = 1200
MOST_STEPS = 20_000
"""Limits on the size of a tensor and the work of a product, so that the interpreter is fast enough."""


def kind(dtype: ScalarType) -> str:
    return "float" if isinstance(dtype, FloatType) else "bool" if dtype == i1 else "int"


def classes(base: type[Op]) -> list[Any]:
    return [c for n, c in sorted(REGISTRY.items()) if n.startswith("tensor.") and issubclass(c, base)]


@dataclass(frozen=True)
class Program:
    """A module with @main and the arrays to call it with."""

    seed: int
    text: str
    arguments: tuple[Array, ...]

    def module(self) -> Module:
        parsed = parse_module(self.text, f"<seed {self.seed}>")
        assert isinstance(parsed, Module)
        return parsed


class Generator:
    """Generates one program. Each of `FAMILIES` returns a new value computed from `x`, or None if it does not apply."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        rng = self.rng
        self.numbers = {n: rng.choice(c) if rng.random() < 0.15 else rng.choice(c[:-1]) for n, c in NUMBERS.items()}
        self.inside, self.main = module(), function("main", [])
        self.inside.body.block.insert(self.main)
        self.values: list[Value] = []

    def make(self) -> Module:
        rng = self.rng
        for _ in range(rng.randint(1, 4)):
            self.argument(TensorType(self.shape(), rng.choice(DTYPES)))
        count = rng.randint(3, 25) if rng.random() < 0.5 else rng.randint(3, 10)
        made, attempts = 0, 0
        with at_end(self.main.block):
            while made < count and attempts < 40 * count:
                attempts += 1
                family = rng.choices(FAMILIES, [w for _, w in WEIGHTS])[0]
                out = family(self, self.pick())
                if out is not None and self.fits(out):
                    self.values.append(out)
                    made += 1
        self.finish()
        return self.inside

    def finish(self) -> None:
        """Return the unused values, and some others; donate arguments, mostly ones of the type of a result."""
        rng, block = self.rng, self.main.block
        for op in reversed(block.ops):              # values that were too large have not been kept
            if not any(r.uses or r in self.values for r in op.results):
                op.erase()
        last = [v for v in self.values if v.op is not None and not v.uses]
        results = rng.sample(last, min(len(last), rng.randint(1, 5))) or [self.values[-1]]
        results += [v for v in self.values if rng.random() < 0.07]
        rng.shuffle(results)
        with at_end(block):
            Return(tuple(results))
        erase_dead(self.main)
        for name in sorted({n for op in block for r in op.results for d in r.type.shape for n in symbols(d)}):
            if not self.has(name):                  # every size can be told from an argument
                self.argument(TensorType((sym(name),), f32))
        fitting = {v.type for v in results}
        donate = tuple(a.index for a in block.args if rng.random() < (0.6 if a.type in fitting else 0.15))
        if donate:
            self.main.attrs["donate"] = donate
        self.main.update_type()

    # -- types and operands ---------------------------------------------------------------------------------------
    def elements(self, shape: Sequence[Dim]) -> int:
        """How many elements a shape has, were its empty axes of size 1: loops around an empty one run too."""
        return math.prod(max(1, evaluate(d, self.numbers)) for d in shape)

    def fits(self, value: Value) -> bool:
        """Whether a value is a tensor of moderate size for all values of its symbols."""
        return self.elements(value.type.shape) <= MOST_ELEMENTS and all(
            evaluate(d, self.numbers) >= 0 for d in value.type.shape)

    def shape(self) -> tuple[Dim, ...]:
        while True:
            shape = tuple(self.rng.choice(SIZES) for _ in range(self.rng.choices((0, 1, 2, 3, 4), (1, 5, 8, 4, 1))[0]))
            if self.elements(shape) <= MOST_ELEMENTS:
                return shape

    def argument(self, type: TensorType) -> Value:
        """A new argument; its sizes are numbers or symbols, so that a call binds the symbols."""
        value = self.main.block.add_arg(type)
        self.values.append(value)
        return value

    def pick(self) -> Value:
        """A value to use as an operand, mostly a recent one."""
        return self.values[-1 - min(int(self.rng.expovariate(0.35)), len(self.values) - 1)]

    def other(self, dtype: ScalarType, shape: Sequence[Dim]) -> Value:
        """A value of an element type that broadcasts to `shape`: an existing one, a number, or a new argument."""
        rng = self.rng
        fitting = [v for v in self.values if v.type.dtype == dtype and broadcasts(v.type.shape, shape)]
        choice = rng.random()
        if fitting and choice < 0.6:
            return rng.choice(fitting)
        if choice < 0.75 or not all(isinstance(d, int) or str(d).isidentifier() for d in shape):
            return self.number(dtype)
        kept = shape[rng.randint(0, len(shape)) if rng.random() < 0.4 else 0:]
        return self.argument(TensorType(tuple(1 if rng.random() < 0.2 else d for d in kept), dtype))

    def number(self, dtype: ScalarType) -> Value:
        low = 0 if isinstance(dtype, IntType) and dtype.unsigned else -3
        value: Any = {"float": self.rng.choice((0.5, -1.5, 2.0, 0.0, -0.0, 1.0, -1.0)), "int": self.rng.randint(low, 5),
                      "bool": self.rng.random() < 0.5}[kind(dtype)]
        return tn.Full(value, (), dtype).result

    def like(self, dtype: ScalarType, shape: Sequence[Dim]) -> Value:
        """As `other`, of the whole shape."""
        v = self.other(dtype, shape)
        return v if v.type.shape == tuple(shape) else tn.BroadcastTo(v, tuple(shape)).result

    def axes(self, x: Value) -> tuple[int, ...]:
        return tuple(a for a in range(x.type.rank) if self.rng.random() < 0.5)

    # -- families -------------------------------------------------------------------------------------------------
    def unary(self, x: Value) -> Value | None:
        fitting = [c for c in classes(Unary) if kind(x.type.dtype) in c.accepts]
        return self.rng.choice(fitting)(x).result  # type: ignore[no-any-return]

    def binary(self, x: Value) -> Value | None:
        fitting = [c for c in classes(Binary) if kind(x.type.dtype) in c.accepts]
        cheap = [c for c in fitting if c in (tn.Add, tn.Sub, tn.Mul, tn.Maximum)]
        cls = self.rng.choice(cheap if cheap and self.rng.random() < 0.6 else fitting)
        operands = [x, self.other(x.type.dtype, x.type.shape)]
        self.rng.shuffle(operands)
        return cls(*operands).result  # type: ignore[no-any-return]

    def compare(self, x: Value) -> Value | None:
        predicate = self.rng.choice(("eq", "ne", "lt", "le", "gt", "ge"))
        return tn.Compare(predicate, x, self.other(x.type.dtype, x.type.shape)).result

    def select(self, x: Value) -> Value | None:
        return tn.Select(self.other(i1, x.type.shape), x, self.other(x.type.dtype, x.type.shape)).result

    def cast(self, x: Value) -> Value | None:
        return tn.Cast(x, self.rng.choice(DTYPES)).result

    def reduce(self, x: Value) -> Value | None:
        choices: list[Any] = [tn.ReduceSum, tn.ReduceSum, tn.ReduceMax, tn.ReduceMin, tn.ReduceProd, tn.ReduceAny,
                              tn.ReduceAll]
        fitting = [c for c in choices if kind(x.type.dtype) in c.accepts]
        axes = self.axes(x) if self.rng.random() < 0.3 else (self.rng.randrange(x.type.rank),) if x.type.rank else ()
        out = self.rng.choice(fitting)(x, axes).result
        if self.rng.random() < 0.3:                 # the mean of rows, say, is soon subtracted from them
            shape = [1 if a in axes else d for a, d in enumerate(x.type.shape)]
            out = tn.Reshape(out, tuple(shape)).result
        return out  # type: ignore[no-any-return]

    def reshape(self, x: Value) -> Value | None:
        shape, rng = list(x.type.shape), self.rng
        way = rng.random()
        if way < 0.25:
            shape.insert(rng.randint(0, len(shape)), 1)
        elif way < 0.4 and 1 in shape:
            shape.remove(1)
        elif way < 0.65 and len(shape) > 1:
            a = rng.randrange(len(shape) - 1)
            shape[a: a + 2] = [shape[a] * shape[a + 1]]
        elif way < 0.8:
            shape = [product(shape)]
        else:
            splits = [(a, k) for a, d in enumerate(shape) for k in (2, 3, 5) if isinstance(d, int) and d and d % k == 0]
            if not splits:
                return None
            a, k = rng.choice(splits)
            whole = shape[a]
            assert isinstance(whole, int)
            shape[a: a + 1] = [k, whole // k] if rng.random() < 0.5 else [whole // k, k]
        return tn.Reshape(x, tuple(shape)).result

    def transpose(self, x: Value) -> Value | None:
        perm = list(range(x.type.rank))
        self.rng.shuffle(perm)
        return tn.Transpose(x, tuple(perm)).result if len(perm) > 1 else None

    def broadcast(self, x: Value) -> Value | None:
        rng = self.rng
        shape = [rng.choice(SIZES) if d == 1 and rng.random() < 0.7 else d for d in x.type.shape]
        return tn.BroadcastTo(x, tuple([rng.choice(SIZES)] * rng.randint(0, 1) + shape)).result

    def slice(self, x: Value) -> Value | None:
        rng = self.rng
        bounds: list[tuple[Dim, Dim, int]] = []
        for d in x.type.shape:
            if rng.random() < 0.4 or not isinstance(d, int):
                bounds.append((0, d, 1) if rng.random() < 0.6 or d == 0 or not self.positive(d) else (d - 1, -1, -1)
                              if rng.random() < 0.5 else (1, d, 1))
                continue
            a, b = sorted((rng.randint(0, d), rng.randint(0, d)))
            step = rng.choice((1, 1, 2, 3))
            bounds.append((a, b, step) if rng.random() < 0.7 or a == b else (b - 1, a - 1, -step))
        starts, stops, steps = zip(*bounds) if bounds else ((), (), ())
        return tn.Slice(x, starts, stops, steps).result

    def positive(self, d: Dim) -> bool:
        """Whether a size is at least 1 for all values that its symbols may get."""
        return evaluate(d, self.numbers) >= 1

    def pad(self, x: Value) -> Value | None:
        rng = self.rng
        low = tuple(rng.choice((0, 0, 1, 2, sym("B") if self.has("B") else 3)) for _ in x.type.shape)
        interior = tuple(rng.choice((0, 0, 0, 1, 2)) for _ in x.type.shape)
        high = tuple(rng.choice((0, 0, 1, 5)) if k == 0 or rng.random() < 0.5 or not self.positive(d) else -k
                     for k, d in zip(interior, x.type.shape))
        return tn.Pad(x, self.other(x.type.dtype, ()), low, high, interior).result

    def has(self, name: str) -> bool:
        return any(sym(name) in a.type.shape for a in self.main.block.args)

    def concat(self, x: Value) -> Value | None:
        if not x.type.rank:
            return None
        axis = self.rng.randrange(x.type.rank)
        same = [v for v in self.values if v.type.dtype == x.type.dtype and v.type.rank == x.type.rank and all(
            d == e for a, (d, e) in enumerate(zip(v.type.shape, x.type.shape)) if a != axis)]
        others = self.rng.choices(same, k=self.rng.randint(0, 2))
        if self.rng.random() < 0.5:
            shape = [self.rng.choice(SIZES[:9]) if a == axis else d for a, d in enumerate(x.type.shape)]
            others.append(self.like(x.type.dtype, shape))
        return tn.Concat((x, *others), axis).result

    def reverse(self, x: Value) -> Value | None:
        return tn.Reverse(x, self.axes(x)).result

    def indices(self, shape: tuple[Dim, ...], extent: Dim) -> Value:
        """Indices in range: any integers, modulo the extent."""
        dtype = self.rng.choice((i64, i32, i64))
        v = self.like(dtype, shape)
        number = tn.Full(extent, (), dtype) if isinstance(extent, int) else tn.Size(extent, dtype)
        return tn.Rem(v, number.result).result

    def take(self, x: Value) -> Value | None:
        axes = [a for a, d in enumerate(x.type.shape) if self.positive(d)]
        if not axes:
            return None
        axis = self.rng.choice(axes)
        shape = self.rng.choice(((), (3,), (2, 2), (5,), (0,)))
        return tn.Take(x, self.indices(shape, x.type.shape[axis]), axis).result

    def take_along(self, x: Value) -> Value | None:
        axes = [a for a, d in enumerate(x.type.shape) if self.positive(d)]
        if not axes:
            return None
        axis = self.rng.choice(axes)
        shape = tuple(self.rng.choice((1, 3, d)) if a == axis else d for a, d in enumerate(x.type.shape))
        return tn.TakeAlong(x, self.indices(shape, x.type.shape[axis]), axis).result

    def dot(self, x: Value) -> Value | None:
        if x.type.dtype == i1 or not x.type.rank:
            return None
        rng, rank = self.rng, x.type.rank
        order = rng.sample(range(rank), rank)
        count = rng.choice((0, 1, 1, 1, 2))
        contract, batch = order[:count], order[count: count + rng.choice((0, 0, 1, 2))]
        shared = [*contract, *batch]
        shape = [x.type.shape[a] for a in shared] + [rng.choice(SIZES) for _ in range(rng.choice((0, 1, 1, 2)))]
        perm = rng.sample(range(len(shape)), len(shape))          # axis i of the factor is entry perm[i] of `shape`
        wanted = tuple(shape[p] for p in perm)
        terms = self.elements([x.type.shape[a] for a in contract])
        if self.elements(wanted) > MOST_ELEMENTS or self.elements([*x.type.shape, *wanted]) > MOST_STEPS * terms:
            return None
        y = self.like(x.type.dtype, wanted)
        pairs = [(a, perm.index(i)) for i, a in enumerate(shared)]
        if rng.random() < 0.3:
            x, y, pairs = y, x, [(b, a) for a, b in pairs]
        return tn.DotGeneral(x, y, tuple(pairs[len(contract):]), tuple(pairs[: len(contract)])).result

    def source(self, x: Value) -> Value | None:
        rng, dtype = self.rng, x.type.dtype
        way = rng.random()
        if way < 0.4:
            shape = [d if isinstance(d, int) else 2 for d in x.type.shape]
            if np.prod(shape) <= 200:
                return tn.Constant(random_array(np.random.default_rng(rng.randrange(99)), shape, dtype)).result
        if way < 0.8 and dtype != i1 and x.type.rank:
            return tn.Iota(x.type.shape, rng.randrange(x.type.rank), dtype).result
        if way < 0.9 and dtype in (i32, i64) and self.has("B"):
            return tn.Size(sym("B") * 2 + 1, dtype).result
        return tn.BroadcastTo(self.number(dtype), x.type.shape).result

    def composite(self, x: Value) -> Value | None:
        if not isinstance(x.type.dtype, FloatType):
            return None
        axes = [a for a, d in enumerate(x.type.shape) if self.positive(d)]
        plain = self.rng.choice((tn.Relu, tn.Gelu, tn.Silu, tn.Softplus))
        if not axes or self.rng.random() < 0.4:
            return plain(x).result
        axis = self.rng.choice(axes)
        if self.rng.random() < 0.2:
            return tn.ArgMax(x, axis).result
        by_axis = self.rng.choice((tn.Softmax, tn.LogSoftmax, tn.LogSumExp))
        by_axes = self.rng.choice((tn.Mean, lambda x, axes: tn.LayerNorm(x, None, None, axes)))
        return by_axis(x, axis).result if self.rng.random() < 0.6 else by_axes(x, (axis,)).result

    def registered(self, x: Value) -> Value | None:
        """An operation of any registered class."""
        for cls in self.rng.sample(registry.functions(), 4):                 # most are refused
            if (op := registry.drawn(cls, [*self.values, x], self.rng)) is not None:
                return op.results[0]
        return None

    def window(self, x: Value) -> Value | None:
        """A convolution or a maximum over windows of one or two axes."""
        rng, shape = self.rng, x.type.shape
        if not isinstance(x.type.dtype, FloatType) or not shape or not all(isinstance(d, int) for d in shape[-2:]):
            return None
        axes = rng.randint(1, min(2, len(shape)))
        sizes = [rng.randint(1, 3) for _ in range(axes)]
        if any(not isinstance(d, int) or d < k for d, k in zip(shape[-axes:], sizes)):
            return None
        ways: dict[str, Any] = {"stride": tuple(rng.randint(1, 3) for _ in sizes)}
        ways |= {name: tuple(rng.randint(0, k - 1) for k in sizes) for name in ("low", "high")}
        if rng.random() < 0.4:
            return tn.MaxPool(x, tuple(sizes), **ways).result
        groups = rng.choice((1, 1, 2))
        lead = (rng.randint(0, 2), 2 * groups)
        if self.elements((*lead, *shape[-axes:])) > MOST_ELEMENTS // 2 or len(shape) > axes:
            return None
        spread = tn.BroadcastTo(x, (*lead, *shape)).result
        return tn.Convolution(spread, self.like(x.type.dtype, (2 * groups, 2, *sizes)), groups=groups, **ways).result


WEIGHTS: tuple[tuple[Callable[[Generator, Value], Value | None], int], ...] = (
    (Generator.unary, 5), (Generator.binary, 9), (Generator.compare, 1), (Generator.select, 2), (Generator.cast, 2),
    (Generator.reduce, 5), (Generator.reshape, 3), (Generator.transpose, 2), (Generator.broadcast, 2),
    (Generator.slice, 2), (Generator.pad, 2), (Generator.concat, 2), (Generator.reverse, 1), (Generator.take, 1),
    (Generator.take_along, 1), (Generator.dot, 4), (Generator.source, 1), (Generator.composite, 1),
    (Generator.registered, 3), (Generator.window, 1), *families.FAMILIES)
FAMILIES = [family for family, _ in WEIGHTS]


def broadcasts(shape: Sequence[Dim], target: Sequence[Dim]) -> bool:
    return len(shape) <= len(target) and all(d in (1, e) for d, e in zip(reversed(shape), reversed(target)))


def erase_dead(main: Func) -> None:
    """Erase dead operations."""
    for op in reversed(main.block.ops):
        if op.results and not any(r.uses for r in op.results):
            op.erase()


def random_array(rng: np.random.Generator, shape: Sequence[int], dtype: ScalarType) -> Array:
    """Small numbers; some are equal, zeros of either sign, infinite, NaN, denormal, or the limits of the type."""
    target = to_numpy(dtype)
    if dtype == i1:
        return np.asarray(rng.random(shape) < 0.5)
    rare = rng.random(shape) < 0.02
    if isinstance(dtype, IndexType):
        dtype = i64
    if isinstance(dtype, IntType):
        most = 256 if dtype.width == 8 and dtype.unsigned else 12             # bytes may be blocks of quantised tensors
        out = np.asarray(rng.integers(0 if dtype.unsigned else -9, most, shape)).astype(target)
        bounds = np.iinfo(target)
        return np.where(rare, rng.choice(np.array([bounds.min, bounds.max], target), shape), out)
    numbers = np.asarray(rng.standard_normal(shape) * 2)
    numbers = np.where(rng.random(shape) < 0.1, np.round(numbers), numbers)
    limits: Any = ml_dtypes.finfo
    least, greatest = float(limits(target).smallest_subnormal), float(limits(target).max)
    strange = [0.0, -0.0, np.inf, -np.inf, np.nan, least, -3 * least, greatest, -greatest]
    return np.asarray(np.where(rare, rng.choice(strange, shape), numbers)).astype(target)


def generate(seed: int) -> Program:
    """The program of a seed."""
    return program(seed, Generator(seed))


def program(seed: int, generator: Generator) -> Program:
    """The program that a generator produces, with arguments."""
    made = generator.make()
    verify(made)
    rng = np.random.default_rng(seed)
    arguments = tuple(random_array(rng, [evaluate(d, generator.numbers) for d in a.type.shape], a.type.dtype)
                      for a in generator.main.block.args)
    return Program(seed, to_text(made), arguments)
