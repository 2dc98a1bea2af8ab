"""Automatic mixed precision on GPUs, with the names of `torch.cuda.amp`.

`autocast` and `GradScaler` with the device left out: `mlc.amp.autocast("cuda", ...)` and `mlc.amp.GradScaler("cuda",
...)` are the same. The default dtype is float16, so gradients are scaled.

Example:
    >>> scaler = mlc.cuda.amp.GradScaler(enabled=False)
    >>> scaler.scale(mlc.tensor(2.0))
    tensor(2., dtype=mlc.float32)
"""

from __future__ import annotations

from mlc import amp
from mlc.frontend import dtypes
from mlc.frontend.methods import DTypeLike

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """`mlc.amp.autocast` of GPUs.

    Args:
        enabled: Whether operations cast.
        dtype: float16 or bfloat16.
        cache_enabled: As of `mlc.amp.autocast`.

    Example:
        >>> with mlc.cuda.amp.autocast(enabled=False):
        ...     mlc.is_autocast_enabled("cuda")
        False
    """

    def __init__(self, enabled: bool = True, dtype: DTypeLike = dtypes.float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`mlc.amp.GradScaler` of GPUs.

    Args:
        init_scale: First factor.
        growth_factor: What the factor is multiplied by to grow.
        backoff_factor: What it is multiplied by after a step that was skipped.
        growth_interval: Number of steps after which it grows.
        enabled: Whether there is any scaling.

    Example:
        >>> mlc.cuda.amp.GradScaler(enabled=False).get_scale()
        1.0
    """

    def __init__(self, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
