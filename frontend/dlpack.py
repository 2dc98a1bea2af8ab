"""Arrays of other libraries, by the DLPack protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError, UserTypeError

Array = np.ndarray[Any, Any]


def dlpack_device(x: Any) -> int:
    """DLPack device type of another library's tensor; some devices have none."""
    try:
        return int(x.__dlpack_device__()[0])
    except (BufferError, RuntimeError, TypeError, ValueError):
        return -1


def from_dlpack(x: Any) -> Array:
    """The array of another library's tensor, sharing its memory."""
    name = f"{type(x).__module__}.{type(x).__name__}"
    try:
        if x.__dlpack_device__()[0] not in (1, 3, 11):            # CPU, CUDA host memory, CUDA managed memory
            raise UserTypeError(f"a {name} that is not in the CPU's memory cannot be used here", code="MLC0346",
                                loc=user_loc(), hint="move it first: x.cpu()")
        if name.startswith("torch."):
            x = _plain_torch(x)
        return x if isinstance(x, np.ndarray) else np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserTypeError(f"a {name} cannot be shared: {error}", code="MLC0346", loc=user_loc()) from None


def _plain_torch(x: Any) -> Any:
    """A torch tensor in a form that DLPack can export: detached, and not bfloat16, which numpy lacks."""
    import torch
    x = x.detach()
    if x.dtype is torch.bfloat16:
        import ml_dtypes
        return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return x
