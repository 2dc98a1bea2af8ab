"""PyTorch's functions with the conventions of mlc's: complex numbers as pairs, and signs that are fixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _pairs(f: Callable[..., Any], into: bool, out: bool) -> Callable[..., Any]:
    """A transform that takes (`into`) or gives (`out`) complex numbers, with pairs in their place."""
    def g(x: Any, *args: Any, **keywords: Any) -> Any:
        y = f(torch.view_as_complex(x.contiguous()) if into else x, *args, **keywords)
        return torch.view_as_real(y.resolve_conj()) if out else y
    return g


def signs(v: Any) -> Any:
    """1 or -1 for each column, so that its element of greatest absolute value becomes positive."""
    v = v.detach()
    if not v.numel():
        return v.new_ones(1, 1)
    return v.gather(-2, v.abs().argmax(-2, keepdim=True)).sign()


def _eigh(x: Any) -> Any:
    w, v = torch.linalg.eigh((x + x.mT) / 2)
    return w, v * signs(v)


def _svd(x: Any, full_matrices: bool = True) -> Any:
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    return u * signs(u), s, v * signs(u).mT


def _symmetric(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *args, **keywords: f((x + x.mT) / 2, *args, **keywords)


def _lstsq(a: Any, b: Any) -> Any:
    x = torch.linalg.lstsq(a, b).solution
    return x, ((a @ x - b) ** 2).sum(-2) if a.shape[-2] > a.shape[-1] else b.new_zeros(0)


COMPLEX = {"fft": (True, True), "ifft": (True, True), "fft2": (True, True), "ifft2": (True, True),
           "fftn": (True, True), "ifftn": (True, True), "rfft": (False, True), "rfft2": (False, True),
           "rfftn": (False, True), "ihfft": (False, True), "irfft": (True, False), "irfft2": (True, False),
           "irfftn": (True, False), "hfft": (True, False), "hfft2": (True, False), "hfftn": (True, False),
           "ihfft2": (False, True), "ihfftn": (False, True)}

OWN: dict[str, Callable[..., Any]] = {
    **{f"fft.{name}": _pairs(getattr(torch.fft, name), *which) for name, which in COMPLEX.items()},
    "linalg.cholesky": _symmetric(torch.linalg.cholesky), "linalg.eigh": _eigh,
    "linalg.eigvalsh": _symmetric(torch.linalg.eigvalsh), "linalg.svd": _svd, "linalg.lstsq": _lstsq,
    "erfinv": torch.special.erfinv,
}
