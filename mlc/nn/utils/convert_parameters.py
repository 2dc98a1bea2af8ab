"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from mlc.api import compile
from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import shape
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserTypeError
from mlc.nn.utils.clip_grad import tensors_of


@coded
def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of parameters, one after another, as one vector.

    Args:
        parameters: Tensors of any shapes.

    Returns:
        Tensor of one dimension, through which `backward` reaches the parameters.

    Raises:
        UserError: There are none (MLC0447).
        UserTypeError: One is no tensor (MLC0446).

    Example:
        >>> nn.utils.parameters_to_vector([mlc.ones(2, 1), mlc.zeros(2)])
        tensor([1., 1., 0., 0.], dtype=mlc.float32)
    """
    given = tensors_of(parameters, "parameters_to_vector")
    if not given:
        raise UserError("parameters_to_vector was given no parameters", code="MLC0447", loc=user_loc(),
                        hint="an iterator such as model.parameters() is empty once it has been gone through")
    return _joined(given)  # type: ignore[no-any-return]


@coded
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Replace the elements of parameters by those of a vector, in place.

    Unlike PyTorch's, parameters keep their dtypes, and share no memory with the vector.

    Args:
        vec: Tensor of one dimension with as many elements as the parameters have.
        parameters: Tensors of any shapes.

    Raises:
        UserError: The vector has another number of elements (MLC0447).
        UserTypeError: The vector or a parameter is no tensor (MLC0446).

    Example:
        >>> w, b = mlc.zeros(2, 1), mlc.zeros(2)
        >>> nn.utils.vector_to_parameters(mlc.arange(4.0), [w, b])
        >>> b
        tensor([2., 3.], dtype=mlc.float32)
    """
    given = tensors_of(parameters, "vector_to_parameters")
    if not isinstance(vec, Tensor):
        raise UserTypeError(f"a vector is a tensor, found {type(vec).__name__}", code="MLC0446", loc=user_loc())
    count = sum(p.numel() for p in given)
    if tuple(vec.shape) != (count,):
        raise UserError(f"the vector has shape {list(vec.shape)}, and the parameters {count} elements", code="MLC0447",
                        loc=user_loc(), hint="pass a vector like the result of parameters_to_vector")
    with GradMode(False):
        for p, new in zip(given, _parts(vec, given)):
            p.replace_elements(new)


@compile
def _joined(parameters: Any) -> Any:
    return shape.cat([shape.flatten(p) for p in parameters])


@compile
def _parts(vec: Any, parameters: Any) -> Any:
    """The part of the vector for each parameter, in its shape and dtype."""
    out, start = [], 0
    for p in parameters:
        size = prod(p.shape)
        out.append(E.cast_to(shape.reshape(vec[start:start + size], p.shape), p.dtype))
        start += size
    return out
