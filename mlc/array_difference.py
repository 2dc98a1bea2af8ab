"""Where two arrays differ by more than rounding, for messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.ir.interp import in_parts

Array = np.ndarray[Any, Any]

TOLERANCES = {"float16": (1e-2, 1e-4), "bfloat16": (3e-2, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-7, 1e-8)}
"""Relative and absolute tolerances by dtype: eager code rounds after every operation, compiled code less often."""


def unlike(a: Array, b: Array) -> str | None:
    """Where two arrays differ by more than rounding; NaNs are alike."""
    a, b = in_parts(a), in_parts(b)
    rtol, atol = TOLERANCES.get(a.dtype.name, (0.0, 0.0))
    if a.dtype.name not in TOLERANCES:
        same = np.asarray(a == b)
    else:
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(y), initial=0.0, where=np.isfinite(y))
            same = np.isclose(x, y, rtol=rtol, atol=atol * max(1.0, float(scale)), equal_nan=True)
    if np.all(same):
        return None
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{a[at]} in place of {b[at]} at {list(at)} ({int((~same).sum())} of {same.size} differ)"


def shown(x: Array) -> str:
    return f"{x.dtype}{list(x.shape)} {np.array2string(x.ravel()[:4], threshold=4)}"
