"""Operators that move elements: views, copies, joins and pieces. Views in a functional graph are values."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from mlc.frontend.fx.refusing import refuse
from mlc.frontend.fx.table import renamed, row, same
from mlc.frontend.tensor import OPERATIONS as O

same("cat", "diag_embed", "diagonal", "diagonal_scatter", "expand", "flip", "narrow", "permute",
     "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "reshape", "roll", "rot90", "select", "select_scatter",
     "squeeze", "stack", "t", "transpose", "unbind", "unsqueeze", "view.default", "unfold_copy", "split",
     "split_with_sizes", "slice_scatter", "constant_pad_nd", "block_diag", "tril", "triu",
     "diagonal_copy", "permute_copy", "expand_copy", "unbind_copy", "split_copy", "split_with_sizes_copy",
     "squeeze_copy", "unsqueeze_copy", "select_copy", "transpose_copy", "t_copy", "repeat_interleave.self_int")
renamed(_unsafe_view="reshape", unsafe_split="split", view_copy="view",
        unsafe_split_with_sizes="split_with_sizes", unfold="unfold_copy")
TO_THE_END = 2**63 - 1
"""The end of a slice that goes to the end."""


@row("_reshape_alias", "_reshape_copy")
def reshape(x: Any, size: Sequence[Any], stride: Any = None) -> Any:
    return O["reshape"](x, size)


@row("alias", "detach", "lift", "lift_fresh", "lift_fresh_copy", "positive", "contiguous", "alias_copy", "detach_copy",
     "resolve_conj", "resolve_neg")
def alias(x: Any) -> Any:
    return x


@row("clone")
def clone(x: Any) -> Any:
    return x


@row("_to_copy", "to.dtype")
def to_copy(x: Any, dtype: Any = None) -> Any:
    return x if dtype is None else O["cast"](x, dtype)


@row("_neg_view")
def neg_view(x: Any) -> Any:
    return O["neg"](x)


@row("copy", "copy_")
def copy(x: Any, source: Any) -> Any:
    return O["broadcast_to"](O["cast"](source, x.dtype), x.shape)


@row("slice.Tensor", "slice_copy.Tensor")
def piece(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    end = None if isinstance(end, int) and end == TO_THE_END else end
    return x[(builtins.slice(None),) * (dim % x.ndim) + (builtins.slice(start, end, step),)]


@row("slice_scatter.default")
def slice_scatter(x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    end = None if isinstance(end, int) and end == TO_THE_END else end
    return O["slice_scatter"](x, source, dim, start, end, step)


@row("as_strided", strided=True)
def as_strided(strides: Sequence[Any], x: Any, size: Sequence[Any], stride: Sequence[Any], offset: Any = None) -> Any:
    order = order_in_memory(x.shape, strides, offset)
    return O["as_strided"](O["reshape"](O["permute"](x, order), [-1]), size, stride)


@row("as_strided_scatter", strided=True)
def as_strided_scatter(strides: Sequence[Any], x: Any, source: Any, size: Sequence[Any], stride: Sequence[Any],
                       offset: Any = None) -> Any:
    order = order_in_memory(x.shape, strides, offset)
    memory = O["permute"](x, order)
    found = O["as_strided_scatter"](O["reshape"](memory, [-1]), source, size, stride)
    return O["permute"](O["reshape"](found, memory.shape), [order.index(d) for d in range(x.ndim)])


def order_in_memory(sizes: Sequence[Any], strides: Sequence[Any], offset: Any) -> list[int]:
    """The permutation that makes a tensor contiguous; refused if there is none, since elements overlap or have gaps
    between them, and for views that do not begin where the tensor does."""
    if offset is not None:
        refuse("where it begins is counted from the start of the memory that PyTorch's tensor shares")
    if not all(isinstance(n, int) for n in (*sizes, *strides)):
        refuse("the tensor has symbolic sizes")
    order, step = sorted(range(len(sizes)), key=lambda d: (-strides[d], -sizes[d])), 1
    for d in reversed(order):
        if sizes[d] != 1 and strides[d] != step:
            refuse("the tensor is of elements that overlap in PyTorch's memory, or have gaps between them")
        step *= sizes[d]
    return order


@row("repeat")
def repeat(x: Any, repeats: Sequence[Any]) -> Any:
    ones = (1,) * (len(repeats) - x.ndim)
    return O["tile"](O["reshape"](x, (*ones, *x.shape)) if ones else x, repeats)


@row("view.dtype", "view_copy.dtype")
def bits(x: Any, dtype: Any) -> Any:
    return x if x.dtype is dtype else O["Tensor.view"](x, dtype)


@row("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(x: Any, padding: Sequence[int]) -> Any:
    return O["pad"](x, padding, "reflect")


@row("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(x: Any, padding: Sequence[int]) -> Any:
    return O["pad"](x, padding, "replicate")
