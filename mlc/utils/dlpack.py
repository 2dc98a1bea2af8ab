"""Exchange of tensors with other libraries, under the names of `torch.utils.dlpack`.

Example:
    >>> mlc.utils.dlpack.from_dlpack(mlc.utils.dlpack.to_dlpack(mlc.ones(2)))
    tensor([1., 1.], dtype=mlc.float32)
"""

from __future__ import annotations

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend.functions import PUBLIC
from mlc.frontend.tensor import Tensor

__all__ = ["from_dlpack", "to_dlpack"]

from_dlpack = PUBLIC["from_dlpack"]


def to_dlpack(tensor: Tensor) -> Tensor:
    """Have a tensor be what another library's `from_dlpack` takes: it has the protocol itself.

    Args:
        tensor: The tensor.

    Returns:
        The tensor, whose `__dlpack__` hands its memory out.

    Example:
        >>> mlc.from_dlpack(mlc.utils.dlpack.to_dlpack(mlc.arange(3))).tolist()
        [0, 1, 2]
    """
    return tensor
