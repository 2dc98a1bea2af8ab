"""PyTorch's functions with the conventions of mlc's: signs that are fixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def signs(v: Any) -> Any:
    """1 or -1 for each column, so that its element of greatest absolute value becomes positive."""
    v = v.detach()
    if not v.numel():
        return v.new_ones(1, 1)
    return v.gather(-2, v.abs().argmax(-2, keepdim=True)).sign()


def _eigh(x: Any) -> Any:
    w, v = torch.linalg.eigh((x + x.mT) / 2)
    return w, v * signs(v)


def _svd(x: Any, full_matrices: bool = True, driver: str | None = None) -> Any:
    u, s, v = torch.linalg.svd(x, full_matrices=False, driver=driver)
    return u * signs(u), s, v * signs(u).mT


def _symmetric(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *args, **keywords: f((x + x.mT) / 2, *args, **keywords)


def _lstsq(a: Any, b: Any) -> Any:
    x, _, *rest = torch.linalg.lstsq(a, b)
    return x, ((a @ x - b) ** 2).sum(-2) if a.shape[-2] > a.shape[-1] else b.new_zeros(0), *rest


OWN: dict[str, Callable[..., Any]] = {
    "linalg.cholesky": _symmetric(torch.linalg.cholesky), "linalg.eigh": _eigh,
    "linalg.eigvalsh": _symmetric(torch.linalg.eigvalsh), "linalg.svd": _svd, "linalg.lstsq": _lstsq,
    "erfinv": torch.special.erfinv,
}
