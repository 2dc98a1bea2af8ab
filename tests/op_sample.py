"""Samples of tensor operations: the class; op_samples.py and the modules that it collects have the samples."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlc.dialects.builtin import Module, module
from mlc.dialects.func import Func, Return, function
from mlc.ir.core import Op, Value, at_end
from mlc.ir.parser import Parser
from mlc.ir.sizes import evaluate, sym
from mlc.ir.types import FloatType, TensorType, bf16, f16, f32, f64, i8, i32, i64, to_numpy, ui8
from tests.arrays import Array

NUMBERS = {"B": 3, "C": 2}
"""Values of the size symbols of samples."""

B, C = sym("B"), sym("C")


@dataclass(frozen=True, eq=False)
class Sample:
    """`make` builds one operation on values of `types`. Numbers lie within `low` and `high`, or are `values`."""

    types: tuple[TensorType, ...]
    make: Callable[..., Op | Value]
    low: float = -2.0
    high: float = 2.0
    values: tuple[Any, ...] | None = None
    smooth: bool = True                      # has a second derivative where the samples are
    op: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "op", self.build()[1].name)

    def __str__(self) -> str:
        name = self.op.removeprefix("tensor.")
        return f"{name}-{'-'.join(str(t)[7:-1].replace(' ', '') for t in self.types) or 'none'}"

    def build(self) -> tuple[Module, Op]:
        """A module with @main that returns what the operation gives, and the operation."""
        inside, main = module(), function("main", self.types)
        inside.body.block.insert(main)
        with at_end(main.block):
            made = self.make(*main.args)
            op = made.op if isinstance(made, Value) else made
            assert op is not None
            Return(tuple(op.results))
        main.update_type()
        return inside, op

    def arguments(self, seed: int = 0) -> list[Array]:
        """Numbers for the operands, the same for the same seed."""
        if self.values is not None:
            return [np.asarray(v, to_numpy(t.dtype)) for v, t in zip(self.values, self.types)]
        rng = np.random.default_rng([zlib.crc32(str(self).encode()), seed])
        return [self._random(rng, t) for t in self.types]

    def _random(self, rng: np.random.Generator, type: TensorType) -> Array:
        shape, dtype = [evaluate(d, NUMBERS) for d in type.shape], to_numpy(type.dtype)
        if isinstance(type.dtype, FloatType):
            return np.asarray(rng.uniform(self.low, self.high, shape)).astype(dtype)
        if dtype == np.bool_:
            return np.asarray(rng.integers(0, 2, shape)).astype(bool)
        low = max(int(self.low), 0) if dtype.kind == "u" else int(self.low)
        return np.asarray(rng.integers(low, int(self.high) + 1, shape)).astype(dtype)


def main_of(inside: Module) -> Func:
    found = inside.body.block.first
    assert isinstance(found, Func)
    return found


def t(text: str) -> TensorType:
    """`t("Bx3xf32")` is tensor<Bx3xf32>."""
    type = Parser(f"tensor<{text}>", "<sample>").type()
    assert isinstance(type, TensorType)
    return type


SHAPES = ("", "0x", "1x", "7x", "2x3x", "Bx3x", "0xBx")
PAIRS = (("", ""), ("7x", "7x"), ("0x", "1x"), ("2x3x", "3x"), ("5x", ""), ("Bx1x", "Cx"), ("1x3x", "2x1x"),
         ("Bx3x", "Bx3x"))
FLOATS, INTS = (f16, bf16, f32, f64), (i8, i32, i64, ui8)
