"""Padding layers: more elements around the last one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mlc.frontend.axes import plain_int
from mlc.frontend.functions import create
from mlc.frontend.functions import shape as S
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError
from mlc.nn.module import Module

Ints = int | Sequence[int]


class _Padding(Module):
    """Padding of the last `spatial` dimensions, in pairs (before, after) of the last dimension first."""

    spatial: ClassVar[int]
    mode: ClassVar[str]

    def __init__(self, padding: Ints) -> None:
        given = tuple(padding) if isinstance(padding, tuple | list) else (padding,) * (2 * self.spatial)
        if len(given) != 2 * self.spatial:
            raise UserError(f"padding = {padding} of {type(self).__name__}, expected an integer or {2 * self.spatial}",
                            code="MLC0357", loc=user_loc())
        self.padding = tuple(plain_int(n, "padding") for n in given)

    def extra_repr(self) -> str:
        return f"{self.padding}"

    def forward(self, input: Operand) -> Tensor:
        input = create.asarray(input)
        if len(input.shape) not in (self.spatial + 1, self.spatial + 2) and self.mode != "constant":
            raise UserError(f"{type(self).__name__} takes {self.spatial + 1} or {self.spatial + 2} dimensions, found "
                            f"{len(input.shape)}", code="MLC0364", loc=user_loc())
        return S.pad(input, self.padding, self.mode)


class _ConstantPad(_Padding):
    mode = "constant"

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"

    def forward(self, input: Operand) -> Tensor:
        return S.pad(input, self.padding, self.mode, self.value)


class ConstantPad1d(_ConstantPad):
    """Padding of 1 dimension by a constant.

    Shape:
        [n, c, l] or [c, l] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 2, before and after; negative ones cut off.
        value: The constant.

    Raises:
        UserError: `padding` has another number of entries (MLC0357), or `value` is no integer and the input of integers
            (MLC0352).

    Example:
        >>> nn.ConstantPad1d(1, 2.0)(mlc.ones(1, 1, 3)).shape
        (1, 1, 5)
    """

    spatial = 1


class ConstantPad2d(_ConstantPad):
    """Padding of 2 dimensions by a constant.

    h becomes top + h + bottom and w becomes left + w + right. The gradient of the added elements is dropped. There are
    no parameters.

    Shape:
        [n, c, h, w] or [c, h, w] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 4: left, right, top, bottom; negative ones cut off.
        value: The constant.

    Raises:
        UserError: `padding` has another number of entries (MLC0357), or `value` is no integer and the input of integers
            (MLC0352).

    Example:
        >>> nn.ConstantPad2d(1, 2.0)(mlc.ones(1, 1, 3, 3)).shape
        (1, 1, 5, 5)
    """

    spatial = 2


class ConstantPad3d(_ConstantPad):
    """Padding of 3 dimensions by a constant.

    Shape:
        [n, c, d, h, w] or [c, d, h, w] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 6: left, right, top, bottom, front, back;
            negative ones cut off.
        value: The constant.

    Raises:
        UserError: `padding` has another number of entries (MLC0357), or `value` is no integer and the input of integers
            (MLC0352).

    Example:
        >>> nn.ConstantPad3d(1, 2.0)(mlc.ones(1, 1, 3, 3, 3)).shape
        (1, 1, 5, 5, 5)
    """

    spatial = 3


class ZeroPad1d(_Padding):
    """Padding of 1 dimension by zeros.

    Shape:
        [n, c, l] or [c, l] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 2, before and after; negative ones cut off.

    Raises:
        UserError: `padding` has another number of entries (MLC0357).

    Example:
        >>> nn.ZeroPad1d(1)(mlc.ones(1, 1, 3)).shape
        (1, 1, 5)
    """

    spatial = 1
    mode = "constant"


class ZeroPad2d(_Padding):
    """Padding of 2 dimensions by zeros.

    h becomes top + h + bottom and w becomes left + w + right. It is `nn.ConstantPad2d` with 0, and has no parameters.

    Shape:
        [n, c, h, w] or [c, h, w] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 4: left, right, top, bottom; negative ones cut off.

    Raises:
        UserError: `padding` has another number of entries (MLC0357).

    Example:
        >>> nn.ZeroPad2d(1)(mlc.ones(1, 1, 3, 3)).shape
        (1, 1, 5, 5)
    """

    spatial = 2
    mode = "constant"


class ZeroPad3d(_Padding):
    """Padding of 3 dimensions by zeros.

    Shape:
        [n, c, d, h, w] or [c, d, h, w] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 6: left, right, top, bottom, front, back;
            negative ones cut off.

    Raises:
        UserError: `padding` has another number of entries (MLC0357).

    Example:
        >>> nn.ZeroPad3d(1)(mlc.ones(1, 1, 3, 3, 3)).shape
        (1, 1, 5, 5, 5)
    """

    spatial = 3
    mode = "constant"


class ReflectionPad1d(_Padding):
    """Padding of 1 dimension by its elements in reverse order, without those at the edge.

    Shape:
        [n, c, l] or [c, l] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 2, before and after; negative ones cut off.

    Raises:
        UserError: `padding` has another number of entries (MLC0357), or the input has another number of
            dimensions (MLC0364), or `padding` is more than the mode has (MLC0360).

    Example:
        >>> nn.ReflectionPad1d(1)(mlc.ones(1, 1, 3)).shape
        (1, 1, 5)
    """

    spatial = 1
    mode = "reflect"


class ReflectionPad2d(_Padding):
    """Padding of 2 dimensions by its elements in reverse order, without those at the edge.

    A row a b c d with 2 more on each side becomes c b a b c d c b, so no element is doubled at the edge; a side has at
    most size - 1 more. Gradients are summed where an element is used several times.

    Shape:
        [n, c, h, w] or [c, h, w] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 4: left, right, top, bottom; negative ones cut off.

    Raises:
        UserError: `padding` has another number of entries (MLC0357), or the input has another number of
            dimensions (MLC0364), or `padding` is more than the mode has (MLC0360).

    Example:
        >>> nn.ReflectionPad2d(1)(mlc.ones(1, 1, 3, 3)).shape
        (1, 1, 5, 5)
    """

    spatial = 2
    mode = "reflect"


class ReflectionPad3d(_Padding):
    """Padding of 3 dimensions by its elements in reverse order, without those at the edge.

    Shape:
        [n, c, d, h, w] or [c, d, h, w] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 6: left, right, top, bottom, front, back;
            negative ones cut off.

    Raises:
        UserError: `padding` has another number of entries (MLC0357), or the input has another number of
            dimensions (MLC0364), or `padding` is more than the mode has (MLC0360).

    Example:
        >>> nn.ReflectionPad3d(1)(mlc.ones(1, 1, 3, 3, 3)).shape
        (1, 1, 5, 5, 5)
    """

    spatial = 3
    mode = "reflect"


class ReplicationPad1d(_Padding):
    """Padding of 1 dimension by its elements at the edge.

    Shape:
        [n, c, l] or [c, l] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 2, before and after; negative ones cut off.

    Raises:
        UserError: `padding` has another number of entries (MLC0357), or the input has another number of
            dimensions (MLC0364).

    Example:
        >>> nn.ReplicationPad1d(1)(mlc.ones(1, 1, 3)).shape
        (1, 1, 5)
    """

    spatial = 1
    mode = "replicate"


class ReplicationPad2d(_Padding):
    """Padding of 2 dimensions by its elements at the edge.

    A row a b c with 2 more on each side becomes a a a b c c c. Gradients are summed where an element is used several
    times.

    Shape:
        [n, c, h, w] or [c, h, w] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 4: left, right, top, bottom; negative ones cut off.

    Raises:
        UserError: `padding` has another number of entries (MLC0357), or the input has another number of
            dimensions (MLC0364).

    Example:
        >>> nn.ReplicationPad2d(1)(mlc.ones(1, 1, 3, 3)).shape
        (1, 1, 5, 5)
    """

    spatial = 2
    mode = "replicate"


class ReplicationPad3d(_Padding):
    """Padding of 3 dimensions by its elements at the edge.

    Shape:
        [n, c, d, h, w] or [c, d, h, w] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 6: left, right, top, bottom, front, back;
            negative ones cut off.

    Raises:
        UserError: `padding` has another number of entries (MLC0357), or the input has another number of
            dimensions (MLC0364).

    Example:
        >>> nn.ReplicationPad3d(1)(mlc.ones(1, 1, 3, 3, 3)).shape
        (1, 1, 5, 5, 5)
    """

    spatial = 3
    mode = "replicate"


class CircularPad1d(_Padding):
    """Padding of 1 dimension by its elements at the other end.

    Shape:
        [n, c, l] or [c, l] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 2, before and after; negative ones cut off.

    Raises:
        UserError: `padding` has another number of entries (MLC0357), or the input has another number of
            dimensions (MLC0364), or `padding` is more than the mode has (MLC0360).

    Example:
        >>> nn.CircularPad1d(1)(mlc.ones(1, 1, 3)).shape
        (1, 1, 5)
    """

    spatial = 1
    mode = "circular"


class CircularPad2d(_Padding):
    """Padding of 2 dimensions by its elements at the other end.

    A row a b c d with 2 more on each side becomes c d a b c d a b, as if the image were a torus; a side has at most
    `size` more.

    Shape:
        [n, c, h, w] or [c, h, w] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 4: left, right, top, bottom; negative ones cut off.

    Raises:
        UserError: `padding` has another number of entries (MLC0357), or the input has another number of
            dimensions (MLC0364), or `padding` is more than the mode has (MLC0360).

    Example:
        >>> nn.CircularPad2d(1)(mlc.ones(1, 1, 3, 3)).shape
        (1, 1, 5, 5)
    """

    spatial = 2
    mode = "circular"


class CircularPad3d(_Padding):
    """Padding of 3 dimensions by its elements at the other end.

    Shape:
        [n, c, d, h, w] or [c, d, h, w] -> the same with more elements.

    Args:
        padding: Number of elements on each side, an integer, or 6: left, right, top, bottom, front, back;
            negative ones cut off.

    Raises:
        UserError: `padding` has another number of entries (MLC0357), or the input has another number of
            dimensions (MLC0364), or `padding` is more than the mode has (MLC0360).

    Example:
        >>> nn.CircularPad3d(1)(mlc.ones(1, 1, 3, 3, 3)).shape
        (1, 1, 5, 5, 5)
    """

    spatial = 3
    mode = "circular"
