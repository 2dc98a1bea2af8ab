"""PyTorch's `data_parallel`, of which mlc has what one device can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.nn.module import Module

__all__ = ["data_parallel"]


def data_parallel(module: Module, inputs: Any, device_ids: Sequence[Any] | None = None, output_device: Any = None,
                  dim: int = 0, module_kwargs: dict[str, Any] | None = None) -> Any:
    """Call a module on the one device of its parameters.

    Args:
        module: The module.
        inputs: Its argument, or a tuple of them.
        device_ids: At most one device.
        output_device: Not used where there is one device.
        dim: Dimension that batches would be divided along.
        module_kwargs: Keyword arguments of the call.

    Returns:
        The result of the call.

    Raises:
        UserError: More than one device is given (MLC0768).

    Example:
        >>> nn.parallel.data_parallel(nn.Identity(), mlc.ones(2), ["cpu"])
        tensor([1., 1.], dtype=mlc.float32)
    """
    if device_ids is not None and len(device_ids) > 1:
        raise UserError(f"a batch would be divided among {len(device_ids)} devices, and mlc uses one at a time",
                        code="MLC0768", loc=user_loc(), hint="call the module itself")
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
