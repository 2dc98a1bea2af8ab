"""Random operations of any class: operands and attributes are drawn from the declarations of its fields alone.

`infer` rejects most draws, which it must do by an Error. So the same draws provide operations for valid programs and
test the rejection of ill-formed ones.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from mlc.dialects.shard.mesh import Mesh
from mlc.dialects.tensor.complex import ComplexOp
from mlc.dialects.tensor.linalg.matrices import MatrixOp
from mlc.dialects.tensor.traits import FusionInterface, HostOp
from mlc.ir.core import REGISTRY, Op, Value
from mlc.ir.diag import Error
from mlc.ir.fields import Field
from mlc.ir.sizes import Dim, sym
from mlc.ir.types import TensorType, bf16, f16, f32, f64, i1, i8, i32, i64

WORDS = ("sum", "mean", "none", "prod", "max", "min", "add", "mul", "set", "eq", "ne", "lt", "le", "tanh")
LEFT_OUT = frozenset(f"tensor.{name}" for name in (
    "map", "argmax", "pick", "place", "search_sorted"))
"""Operations excluded from random programs that their traits do not exclude: ill-conditioned ones, and those for which
hardly any attributes are valid."""


def is_left_out(cls: type[Op]) -> bool:
    """Whether an operation is excluded from random programs: it is not a function of tensors, it rejects some values,
    it is a matrix decomposition, which is ill-conditioned, or makes or takes complex numbers."""
    return not issubclass(cls, FusionInterface) or issubclass(cls, HostOp | MatrixOp | ComplexOp) or (
        cls.checked_operand is not None or cls.name in LEFT_OUT)


@cache
def functions() -> list[type[Op]]:
    """The operations that any tensors of fitting types may be given to."""
    return [cls for name, cls in sorted(REGISTRY.items()) if name.startswith("tensor.") and not is_left_out(cls)]


def drawn(cls: type[Op], values: Sequence[Value], rng: random.Random, strange: bool = False) -> Op | None:
    """An operation of a class on some of these values, or None if it is rejected.

    strange  whether to draw attributes that are seldom valid, too
    """
    near = values[-1 - min(int(rng.expovariate(0.5)), len(values) - 1)]
    given = {f.name: _value(f, near, values, rng, strange) for f in cls.fields
             if f.name != "order" and f.kind in ("operand", "attr")}
    try:
        return cls(**given)
    except Error as error:
        if not error.code:
            raise
        return None


def _value(field: Field, near: Value, values: Sequence[Value], rng: random.Random, strange: bool) -> Any:
    if field.kind == "attr":
        return attribute(field.shape, near.type, rng, strange)
    if field.shape == "many":
        return tuple(_operand(near, values, rng) for _ in range(rng.randint(1, 3)))
    if field.shape == "optional" and rng.random() < 0.5:
        return None
    return _operand(near, values, rng)


def _operand(near: Value, values: Sequence[Value], rng: random.Random) -> Value:
    """A value that is mostly compatible with the others."""
    alike = [v for v in values if v.type == near.type] if rng.random() < 0.7 else values
    return rng.choice(alike)


def attribute(annotation: str, near: Any, rng: random.Random, strange: bool) -> Any:
    """A value of an annotation, one that goes with a tensor like `near` where there is a choice."""
    rank = near.rank if isinstance(near, TensorType) else 0
    shape: tuple[Dim, ...] = near.shape if isinstance(near, TensorType) else ()
    match annotation:
        case "int":
            return rng.choice((-1, 1 << 40, 1 << 70, -(1 << 63))) if strange and rng.random() < 0.5 else \
                rng.randrange(max(rank, 1))
        case "bool":
            return rng.random() < 0.5
        case "float" | "float | None":
            return rng.choice((float("nan"), 1e400, -1.0)) if strange else rng.choice((0.01, 0.5, 1.0))
        case "Array":
            shape = tuple(d if isinstance(d, int) and d < 9 else 2 for d in shape)
            return np.full(shape, rng.choice((0, 1.5, -0.0)), np.float32)
        case "int | float | bool | complex":
            return rng.choice((0, 1, 0.5, True))
        case "str" | "str | None":
            return rng.choice((*WORDS, "", "\0") if strange else WORDS)
        case "ScalarType" | "Type":
            return rng.choice((f32, f64, f16, bf16, i32, i64, i8, i1))
        case "Dim" | "Dim | None":
            return _size(rng, shape, strange)
        case "tuple[Dim, ...]":
            return shape if shape and rng.random() < 0.4 else \
                tuple(_size(rng, shape, strange) for _ in range(_count(rng, rank, strange)))
        case "tuple[int, ...]":
            return tuple(sorted(rng.sample(range(rank), rng.randint(0, rank)))) if not strange else \
                tuple(rng.choice((0, 1, -1, 1 << 33)) for _ in range(_count(rng, rank, strange)))
        case "tuple[tuple[int, int], ...]":
            return tuple((rng.randrange(-1, 3), rng.randrange(-1, 3)) for _ in range(rng.randint(0, 2)))
        case "Mesh":
            return rng.choice((Mesh(("d",), (2,)), Mesh(("d", "m"), (2, 3))))
        case "Axes":
            return tuple(rng.choice(("d", "m", "")) for _ in range(rng.randint(0, 2)))
        case _:
            return ()


def _count(rng: random.Random, rank: int, strange: bool) -> int:
    return rng.randint(0, 5) if strange else rank


def _size(rng: random.Random, shape: Sequence[Dim], strange: bool) -> Dim:
    if strange and rng.random() < 0.4:
        return rng.choice((-1, 1 << 40, 1 << 63, sym("B") - 7, sym("Q"), sym("B") * sym("N") * (1 << 50)))
    return rng.choice((*shape, 0, 1, 2, 3))

