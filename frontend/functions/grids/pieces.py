"""Tensors stacked and split along a named direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.axes import axis, plain_int
from mlc.frontend.functions.grids.combinatorial import MOST_PIECES, operand_list
from mlc.frontend.functions.shape import cat, sliced
from mlc.frontend.methods import listed
from mlc.frontend.operands import reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import OPERATIONS, Operand, Tensor
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError


def _at_least(x: Tracer, rank: int) -> Tracer:
    """With dimensions of size 1: before a vector's to make 2, around it to make 3, behind a matrix's to make 3."""
    shape = list(x.shape)
    if rank == 1:
        return reshape(x, shape or [1])
    if len(shape) < 2:
        shape = [1, *(shape or [1])]
    return reshape(x, shape if len(shape) >= rank else [*shape, 1])


@operation(view=True, name="_atleast")
def _view(input: Operand, rank: int) -> Tensor:
    """The view of a tensor with at least so many dimensions."""
    return _at_least(tracer(input), rank)


def _each(tensors: Sequence[Any], rank: int) -> Any:
    several = len(tensors) != 1 or isinstance(tensors[0], tuple | list)
    return tuple(_view(x, rank) for x in listed(tuple(tensors))) if several else _view(tensors[0], rank)


@coded
def atleast_1d(*tensors: Operand) -> Any:
    """Tensors with at least one dimension: numbers become vectors of one element.

    Args:
        tensors: Tensors or numbers, as separate arguments or as one list.

    Returns:
        The tensor, or a tuple of several; views, where the memory of a tensor can be shared.

    Example:
        >>> mlc.atleast_1d(mlc.tensor(5.0))
        tensor([5.], dtype=mlc.float32)
    """
    return _each(tensors, 1)


@coded
def atleast_2d(*tensors: Operand) -> Any:
    """Tensors with at least two dimensions: numbers and vectors become matrices of one row.

    Args:
        tensors: Tensors or numbers, as separate arguments or as one list.

    Returns:
        The tensor, or a tuple of several; views, where the memory of a tensor can be shared.

    Example:
        >>> mlc.atleast_2d(mlc.tensor([1.0, 2.0])).shape
        (1, 2)
    """
    return _each(tensors, 2)


@coded
def atleast_3d(*tensors: Operand) -> Any:
    """Tensors with at least three dimensions: (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1).

    Args:
        tensors: Tensors or numbers, as separate arguments or as one list.

    Returns:
        The tensor, or a tuple of several; views, where the memory of a tensor can be shared.

    Example:
        >>> mlc.atleast_3d(mlc.tensor([1.0, 2.0])).shape
        (1, 2, 1)
    """
    return _each(tensors, 3)


for _f in (atleast_1d, atleast_2d, atleast_3d):
    OPERATIONS[_f.__name__] = _f


@operation()
def column_stack(tensors: Sequence[Operand]) -> Tensor:
    """Tensors side by side: vectors as columns, matrices as they are.

    Args:
        tensors: Tensors with as many rows.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        UserError: there is no tensor (MLC0353), or the numbers of rows differ (MLC0115).

    Example:
        >>> mlc.column_stack([mlc.tensor([1, 2]), mlc.tensor([3, 4])])
        tensor([[1, 3],
                [2, 4]], dtype=mlc.int64)
    """
    return cat([reshape(x, [*x.shape, *[1] * (2 - x.ndim)][:2]) if x.ndim == 1 else _at_least(x, 2)
                for x in operand_list([tensors])], 1)


@operation()
def dstack(tensors: Sequence[Operand]) -> Tensor:
    """Tensors one behind the other: joined along dimension 2, after `atleast_3d`.

    Args:
        tensors: Tensors of equal sizes in the other dimensions.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        UserError: there is no tensor (MLC0353), or other sizes differ (MLC0115).

    Example:
        >>> mlc.dstack([mlc.tensor([1, 2]), mlc.tensor([3, 4])]).shape
        (1, 2, 2)
    """
    return cat([_at_least(x, 3) for x in operand_list([tensors])], 2)


@operation(view=True, name="tensor_split")
def _split(input: Operand, indices_or_sections: int | Sequence[int], dim: int) -> tuple[Tensor, ...]:
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    n = x.shape[at]
    if not isinstance(n, int):
        raise UserError(f"tensor_split needs a size that is known, found {n}", code="MLC0365", symbols=sizes.symbols(n))
    if isinstance(indices_or_sections, tuple | list):
        cuts = [slice(None, plain_int(i, "index")).indices(n)[1] for i in indices_or_sections]
    else:
        count = plain_int(indices_or_sections, "sections")
        if not 1 <= count <= MOST_PIECES:
            raise UserError(f"{count} pieces", code="MLC0358", hint=f"it may be 1 to {MOST_PIECES}")
        short, more = divmod(n, count)
        cuts = [i * short + min(i, more) for i in range(1, count)]
    bounds = [0, *cuts, n]
    return tuple(sliced(x, at, a, max(a, b)) for a, b in zip(bounds, bounds[1:]))


@coded
def tensor_split(input: Operand, indices_or_sections: int | Sequence[int] | Tensor,
                 dim: int = 0) -> tuple[Tensor, ...]:
    """The tensor in pieces along a dimension: so many of about equal size, or cut at given indices.

    Args:
        input: Tensor of at least one dimension.
        indices_or_sections: Number of pieces, of which the first may have one element more; or the indices at which a
            new piece begins, as a sequence or, outside of a recorded function, as a tensor.
        dim: The dimension; negative ones count from the last.

    Returns:
        Tuple of tensors of the dtype of `input`.

    Raises:
        UserError: the number is not positive (MLC0358), `dim` is out of range (MLC0356), the size is symbolic
            (MLC0365), or `input` has no dimensions (MLC0364).

    Example:
        >>> mlc.tensor_split(mlc.arange(5), 2)
        (tensor([0, 1, 2], dtype=mlc.int64), tensor([3, 4], dtype=mlc.int64))
        >>> mlc.tensor_split(mlc.arange(5), (1, 4))
        (tensor([0], dtype=mlc.int64), tensor([1, 2, 3], dtype=mlc.int64), tensor([4], dtype=mlc.int64))
    """
    given: Any = indices_or_sections.tolist() if type(indices_or_sections) is Tensor else indices_or_sections
    return _split(input, given, dim)


OPERATIONS["tensor_split"] = tensor_split


def _even(x: Tracer, sections: Any, at: int) -> tuple[Tensor, ...]:
    n = x.shape[at]
    if isinstance(sections, int) and isinstance(n, int) and n % max(1, sections):
        raise UserError(f"{n} elements are not divided evenly into {sections}", code="MLC0358")
    return tensor_split(x, sections, at)


@operation(view=True)
def hsplit(input: Operand, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The tensor in pieces along dimension 1, a vector along dimension 0.

    Args:
        input: Tensor of at least one dimension.
        indices_or_sections: Number of equal pieces, or the indices at which a new piece begins.

    Returns:
        Tuple of tensors of the dtype of `input`.

    Raises:
        UserError: the size is not a multiple of the number (MLC0358), or there is no such dimension (MLC0356).

    Example:
        >>> mlc.hsplit(mlc.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1],
                [3]], dtype=mlc.int64), tensor([[2],
                [4]], dtype=mlc.int64))
    """
    x = tracer(input)
    return _even(x, indices_or_sections, 0 if x.ndim == 1 else axis(1, x.ndim))


@operation(view=True)
def vsplit(input: Operand, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The tensor in pieces along dimension 0.

    Indices [i, j] give input[:i], input[i:j] and input[j:]. The pieces are views. `mlc.tensor_split` splits along any
    dimension, and `mlc.vstack` is the inverse.

    Args:
        input: Tensor of at least one dimension; PyTorch refuses vectors.
        indices_or_sections: Number of equal pieces, or the indices at which a new piece begins.

    Returns:
        Tuple of tensors of the dtype of `input`.

    Raises:
        UserError: the size is not a multiple of the number (MLC0358), or there are no dimensions (MLC0364).

    Example:
        >>> mlc.vsplit(mlc.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1, 2]], dtype=mlc.int64), tensor([[3, 4]], dtype=mlc.int64))
    """
    x = tracer(input)
    return _even(x, indices_or_sections, axis(0, x.ndim, scalar=False))


@operation(view=True)
def dsplit(input: Operand, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The tensor in pieces along dimension 2.

    Indices [i, j] give input[:, :, :i], input[:, :, i:j] and input[:, :, j:]. The pieces are views, and `mlc.dstack` is
    the inverse.

    Args:
        input: Tensor of at least three dimensions.
        indices_or_sections: Number of equal pieces, or the indices at which a new piece begins.

    Returns:
        Tuple of tensors of the dtype of `input`.

    Raises:
        UserError: the size is not a multiple of the number (MLC0358), or there is no such dimension (MLC0356).

    Example:
        >>> [x.shape for x in mlc.dsplit(mlc.ones(2, 3, 4), 2)]
        [(2, 3, 2), (2, 3, 2)]
    """
    x = tracer(input)
    return _even(x, indices_or_sections, axis(2, x.ndim))
