"""Operators that check what graphs were made for; they have no result, and no code where the check is of types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.dtypes import as_dtype
from mlc.frontend.fx.refusing import refuse
from mlc.frontend.fx.table import row


@row("_assert_tensor_metadata")
def assert_tensor_metadata(x: Any, size: Sequence[Any] | None = None, stride: Sequence[Any] | None = None,
                           dtype: Any = None, **place: Any) -> None:
    """Types are known when the graph is recorded; strides are not those of PyTorch's tensors."""
    if dtype is not None and as_dtype(dtype) is not x.dtype:
        refuse(f"the graph was made for a tensor of {as_dtype(dtype).name}, and it is of {x.dtype.name}")
    if stride is not None:
        refuse("it checks strides, and those of mlc's tensors are its own")
    if size is not None and (len(size) != x.ndim or any(n != m for n, m in zip(size, x.shape))):
        refuse(f"the graph was made for the shape {list(size)}, and it is {list(x.shape)}")
