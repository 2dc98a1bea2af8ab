"""How tensors of PyTorch's are in memory, for code that takes and fills contiguous arrays."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlc.frontend.dtypes import as_dtype
from mlc.frontend.fx.support import hint
from mlc.ir.types import TensorType

Order = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """The type of a tensor, and in which order its dimensions are in memory.

    sizes  integers, or symbolic sizes of mlc's
    order  the permutation that makes such a tensor contiguous, as (0, 2, 3, 1) does for one that is channels-last
    bits   whether such a tensor may be marked as conjugated or negated, and has to be resolved
    """

    sizes: tuple[Any, ...]
    dtype: Any
    order: Order
    bits: bool

    @staticmethod
    def of(x: Any, sizes: Sequence[Any] | None = None) -> Layout:
        """The layout of a tensor, fake or not; contiguous if its elements overlap or have gaps between them.

        sizes  what its sizes are; those of the example, without it
        """
        example = tuple(map(hint, x.shape))
        order = order_of(example, [hint(n) for n in x.stride()])
        return Layout(example if sizes is None else tuple(sizes), x.dtype, order, x.is_neg() or x.dtype.is_complex)

    def at(self, sizes: Sequence[int]) -> Layout:
        """The same for a tensor of these sizes."""
        return replace(self, sizes=tuple(sizes))

    @functools.cached_property
    def plain(self) -> bool:
        """Whether such a tensor is contiguous as it is."""
        return self.order == tuple(range(len(self.order)))

    @functools.cached_property
    def strides(self) -> tuple[int, ...]:
        """The strides of such a tensor; its sizes are integers."""
        return strides_of(self.sizes, self.order)

    @property
    def type(self) -> TensorType:
        """The type of the array that the memory of such a tensor is."""
        return TensorType(tuple(self.sizes[d] for d in self.order), as_dtype(self.dtype).ir)

    @property
    def inverse(self) -> Order:
        """The permutation from the array to the tensor."""
        return tuple(self.order.index(d) for d in range(len(self.order)))

    def fits(self, x: Any) -> bool:
        """Whether the memory of a tensor of this type is what code expects."""
        if self.bits and (x.is_conj() or x.is_neg()):
            return False
        return x.is_contiguous() if self.plain else x.stride() == self.strides  # type: ignore[no-any-return]

    def new(self) -> Any:
        """A tensor of this layout, with any elements."""
        import torch
        return torch.empty_strided(self.sizes, self.strides, dtype=self.dtype)

    def copy_of(self, x: Any) -> Any:
        """A tensor of this layout with the elements of another."""
        import torch
        with torch.no_grad():
            return self.new().copy_(x)


def order_of(sizes: Sequence[int], strides: Sequence[int]) -> Order:
    """The permutation of the dimensions of a tensor that makes it contiguous; the identity if there is none, since
    elements overlap or there are gaps between them."""
    identity = tuple(range(len(sizes)))
    longer = [d for d in identity if sizes[d] != 1]
    ordered = sorted(longer, key=lambda d: -strides[d])
    step = 1
    for d in reversed(ordered):
        if strides[d] != step:
            return identity
        step *= sizes[d]
    if ordered == longer or not step:
        return identity
    pending = iter(ordered)
    return tuple(next(pending) if d in longer else d for d in identity)


def strides_of(sizes: Sequence[int], order: Order) -> tuple[int, ...]:
    """The strides of a tensor that `order` makes contiguous."""
    strides, step = [0] * len(sizes), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(sizes[d], 1)
    return tuple(strides)
