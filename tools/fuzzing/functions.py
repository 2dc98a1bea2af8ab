"""Random programs of several functions: calls of calls, loops, conditions, scans and scatters.

The functions are called with their own sizes as numbers, symbols or both, with one value for several arguments, more
than once, and some donate arguments or return them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlc.dialects import arith, func
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func, Return, function
from mlc.dialects.tensor.control import as_index, cond, for_loop, while_loop
from mlc.ir import sizes
from mlc.ir.core import Op, Symbol, Value, at_end
from mlc.ir.sizes import Dim, evaluate, sym, symbols
from mlc.ir.types import TensorType, Type, bind_symbols, f32, i1, i64, index
from mlc.tools.fuzzing.programs import DTYPES, MOST_ELEMENTS, NUMBERS, WEIGHTS, Generator, Program, program

DEEPEST, MOST_FUNCTIONS, MOST_LOOPS = 3, 6, 2
"""Limits on the depth of calls, the number of functions, and the depth of loops."""


class NoArgument(Exception):
    """A family wanted a new argument where none can be added."""


class CallGenerator(Generator):
    """The base generator with more families, which may return several values; callees have generators of their own."""

    def __init__(self, seed: int, caller: CallGenerator | None = None) -> None:
        super().__init__(seed)
        self.depth: int = caller.depth + 1 if caller else 0
        self.loops = 0
        self.callees: dict[Func, dict[str, Dim]] = {}
        """The functions that may be called here, and the sizes that their symbols had at first."""
        self.names: list[str] = caller.names if caller else []
        if caller:
            self.inside, self.numbers = caller.inside, dict(caller.numbers)

    def make(self) -> Module:
        for _ in range(self.rng.randint(1, 4)):
            self.argument(TensorType(self.shape(), self.rng.choice(DTYPES)))
        with at_end(self.main.block):
            self.grow(self.rng.randint(3, 12))
        self.results(self.rng.randint(1, 5))
        return self.inside

    def grow(self, count: int) -> None:
        """Generate about `count` more values at the insertion point."""
        for _ in range(6 * count):
            family = self.rng.choices(FAMILIES, [w for _, w in ALL])[0]
            try:
                made = family(self, self.pick())
            except NoArgument:
                continue
            values = [v for v in (made if isinstance(made, list) else [made]) if v is not None]
            self.values += [v for v in values if self.fits(v)]
            count -= bool(values)
            if count <= 0:
                return

    def argument(self, type: TensorType) -> Value:
        if self.depth or self.loops:
            raise NoArgument
        return super().argument(type)

    def results(self, count: int) -> None:
        """Return unused values, some others, and one twice; bind all size symbols; donate arguments."""
        rng, main = self.rng, self.main
        last = [v for v in self.values if v.op is not None and not v.uses] or self.values
        out = rng.sample(last, min(len(last), count)) + [v for v in self.values if rng.random() < 0.07]
        out += out[:1] if rng.random() < 0.15 else []
        rng.shuffle(out)
        with at_end(main.block):
            Return(tuple(out))
        for op in reversed(main.block.ops):
            if op.results and not any(r.uses for r in op.results):
                op.erase()
        for name in sorted({n for op in main.walk() if op is not main for n in _sizes(op)}):
            if not self.has(name):
                main.block.add_arg(TensorType((sym(name),), f32))
        if donate := tuple(i for i, _ in enumerate(main.args) if rng.random() < 0.3):
            main.attrs["donate"] = donate
        main.update_type()

    # -- families -------------------------------------------------------------------------------------------------
    def cumulative(self, x: Value) -> Value | None:
        if not x.type.rank or x.type.dtype == i1:
            return None
        return tn.Cumulative(x, axis=self.rng.randrange(x.type.rank), reverse=self.rng.random() < 0.4,
                             kind=self.rng.choice(("add", "mul", "max", "min"))).result

    def scatter(self, x: Value) -> Value | None:
        """Few positions, so that updates collide."""
        rng, shape = self.rng, x.type.shape
        axes = [a for a, d in enumerate(shape) if self.positive(d)]
        if not axes:
            return None
        axis = rng.choice(axes)
        kind = "set" if x.type.dtype == i1 else rng.choice(("set", "add", "mul", "max", "min"))
        along = rng.random() < 0.5
        counts: tuple[tuple[int, ...], ...] = ((1,), (3,), (9,)) if along else ((), (3,), (2, 2), (0,), (40,))
        count = rng.choice(counts)
        updates = (*shape[:axis], *count, *shape[axis + 1:])
        if self.elements(updates) > MOST_ELEMENTS:
            return None
        where = self.indices(updates if along else count, shape[axis])
        op = tn.ScatterAlong if along else tn.Scatter
        return op(x, where, self.like(x.type.dtype, updates), axis, kind).result

    def body(self, count: int, types: Sequence[Type], args: Sequence[Value] = ()) -> list[Value]:
        """A region's values of these types, some of them as they came."""
        outside = list(self.values)
        self.values += args
        self.loops += 1
        self.grow(count)
        self.loops -= 1
        fitting = [[v for v in self.values if v.type == t] for t in types]
        self.values = outside
        return [self.rng.choice(c[-4:]) for c in fitting]

    def loop(self, x: Value) -> list[Value] | None:
        rng = self.rng
        if self.loops >= MOST_LOOPS:
            return None
        init = [x, *(rng.choice((x, self.pick())) for _ in range(rng.randint(0, 2)))]
        types = [v.type for v in init]
        few = self.has("B") and self.numbers["B"] < 4
        stop: Dim = sym("B") if few and rng.random() < 0.4 else rng.randint(0, 3)
        bounds: tuple[Dim | Value, Dim | Value] = (0, stop)
        if rng.random() < 0.4:
            bounds = self.bound(2) if rng.random() < 0.7 else 0, self.bound(5)
        step = rng.choice((1, 1, 2, 3))
        return list(for_loop(*bounds, init, lambda _, *args: self.body(rng.randint(1, 4), types, args), step))

    def bound(self, most: int) -> Value:
        """A number that a tensor tells, up to a limit: in a batch it may be another one for each element."""
        x = self.pick()
        positive = tn.Compare("gt", x, tn.BroadcastTo(self.number(x.type.dtype), x.type.shape).result).result
        count = tn.ReduceSum(tn.Cast(positive, i64).result, tuple(range(x.type.rank))).result
        least = tn.Minimum(count, tn.Full(most, (), i64).result).result
        return arith.IndexCast(tn.Item(least).result, index).result

    def repeat(self, x: Value) -> list[Value] | None:
        """A loop with a condition, which reads values of outside, and perhaps carries one on unchanged."""
        rng = self.rng
        if self.loops >= MOST_LOOPS:
            return None
        init = [x, *(rng.choice((x, self.pick())) for _ in range(rng.randint(0, 2)))]
        types, stop = [v.type for v in init], as_index(rng.randint(0, 3))

        def more(count: Value, *args: Value) -> Value:
            return arith.CmpI("slt", count, stop).result

        def step(count: Value, *args: Value) -> list[Value]:
            values = self.body(rng.randint(1, 4), types, args)
            return [arith.AddI(count, as_index(1)).result, *(a if rng.random() < 0.15 else v
                                                             for a, v in zip(args, values))]

        return list(while_loop(more, step, [as_index(0), *init])[1:])

    def condition(self, x: Value) -> list[Value] | None:
        rng = self.rng
        if self.loops >= MOST_LOOPS:
            return None
        types = [x.type, *([self.pick().type] if rng.random() < 0.5 else [])]
        total = tn.ReduceSum(tn.Cast(x, f32).result, tuple(range(x.type.rank))).result
        flag = tn.Compare("lt", total, tn.Full(0.0, (), f32).result).result
        return list(cond(flag, *[lambda: self.body(rng.randint(0, 3), types)] * 2))

    def call(self, x: Value) -> list[Value] | None:
        """A call of an existing function, or of a new one that takes `x`."""
        if self.callees and self.rng.random() < 0.65:
            return self.call_of(self.rng.choice([*self.callees]))
        if self.depth >= DEEPEST or len(self.names) >= MOST_FUNCTIONS:
            return None
        return self.call_of(self.callee(x))

    def call_of(self, callee: Func) -> list[Value]:
        rng, args = self.rng, list[Value]()
        for a in callee.args:
            type = _at(a.type, self.callees[callee])
            fitting = [v for v in self.values if v.type == type]
            args.append(rng.choice(fitting[-5:]) if fitting else
                        tn.BroadcastTo(self.number(type.dtype), type.shape).result)
        if rng.random() < 0.3:
            args = [args[0] if v.type == args[0].type else v for v in args]
        env = bind_symbols([a.type for a in callee.args], [v.type for v in args])
        types = tuple(_at(v.type, env) for v in callee.block.terminator.operands)
        return list(func.Call(Symbol(callee.sym_name), tuple(args), types).results)

    def callee(self, x: Value) -> Func:
        """A new function of values like `x` and some others; some of their sizes are symbols of its own."""
        rng, name = self.rng, f"f{len(self.names)}"
        self.names.append(name)
        inner = CallGenerator(rng.randrange(1 << 30), self)
        made = inner.main = function(name, [], private=rng.random() < 0.8)
        env: dict[str, Dim] = {}
        for v in (x, *(rng.choice((x, self.pick())) for _ in range(rng.randint(0, 2)))):
            shape: list[Dim] = []
            for d in v.type.shape:
                if rng.random() < 0.5 or not str(d).isalnum():
                    known = next((n for n, size in env.items() if size == d), None)
                    shape.append(sym(known or f"S{len(env)}_{name}"))
                    env[str(shape[-1])] = d
                else:
                    shape.append(d)
            inner.values.append(made.block.add_arg(v.type.with_shape(tuple(shape))))
        inner.numbers |= {n: evaluate(d, self.numbers) for n, d in env.items()}
        inner.callees = {f: e for f, e in self.callees.items()
                         if all(n in NUMBERS for d in e.values() for n in symbols(d))}
        self.inside.body.block.insert(made, self.inside.body.block.first)
        with at_end(made.block):
            inner.grow(rng.randint(1, 10))
        inner.results(rng.randint(1, 3))
        self.callees[made] = env
        return made


ALL: tuple[tuple[Callable[..., Value | list[Value] | None], int], ...] = (
    *WEIGHTS, (Generator.composite, 4), (CallGenerator.cumulative, 3), (CallGenerator.scatter, 3),
    (CallGenerator.loop, 2), (CallGenerator.repeat, 2), (CallGenerator.condition, 1), (CallGenerator.call, 6))
FAMILIES = [family for family, _ in ALL]


def _at(type: Type, env: dict[str, Dim]) -> TensorType:
    assert isinstance(type, TensorType)
    return type.with_shape(tuple(sizes.substitute(d, env) for d in type.shape))


def _sizes(op: Op) -> set[str]:
    """The symbols of an operation's types and of the sizes among its attributes."""
    found = [d for v in (*op.results, *op.operands) if isinstance(v.type, TensorType) for d in v.type.shape]
    found += [v for v in op.attrs.values() if isinstance(v, sizes.Size)]
    return {n for d in found for n in symbols(d)}


def generate(seed: int) -> Program:
    """The program of a seed."""
    return program(seed, CallGenerator(seed))

