"""tensor, shape: operations that keep the elements and change their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import (
    Array,
    CopyOp,
    SizedOp,
    TypedOp,
    broadcast_to,
    lifted,
    pointwise_maps,
    reshape,
    shape_text,
    unbroadcast,
)
from mlc.dialects.tensor.iteration import (
    IndexingMap,
    IterationDomain,
    delinear,
    linear,
    long_axes,
)
from mlc.dialects.tensor.sharding_rule import ShardingRule, by_reshaping, labelled
from mlc.dialects.tensor.source import check_shape
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir import sizes
from mlc.ir.core import Op, Value
from mlc.ir.rewrite import rewrite
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType


class Reshape(TypedOp, SizedOp, CopyOp, name="tensor.reshape"):
    """result[i] = x[j], where i and j count the same number of elements in row-major order

        %r = tensor.reshape %x : tensor<Bx6xf32> to tensor<(2*B)x3xf32>
    """

    on_parts = parts.each_part
    x: Value
    shape: tuple[Dim, ...]
    spelled = ("shape",)
    iteration = Iteration.VIEW

    def infer(self) -> TensorType:
        source, = self.tensors()
        check_shape(self, self.shape)
        if sizes.product(self.shape) != source.size:
            self.refuse(f"{shape_text(source.shape)} has {source.size} elements, {shape_text(self.shape)} has "
                        f"{sizes.product(self.shape)}", "MLC0115",
                        symbols=sizes.symbols(source.size - sizes.product(self.shape)))
        return source.with_shape(self.shape)

    def compute(self, size: Any, x: Any) -> Array:
        return np.reshape(x, [size(d) for d in self.shape])

    @property
    def cost(self) -> Cost:  # type: ignore[override]
        """Adding or removing axes of size 1 is free; any other reshape is a view, whose operand must be in memory."""
        return Cost.FREE if self.moves_elements else Cost.CHEAP

    @property
    def moves_elements(self) -> bool:  # type: ignore[override]
        return long_axes(self.x.type.shape) == long_axes(self.shape)

    def vjp(self, ct: Value) -> list[Value | None]:
        return [reshape(ct, self.x.type.shape)]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return reshape(operands[0], (batch_size, *self.shape))

    sharding_rule = by_reshaping

    def on_shard(self, operands: Sequence[Value], shape: tuple[Dim, ...]) -> Op:
        return self.with_operands(operands, shape=shape)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        """If only axes of size 1 change, the others correspond in order; else by the row-major position."""
        old = self.x.type.shape
        if self.moves_elements:
            others = (e for e, n in zip(at, self.shape) if n != 1)
            return [tuple(0 if n == 1 else next(others) for n in old)]
        index = [e for e in at if e is not None]
        return [delinear(linear(index, self.shape), old) if len(index) == len(at) else None]


class Transpose(CopyOp, name="tensor.transpose"):
    """result[i_perm[0], i_perm[1], ...] = x[i_0, i_1, ...]

        %r = tensor.transpose %x {perm = [1, 0]} : (tensor<Bx3xf32>) -> tensor<3xBxf32>
    """

    on_parts = parts.each_part
    x: Value
    perm: tuple[int, ...]
    cost = Cost.CHEAP
    moves_elements = True

    def infer(self) -> TensorType:
        source, = self.tensors()
        if sorted(self.perm) != list(range(source.rank)):
            self.refuse(f"perm {list(self.perm)} is not a permutation of {source.rank} axes", "MLC0116")
        return source.with_shape(source.shape[p] for p in self.perm)

    def ref(self, x: Any) -> Array:
        return np.transpose(x, self.perm)

    def vjp(self, ct: Value) -> list[Value | None]:
        return [transpose(ct, inverse(self.perm))]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return transpose(operands[0], (0, *(p + 1 for p in self.perm)))

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        return [tuple(at[i] for i in inverse(self.perm))]


class BroadcastTo(TypedOp, SizedOp, CopyOp, name="tensor.broadcast_to"):
    """result[..., i, ...] = x[i, ...], with index 0 along axes where x has size 1

        %r = tensor.broadcast_to %x : tensor<1x3xf32> to tensor<BxCx3xf32>
    """

    on_parts = parts.each_part
    x: Value
    shape: tuple[Dim, ...]
    spelled = ("shape",)
    cost = Cost.FREE
    moves_elements = True
    operand_maps = pointwise_maps

    def infer(self) -> TensorType:
        source, = self.tensors()
        check_shape(self, self.shape)
        lead = len(self.shape) - source.rank
        if lead < 0 or any(d not in (1, e) for d, e in zip(source.shape, self.shape[lead:])):
            self.refuse(f"{shape_text(source.shape)} does not broadcast to {shape_text(self.shape)}", "MLC0111",
                        symbols=sizes.differing(source.shape, self.shape, stretch=True))
        return source.with_shape(self.shape)

    def compute(self, size: Any, x: Any) -> Array:
        return np.broadcast_to(x, [size(d) for d in self.shape])

    def sharding_rule(self) -> ShardingRule:
        """The new axes can be divided as well."""
        lead = len(self.shape) - self.x.type.rank
        return labelled(self, [[None if n == 1 else lead + axis for axis, n in enumerate(self.x.type.shape)]],
                        range(len(self.shape)))

    def on_shard(self, operands: Sequence[Value], shape: tuple[Dim, ...]) -> Op:
        return self.with_operands(operands, shape=shape)

    def vjp(self, ct: Value) -> list[Value | None]:
        return [unbroadcast(ct, self.x)]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return broadcast_to(lifted(operands[0], len(self.shape) + 1), (batch_size, *self.shape))


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    """The inverse permutation."""
    return tuple(sorted(range(len(perm)), key=lambda i: perm[i]))


def transpose(x: Value, perm: Sequence[int]) -> Value:
    """x with its axes permuted; no operation is built for the identity."""
    return x if list(perm) == sorted(perm) else Transpose(x, tuple(perm)).result


# -- rewrites ---------------------------------------------------------------------------------------------------------
@rewrite(Reshape, BroadcastTo)
def shape_unchanged(op: Reshape | BroadcastTo) -> Value | None:
    """reshape(x, shape of x) == broadcast_to(x, shape of x) == x"""
    return op.x if op.x.type == op.result.type else None


@rewrite(Reshape)
def reshape_twice(op: Reshape) -> Value | None:
    """reshape(reshape(x)) == reshape(x)"""
    return reshape(op.x.op.x, op.shape) if isinstance(op.x.op, Reshape) else None


@rewrite(BroadcastTo)
def broadcast_twice(op: BroadcastTo) -> Value | None:
    """broadcast_to(broadcast_to(x)) == broadcast_to(x)"""
    return broadcast_to(op.x.op.x, op.shape) if isinstance(op.x.op, BroadcastTo) else None


@rewrite(Transpose)
def transpose_nothing(op: Transpose) -> Value | None:
    """transpose(x, [0, 1, ...]) == x"""
    return op.x if list(op.perm) == sorted(op.perm) else None


@rewrite(Transpose)
def transpose_twice(op: Transpose) -> Value | None:
    """transpose(transpose(x, p), q) == transpose(x, p after q)"""
    inner = op.x.op
    return transpose(inner.x, [inner.perm[q] for q in op.perm]) if isinstance(inner, Transpose) else None


@rewrite(Transpose)
def transpose_of_single_axes(op: Transpose) -> Value | None:
    """transpose(x, perm) == reshape(x), if only axes of size 1 move"""
    long = [p for p in op.perm if op.x.type.shape[p] != 1]
    return reshape(op.x, op.result.type.shape) if long == sorted(long) else None
