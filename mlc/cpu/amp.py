"""Automatic mixed precision on the CPU, with the names of `torch.cpu.amp`.

`autocast` and `GradScaler` with the device left out: `mlc.amp.autocast("cpu", ...)` and `mlc.amp.GradScaler("cpu",
...)` are the same. The default dtype is bfloat16.

Example:
    >>> with mlc.cpu.amp.autocast():
    ...     (mlc.ones(2, 2) @ mlc.ones(2, 2)).dtype
    mlc.bfloat16
"""

from __future__ import annotations

from mlc import amp
from mlc.frontend import dtypes
from mlc.frontend.methods import DTypeLike

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """`mlc.amp.autocast` of the CPU.

    Args:
        enabled: Whether operations cast.
        dtype: float16 or bfloat16.
        cache_enabled: As of `mlc.amp.autocast`.

    Example:
        >>> with mlc.cpu.amp.autocast(enabled=False):
        ...     mlc.is_autocast_enabled("cpu")
        False
    """

    def __init__(self, enabled: bool = True, dtype: DTypeLike = dtypes.bfloat16, cache_enabled: bool = True) -> None:
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`mlc.amp.GradScaler` of the CPU.

    Args:
        init_scale: First factor.
        growth_factor: What the factor is multiplied by to grow.
        backoff_factor: What it is multiplied by after a step that was skipped.
        growth_interval: Number of steps after which it grows.
        enabled: Whether there is any scaling.

    Example:
        >>> mlc.cpu.amp.GradScaler(enabled=False).get_scale()
        1.0
    """

    def __init__(self, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
