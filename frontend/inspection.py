"""Functions that ask what an object, a tensor or a shape is, under PyTorch's names."""

from __future__ import annotations

from typing import Any

from mlc.frontend import printing
from mlc.frontend.arguments import coded
from mlc.frontend.dtypes import type_name
from mlc.frontend.functions.create import tensor
from mlc.frontend.operands import broadcast_shapes as broadcast
from mlc.frontend.operands import shape_of
from mlc.frontend.size import Size
from mlc.frontend.tensor import DTypeLike, Tensor

set_printoptions = coded(printing.set_printoptions)


@coded
def is_tensor(obj: Any) -> bool:
    """Whether an object is a tensor.

    Parameters are tensors too; arrays of numpy and Python numbers are not.

    Args:
        obj: Any object.

    Returns:
        A bool.

    Example:
        >>> mlc.is_tensor(mlc.ones(2)), mlc.is_tensor(np.ones(2))
        (True, False)
    """
    return isinstance(obj, Tensor) and not getattr(obj, "weak", False)     # a number that is recorded is none


@coded
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype of a tensor is one of floats.

    Args:
        input: The tensor.

    Returns:
        A bool.

    Example:
        >>> mlc.is_floating_point(mlc.ones(2))
        True
    """
    return input.is_floating_point()


@coded
def is_signed(input: Tensor) -> bool:
    """Whether the dtype of a tensor has negative numbers.

    Args:
        input: The tensor.

    Returns:
        A bool.

    Example:
        >>> mlc.is_signed(mlc.ones(2, dtype=mlc.uint8))
        False
    """
    return input.is_signed()


@coded
def is_complex(input: Tensor) -> bool:
    """Whether the dtype of a tensor is complex.

    Args:
        input: The tensor.

    Returns:
        A bool.

    Example:
        >>> mlc.is_complex(mlc.ones(2)), mlc.is_complex(mlc.tensor([1j]))
        (False, True)
    """
    return bool(input.is_complex())


@coded
def is_conj(input: Tensor) -> bool:
    """Whether the elements of a tensor are stored as their complex conjugates; they never are.

    Args:
        input: The tensor.

    Returns:
        False.

    Example:
        >>> mlc.is_conj(mlc.ones(2))
        False
    """
    return bool(input.is_conj())


@coded
def is_neg(input: Tensor) -> bool:
    """Whether the elements of a tensor are stored with the opposite sign; they never are.

    Args:
        input: The tensor.

    Returns:
        False.

    Example:
        >>> mlc.is_neg(mlc.ones(2))
        False
    """
    return bool(input.is_neg())


@coded
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape.

    Args:
        input: A tensor.
        other: Another.

    Returns:
        A bool.

    Example:
        >>> mlc.is_same_size(mlc.ones(2), mlc.ones(2, 1))
        False
    """
    return input.is_same_size(other)


@coded
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element of a tensor is not 0.

    Args:
        input: Tensor of one element.

    Returns:
        A bool.

    Raises:
        UserError: The tensor has not one element (MLC0344).

    Example:
        >>> mlc.is_nonzero(mlc.tensor([0.5]))
        True
    """
    return bool(input)


@coded
def numel(input: Tensor) -> Any:
    """Number of elements of a tensor.

    The product of the sizes; 1 for a tensor of no dimensions, and 0 if a size is 0.

    Args:
        input: The tensor.

    Returns:
        An integer.

    Example:
        >>> mlc.numel(mlc.ones(2, 3))
        6
    """
    return input.numel()


@coded
def typename(obj: Any) -> str:
    """Name of the type of an object, of a tensor with its dtype.

    Args:
        obj: Any object.

    Returns:
        A string.

    Example:
        >>> mlc.typename(mlc.ones(2)), mlc.typename(1)
        ('mlc.FloatTensor', 'int')
    """
    if isinstance(obj, Tensor):
        return type_name(obj.dtype, obj.device)
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@coded
def broadcast_shapes(*shapes: Any) -> Size:
    """Shape of the result of an elementwise operation on tensors of these shapes.

    Args:
        shapes: Sequences of sizes, or single sizes.

    Returns:
        The shape, an `mlc.Size`.

    Raises:
        UserError: The shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.broadcast_shapes((2, 1), (3,))
        mlc.Size([2, 3])
    """
    return Size(broadcast(*map(shape_of, shapes)))


@coded
def scalar_tensor(s: float, *, dtype: DTypeLike = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of no dimensions that holds a number.

    Args:
        s: The number.
        dtype: Dtype of the result; float32 if left out.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape ().

    Example:
        >>> mlc.scalar_tensor(3)
        tensor(3., dtype=mlc.float32)
    """
    return tensor(s, "float32" if dtype is None else dtype, device=device, requires_grad=requires_grad)
