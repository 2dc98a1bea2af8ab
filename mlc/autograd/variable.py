"""`Variable`, which old programs wrap tensors in."""

from __future__ import annotations

from mlc.frontend.arguments import coded
from mlc.frontend.tensor import Tensor


@coded
def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """The elements of a tensor as a leaf. PyTorch has deprecated it: tensors are variables.

    Args:
        data: The tensor.
        requires_grad: Whether operations on the leaf are recorded.

    Returns:
        A tensor without history.

    Raises:
        UserTypeError: It is to require a gradient, and has no floats (MLC0433).

    Example:
        >>> mlc.autograd.Variable(mlc.ones(2), requires_grad=True)
        tensor([1., 1.], dtype=mlc.float32, requires_grad=True)
    """
    return data.detach().requires_grad_(requires_grad)  # type: ignore[no-any-return]
