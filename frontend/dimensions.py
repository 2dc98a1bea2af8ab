"""Attributes of a tensor that tell its sizes, and the tensor with its dimensions in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlc.frontend.axes import axis
from mlc.frontend.methods import call

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor


class Dimensions:
    """The number of dimensions, their sizes, and transposes as attributes."""

    __slots__ = ()

    @property
    def ndim(self: Any) -> int:
        """The number of dimensions, len(x.shape).

        Example:
            >>> mlc.zeros(2, 3).ndim, mlc.tensor(5).ndim
            (2, 0)
        """
        return len(self.shape)

    def dim(self: Any) -> int:
        """The number of dimensions, as `Tensor.ndim`.

        Returns:
            An integer; 0 for a number.

        Example:
            >>> mlc.zeros(2, 3).dim()
            2
        """
        return len(self.shape)
    ndimension = dim

    def size(self: Any, dim: int | None = None) -> Any:
        """The sizes of all dimensions, as `Tensor.shape`, or that of one.

        Args:
            dim: The dimension; negative ones count from the last. None for all.

        Returns:
            A tuple of integers, or one integer; symbolic ones within a function that is compiled for all sizes.

        Raises:
            UserError: `dim` is out of range (MLC0356, an IndexError), or there are no dimensions (MLC0364).

        Example:
            >>> mlc.zeros(2, 3).size(), mlc.zeros(2, 3).size(-1)
            ((2, 3), 3)
        """
        if dim is None:
            return self.shape
        return self.shape[axis(dim, len(self.shape), scalar=False)]

    def numel(self: Any) -> Any:
        """The number of elements, the product of the sizes; 1 for a number.

        Returns:
            An integer; a symbolic one within a function that is compiled for all sizes.

        Example:
            >>> mlc.zeros(2, 3).numel(), mlc.tensor(5).numel(), mlc.zeros(0, 3).numel()
            (6, 1, 0)
        """
        return self.backing_array.size

    def nelement(self: Any) -> Any:
        """The number of elements, as `Tensor.numel`.

        Returns:
            An integer; a symbolic one within a function that is compiled for all sizes.

        Example:
            >>> mlc.zeros(2, 3).nelement()
            6
        """
        return self.numel()

    @property
    def T(self: Any) -> Tensor:
        """The tensor with its dimensions in reverse order: x.T[i, ..., k] = x[k, ..., i], a view.

        Example:
            >>> mlc.tensor([[1, 2], [3, 4]]).T
            tensor([[1, 3],
                    [2, 4]], dtype=mlc.int64)
        """
        out: Tensor = self.permute(*reversed(range(self.ndim)))
        return out

    @property
    def mT(self: Any) -> Tensor:
        """The matrices in the last two dimensions, transposed: x.mT[..., i, j] = x[..., j, i], a view.

        Raises:
            UserError: there are fewer than 2 dimensions (MLC0356, an IndexError).

        Example:
            >>> mlc.zeros(2, 3, 4).mT.shape
            (2, 4, 3)
        """
        out: Tensor = self.transpose(-2, -1)
        return out

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix: x.H[i, j] = conj(x[j, i]); a number is itself.

        Raises:
            UserError: there is 1 dimension, or more than 2 (MLC0364).

        Example:
            >>> mlc.tensor([[1, 2j]]).H
            tensor([[1.-0.j],
                    [0.-2.j]], dtype=mlc.complex64)
        """
        return call("Tensor.H", self)

    @property
    def mH(self) -> Tensor:
        """The conjugate transposes of the matrices in the last two dimensions: x.mH[..., i, j] = conj(x[..., j, i]).

        Raises:
            UserError: there are fewer than 2 dimensions (MLC0356, an IndexError).

        Example:
            >>> mlc.zeros(2, 3, 4).mH.shape
            (2, 4, 3)
        """
        return call("conj", call("transpose", self, -2, -1))
