"""tensor, losses: loss functions, with an optional reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import (
    Array,
    cast,
    compare,
    full,
    keep_axes,
    kind,
    reshape,
    rounded,
    select,
    shape_text,
    with_batch_axis,
)
from mlc.dialects.tensor.composite import Composite, log_softmax, softmax, widened
from mlc.dialects.tensor.index import positions
from mlc.dialects.tensor.source import Iota, size
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, i64


class _Loss(Composite):
    """A loss per element and its `reduction`: `none`, `mean` or `sum`."""

    def reduced(self, type: TensorType, reduction: str) -> TensorType:
        if reduction not in ("none", "mean", "sum"):
            self.refuse(f"reduction is {reduction!r}, not 'none', 'mean' or 'sum'", "MLC0116")
        return type if reduction == "none" else type.with_shape(())

    def reduce(self, x: Value, reduction: str) -> Value:
        if reduction == "none":
            return x
        total = tensor.ReduceSum(x, tuple(range(x.type.rank))).result
        return total if reduction == "sum" else total / size(x.type.size, x.type.dtype)

    def define_reduced(self, x: Array, reduction: str) -> Any:
        return x if reduction == "none" else x.sum() if reduction == "sum" else x.sum() / np.float64(x.size)

    def spread(self, ct: Value, shape: Sequence[Dim], reduction: str) -> Value:
        """The cotangent of each element's loss, to be broadcast."""
        return ct / size(sizes.product(shape), ct.type.dtype) if reduction == "mean" else ct

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        """The losses of all elements, reduced within each batch element."""
        if self.attrs["reduction"] == "none":
            return self.single_losses(batch_size, operands, batched)
        wide = [widened(x) if kind(x.type.dtype) == "float" else x for x in operands]
        losses = self.single_losses(batch_size, wide, batched)
        total: Value = tensor.ReduceSum(losses, tuple(range(1, losses.type.rank))).result
        if self.attrs["reduction"] == "mean":
            total = total / size(sizes.product(losses.type.shape[1:]), total.type.dtype)
        return cast(total, self.operands[0].type.dtype)

    def single_losses(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        """The loss of each element of all batch elements, without reduction."""
        raise NotImplementedError


class CrossEntropy(_Loss, name="tensor.cross_entropy"):
    """result[i] = -log_softmax(x[i])[labels[i]], with classes along axis, then reduced

        %r = tensor.cross_entropy %x, %y {axis = 1} : (tensor<Bx10xf32>, tensor<Bxi64>) -> tensor<f32>
    """

    logits: Value
    labels: Value
    axis: int
    reduction: str = "mean"
    format = "$logits `,` $labels attr-dict `:` functional-type"
    checked_operand = 1

    def infer(self) -> TensorType:
        x, labels = self.tensors()
        if kind(x.dtype) != "float":
            self.refuse(f"the logits have {x.dtype} elements, not floats", "MLC0113")
        if kind(labels.dtype) != "int":
            self.refuse(f"the labels have {labels.dtype} elements, not integers", "MLC0113")
        self.check_axis(self.axis, x.rank)
        shape = tuple(d for a, d in enumerate(x.shape) if a != self.axis)
        if labels.shape != shape:
            self.refuse(f"labels of shape {shape_text(labels.shape)} do not fit logits of shape "
                        f"{shape_text(x.shape)} without axis {self.axis}", "MLC0115",
                        symbols=sizes.differing(labels.shape, shape))
        return self.reduced(x.with_shape(shape), self.reduction)

    def ref(self, x: Any, labels: Any) -> Array:
        x = np.asarray(x).astype(np.float64)
        with np.errstate(all="ignore"):
            shifted = x - x.max(self.axis, keepdims=True, initial=-np.inf)
            losses = np.log(np.exp(shifted).sum(self.axis)) - np.squeeze(
                np.take_along_axis(shifted, self._positions(x, labels), self.axis), self.axis)
            return rounded(self.define_reduced(losses, self.reduction), self.logits.type.dtype)

    def _positions(self, x: Array, labels: Array) -> Array:
        """The labels with the class axis restored; UserIndexError for a label out of range."""
        return positions(self, x, np.expand_dims(np.asarray(labels), self.axis), self.axis)

    def _lifted(self) -> Value:
        return keep_axes(self.labels, (self.axis,), self.logits.type.shape)

    def decompose(self) -> Value:
        picked = tensor.TakeAlong(log_softmax(widened(self.logits), self.axis), self._lifted(), self.axis).result
        losses = -reshape(picked, self.labels.type.shape)
        return cast(self.reduce(losses, self.reduction), self.logits.type.dtype)

    def vjp(self, ct: Value) -> list[Value | None]:
        shape = self.logits.type.shape
        rows = tuple(d if a == self.axis else 1 for a, d in enumerate(shape))
        hit = compare("eq", Iota(rows, self.axis, i64).result, cast(self._lifted(), i64))
        probabilities = softmax(widened(self.logits), self.axis)
        slope = probabilities - select(hit, full(1, probabilities), full(0, probabilities))
        each = self.spread(cast(ct, probabilities.type.dtype), self.labels.type.shape, self.reduction)
        if self.reduction == "none":
            each = keep_axes(each, (self.axis,), shape)
        return [cast(slope * each, self.logits.type.dtype), None]

    def single_losses(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        logits, labels = with_batch_axis(batch_size, operands, batched)
        return CrossEntropy(logits, labels, self.axis + 1, "none").result
