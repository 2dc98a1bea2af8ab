"""Sequences, which are lists while recording, and optionals, which are there or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import ints, number, refuse, tensor
from mlc.frontend.tensor import OPERATIONS as O
from mlc.ir.sizes import Size


def _position(sequence: list[Any], position: Any, places: int) -> int:
    """A position from the start, less than the number of places; one less than 0 counts from the end."""
    k = int(number(position))
    if not -len(sequence) <= k < places:
        refuse(f"the position {k} in a sequence of {len(sequence)}")
    return k + len(sequence) if k < 0 else k


@row("SequenceEmpty")
def empty(*, dtype: int = 1) -> Any:
    return []


@row("SequenceConstruct", values=("xs",))
def construct(*xs: Any) -> Any:
    return list(xs)


@row("SequenceInsert", values=("sequence", "x"), known=("position",))
def insert(sequence: Any, x: Any, position: Any = None) -> Any:
    k = len(sequence) if position is None else _position(sequence, position, len(sequence) + 1)
    return [*sequence[:k], x, *sequence[k:]]


@row("SequenceAt", values=("sequence",), known=("position",))
def at(sequence: Any, position: Any) -> Any:
    return sequence[_position(sequence, position, len(sequence))]


@row("SequenceErase", values=("sequence",), known=("position",))
def erase(sequence: Any, position: Any = None) -> Any:
    k = _position(sequence, -1 if position is None else position, len(sequence))
    return sequence[:k] + sequence[k + 1:]


@row("SequenceLength", values=("sequence",))
def length(sequence: Any) -> Any:
    return np.array(len(sequence), np.int64)


@row("SplitToSequence", known=("split",))
def split(x: Any, split: Any = None, *, axis: int = 0, keepdims: int = 1) -> Any:
    total = x.shape[axis]
    if isinstance(total, Size):
        refuse("an axis of a symbolic size is split")
    if split is None:
        parts = list(O["split"](x, 1, axis))
        return parts if keepdims else [O["squeeze"](p, axis) for p in parts]
    return list(O["split"](x, int(split) if split.ndim == 0 else ints(split), axis))


@row("ConcatFromSequence", values=("sequence",))
def concat(sequence: Any, *, axis: int, new_axis: int = 0) -> Any:
    return O["stack" if new_axis else "cat"](tuple(map(tensor, sequence)), axis)


@row("Optional", values=("x",))
def optional(x: Any = None, *, type: Any = None) -> Any:
    return x


@row("OptionalHasElement", values=("x",))
def has_element(x: Any = None) -> Any:
    return np.array(x is not None)


@row("OptionalGetElement", values=("x",))
def get_element(x: Any) -> Any:
    if x is None:
        refuse("the element of an optional that is absent")
    return x
