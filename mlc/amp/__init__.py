"""Automatic mixed precision with the names of `torch.amp`: `autocast`, and `GradScaler` for training in float16.

    scaler = mlc.amp.GradScaler("cpu")
    for x, y in loader:
        optimizer.zero_grad()
        with mlc.amp.autocast("cpu", dtype=mlc.float16):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

bfloat16 has the range of float32 and needs no scaler.

Example:
    >>> with mlc.amp.autocast("cpu", dtype=mlc.bfloat16):
    ...     (mlc.ones(2, 2) @ mlc.ones(2, 2)).dtype
    mlc.bfloat16
"""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.amp.autograd_function import custom_bwd, custom_fwd
from mlc.amp.grad_scaler import GradScaler, is_autocast_available
from mlc.frontend.autocast import autocast

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
