"""Random graphs of many kernels: rows, columns, products, scans and updates of square matrices.

Most of what a program of any operations computes is one kernel. Here a value mostly needs whole rows or columns of
others, so that it is decided many times, and of many kernels beside each other, which of them may be one, in which
order they run, and whose memory a result may take.
"""

from __future__ import annotations

from collections.abc import Callable

from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module
from mlc.dialects.shard.shift import Roll
from mlc.ir.core import Value, at_end
from mlc.ir.types import FloatType, TensorType, f32, f64, i32, i64
from mlc.tools.fuzzing.programs import Generator, Program, program

RECENT = 10
"""How many of the last values an operation may take."""


class GraphGenerator(Generator):
    """Generates one graph. All values are n x n matrices; floats stay small."""

    def make(self) -> Module:
        rng = self.rng
        self.dtype, self.n = rng.choice((i32, i64, f32, f64)), rng.choice((2, 3, 5, 6, 8))
        for _ in range(rng.randint(1, 3)):
            self.argument(TensorType((self.n, self.n), self.dtype))
        with at_end(self.main.block):
            for _ in range(rng.randint(8, 40)):
                self.values.append(rng.choices(FAMILIES, WEIGHTS)[0](self, self.pick(), self.pick()))
        self.finish()
        return self.inside

    def pick(self) -> Value:
        return self.rng.choice(self.values[-RECENT:])

    def small(self, x: Value) -> Value:
        """x, or so much of it as keeps a sum of n terms of the size of these."""
        return tn.Mul(x, tn.Full(1 / self.n, (), self.dtype).result).result if isinstance(self.dtype, FloatType) else x

    def pointwise(self, x: Value, y: Value) -> Value:
        cls = self.rng.choice((tn.Add, tn.Sub, tn.Maximum, tn.Minimum))
        return self.small(cls(x, y).result)

    def reduced(self, x: Value, y: Value) -> Value:
        """y less the sum or the greatest of each row or column of x, once for all of it or along the other axis."""
        axis = self.rng.randrange(2)
        line = self.rng.choice((tn.ReduceSum, tn.ReduceMax))(self.small(x), (axis,)).result
        shape = (self.n, 1) if self.rng.random() < 0.5 else (1, self.n)
        return self.small(tn.Sub(y, tn.Reshape(line, shape).result).result)

    def product(self, x: Value, y: Value) -> Value:
        return self.small(tn.DotGeneral(x, y, (), ((1, self.rng.randrange(2)),)).result)

    def moved(self, x: Value, y: Value) -> Value:
        """x in another order, added to y."""
        other = tn.Transpose(x, (1, 0)) if self.rng.random() < 0.5 else tn.Reverse(x, (self.rng.randrange(2),))
        return self.small(tn.Add(other.result, y).result)

    def rolled(self, x: Value, y: Value) -> Value:
        """The difference of the two neighbours of each element, some of which lie on other ranks of a mesh."""
        axis, by = self.rng.randrange(2), self.rng.choice((1, 1, 2))
        return self.small(tn.Sub(Roll(x, axis, by).result, Roll(x, axis, -1).result).result)

    def scanned(self, x: Value, y: Value) -> Value:
        rng = self.rng
        return tn.Cumulative(self.small(x), axis=rng.randrange(2), reverse=rng.random() < 0.5,
                             kind=rng.choice(("add", "max", "min"))).result

    def updated(self, x: Value, y: Value) -> Value:
        """x with a row, a column or a corner of y in place of its own; that may be written over x, or over y."""
        rng, n = self.rng, self.n
        shape = rng.choice(((1, n), (n, 1), (n - 1, n - 1)))
        piece = tn.Slice(y, (0, 0), shape, (1, 1)).result
        starts = tuple(tn.Full(rng.randint(0, n - d), (), i64).result for d in shape)
        return tn.DynamicUpdateSlice(x, piece, starts).result

    def scattered(self, x: Value, y: Value) -> Value:
        """x with the rows or columns of y added or put where another order of them says."""
        rng = self.rng
        row = tn.Iota((self.n,), 0, i64).result
        at = rng.choice((lambda: row, lambda: tn.Reverse(row, (0,)).result,
                         lambda: tn.Minimum(row, tn.Full(1, (), i64).result).result))()
        return self.small(tn.Scatter(x, at, y, rng.randrange(2), rng.choice(("add", "set", "max"))).result)


Family = Callable[[GraphGenerator, Value, Value], Value]
ALL: tuple[tuple[Family, int], ...] = (
    (GraphGenerator.pointwise, 6), (GraphGenerator.reduced, 5), (GraphGenerator.product, 2), (GraphGenerator.moved, 2),
    (GraphGenerator.scanned, 1), (GraphGenerator.rolled, 1), (GraphGenerator.updated, 3), (GraphGenerator.scattered, 1))
FAMILIES, WEIGHTS = [family for family, _ in ALL], [weight for _, weight in ALL]


def generate(seed: int) -> Program:
    """The program of a seed."""
    return program(seed, GraphGenerator(seed))
