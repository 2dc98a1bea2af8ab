"""Operators that make tensors of sizes and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.fx.table import row, same
from mlc.frontend.tensor import OPERATIONS as O
from mlc.frontend.tensor import Tensor
from mlc.ir.sizes import Size

same("arange", "eye", "full_like", "linspace", "logspace", "ones", "ones_like", "tril_indices", "triu_indices",
     "zeros", "zeros_like", "empty_like", "fill")


@row("full")
def full(size: Sequence[Any], value: Any, *, dtype: Any = None) -> Any:
    if dtype is None and isinstance(value, Size | Tensor):
        dtype = "float32" if isinstance(value, Tensor) and value.dtype.is_floating_point else "int64"
    return O["full"](size, value, dtype=dtype)


@row("scalar_tensor")
def scalar_tensor(value: Any, *, dtype: Any = None) -> Any:
    return O["full"]((), value, dtype="float32" if dtype is None else dtype)


@row("empty.memory_format", "_efficientzerotensor")
def empty(size: Sequence[Any], *, dtype: Any = None) -> Any:
    return O["zeros"](size, dtype="float32" if dtype is None else dtype)


@row("empty_strided", "empty_permuted")
def empty_strided(size: Sequence[Any], stride: Any, *, dtype: Any = None) -> Any:
    return empty(size, dtype=dtype)


@row("new_empty", "new_zeros", "new_empty_strided")
def new_zeros(x: Any, size: Sequence[Any], stride: Any = None, *, dtype: Any = None) -> Any:
    return O["zeros"](size, dtype=x.dtype if dtype is None else dtype)


@row("new_ones")
def new_ones(x: Any, size: Sequence[Any], *, dtype: Any = None) -> Any:
    return O["ones"](size, dtype=x.dtype if dtype is None else dtype)


@row("new_full")
def new_full(x: Any, size: Sequence[Any], value: Any, *, dtype: Any = None) -> Any:
    return O["full"](size, value, dtype=x.dtype if dtype is None else dtype)
