"""Operators of PyTorch's database that mlc has in another place, and those whose values are not determined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import mlc
from tests.peers.opinfo_compositions import COMPOSITIONS
from tests.torch_conventions import signs

F = mlc.nn.functional


def _antialiased(x: Any, output_size: Any, align_corners: bool, scale_factors: Any = None, scales_h: Any = None,
                 scales_w: Any = None) -> Any:
    if scales_h is not None or scales_w is not None:
        raise mlc.UserError("interpolate takes sizes or factors, not both", code="MLC0353")
    return F.interpolate(x, output_size, scale_factors, "bilinear", align_corners, antialias=True)


def _grid_sampler(x: Any, grid: Any, mode: int, padding_mode: int, align_corners: bool) -> Any:
    return F.grid_sample(x, grid, ("bilinear", "nearest", "bicubic")[mode],
                         ("zeros", "border", "reflection")[padding_mode], align_corners)


def _in_place(name: str) -> Callable[..., Any]:
    return lambda x, *args, **keywords: getattr(x.clone(), f"{name}_")(*args, **keywords)


def _eigh(*args: Any, **keywords: Any) -> Any:
    w, v = torch.linalg.eigh(*args, **keywords)
    return w, v * signs(v)


def _svd(A: Any, full_matrices: bool = True, **keywords: Any) -> Any:
    u, s, vh = torch.linalg.svd(A, full_matrices=False)
    return u * signs(u), s, vh * signs(u).mT


def _first_singular_vectors(A: Any, full_matrices: bool = True) -> Any:
    u, s, vh = mlc.linalg.svd(A, full_matrices)
    k = s.shape[-1]
    return u[..., :k], s, vh[..., :k, :]


def _lstsq(a: Any, b: Any, driver: Any = None) -> Any:
    x = torch.linalg.lstsq(a, b).solution
    return x, ((a @ x - b).abs() ** 2).sum(-2) if a.shape[-2] > a.shape[-1] else b.real.new_zeros(0)


def _signed_vectors(f: Callable[..., Any], signs: Callable[..., Any]) -> Callable[..., Any]:
    """An approximation of a product of two matrices by singular vectors, with signs that are fixed."""
    def of(a: Any, b: Any, **keywords: Any) -> Any:
        if keywords.get("M") is not None:
            raise NotImplementedError("the difference is of a higher rank, so that the result depends on what is drawn")
        u, s, v = f(a @ b.mT, **keywords)
        return u * signs(u), s, v * signs(u)
    return of


def _signed_svd(f: Callable[..., Any], signs: Callable[..., Any]) -> Callable[..., Any]:
    """The singular vectors that are determined, with signs that are fixed."""
    def of(A: Any, some: bool = True, compute_uv: bool = True) -> Any:
        u, s, v = f(A, some, compute_uv)
        if not compute_uv:
            return u, s, v
        u, v = u[..., :s.shape[-1]], v[..., :s.shape[-1]]
        return u * signs(u), s, v * signs(u)
    return of


def _of_triangle(f: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A function of a triangular factor, of which PyTorch's derivative does not leave out the other triangle."""
    def of(*args: Any, upper: bool = False, **keywords: Any) -> Any:
        factor = args[place].triu() if upper else args[place].tril()
        return f(*args[:place], factor, upper=upper, **keywords)
    return of


def _our_signs(u: Any) -> Any:
    if 0 in u.shape:
        return 1
    return mlc.take_along_dim(u, mlc.argmax(mlc.abs(u), -2, True), -2).detach().sign()


def _of_hermitian(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda A, *args, **keywords: f((A + A.mH) / 2, *args, **keywords)


def _hermitian_pinv(A: Any, **keywords: Any) -> Any:
    return torch.linalg.pinv((A + A.mH) / 2, **keywords)


REFERENCES: dict[str, Callable[..., Any]] = {
    "linalg.eigh": _eigh, "linalg.svd": _svd, "linalg.lstsq": _lstsq,
    "linalg_pinv_hermitian": _hermitian_pinv,
    **{name: _of_hermitian(f) for name, f in (("cholesky", torch.cholesky), ("linalg.cholesky", torch.linalg.cholesky),
                                              ("linalg.cholesky_ex", torch.linalg.cholesky_ex))},
    "cholesky_inverse": _of_triangle(torch.cholesky_inverse, 0),
    "cholesky_solve": _of_triangle(torch.cholesky_solve, 1),
    "svd": _signed_svd(torch.svd, signs), "svd_lowrank": _signed_vectors(torch.svd_lowrank, signs),
    "pca_lowrank": _signed_vectors(torch.pca_lowrank, signs)}
"""PyTorch's functions, by the name of an entry or of one of its variants, with mlc's conventions: the signs of vectors,
and the results that mlc has."""

ORDER = "the database has the arguments in another order"
ELSEWHERE: dict[str, tuple[Callable[..., Any], str]] = {
    **COMPOSITIONS,
    "einsum": (lambda operands, equation: mlc.einsum(equation, *operands), ORDER),
    "where": (lambda x, condition, other, **named: mlc.where(condition, x, other, **named), ORDER),
    "nn.functional.embedding": (lambda weight, at, **keywords: F.embedding(at, weight, **keywords), ORDER),
    "nn.functional.embedding_bag": (lambda weight, at, **keywords: F.embedding_bag(at, weight, **keywords), ORDER),
    "linalg.lstsq": (lambda a, b, driver=None: mlc.linalg.lstsq(a, b)[:2], "mlc has no choice of LAPACK's drivers"),
    "linalg.svd": (_first_singular_vectors, "the singular vectors of no singular value are not determined"),
    "linalg_pinv_singular": (lambda a, b: mlc.linalg.pinv(a @ b.mT), "the database gives factors of the operand"),
    "linalg_pinv_hermitian": (lambda A, **keywords: mlc.linalg.pinv((A + A.mH) / 2, **keywords),
                              "PyTorch's derivative supposes a symmetric operand"),
    **{name: (_of_hermitian(f), "PyTorch's derivative supposes a Hermitian operand") for name, f in (
        ("cholesky", mlc.cholesky), ("linalg.cholesky", mlc.linalg.cholesky),
        ("linalg.cholesky_ex", mlc.linalg.cholesky_ex))},
    "cholesky_inverse": (_of_triangle(mlc.cholesky_inverse, 0), "PyTorch's derivative supposes a triangular operand"),
    "cholesky_solve": (_of_triangle(mlc.cholesky_solve, 1), "PyTorch's derivative supposes a triangular operand"),
    "svd": (_signed_svd(mlc.svd, _our_signs), "the signs of singular vectors are not determined"),
    "svd_lowrank": (_signed_vectors(mlc.svd_lowrank, _our_signs), "the database gives factors of the operand"),
    "pca_lowrank": (_signed_vectors(mlc.pca_lowrank, _our_signs), "the database gives factors of the operand"),
    "slice": (lambda x, dim=0, start=None, end=None, step=1: x[(slice(None),) * (dim % x.ndim) + (
        slice(start, end, step),)], "it is x[start:end:step]"),
    "grid_sampler_2d": (_grid_sampler, "it is grid_sample, with numbers for modes"),
    "grid_sampler_3d": (_grid_sampler, "it is grid_sample, with numbers for modes"),
    "_upsample_bilinear2d_aa": (_antialiased, "it is interpolate"),
    "max_pool2d_with_indices_backward": (
        lambda x, return_indices=False, **keywords: mlc.grad(lambda x: F.max_pool2d(x, **keywords).sum())(x),
        "it is the gradient of max_pool2d"),
    "_native_batch_norm_legit": (
        lambda x, weight, bias, *rest: mlc.native_batch_norm(
            x, weight, bias, *(rest if len(rest) > 3 else (None, None, *rest))),
        "it is native_batch_norm, but for running statistics"),
    "_segment_reduce": (lambda x, reduce, **keywords: mlc.segment_reduce(x, reduce, **keywords),
                        "it is segment_reduce"),
    **{f"polygamma_polygamma_n_{n}": (lambda x, n, **named: mlc.polygamma(n, x, **named), ORDER) for n in range(5)},
    "special.polygamma": (lambda x, n, **keywords: mlc.special.polygamma(n, x, **keywords), ORDER),
    **{name: (_in_place(name.removesuffix("_in_place")), "the database has the operation without an underscore")
       for name in ("cauchy", "exponential", "geometric", "log_normal", "normal_in_place", "uniform")},
    **{f"{name}_": (_in_place(name), "the database writes to a copy") for name in ("zero", "resize", "resize_as")},
    "nn.functional.triplet_margin_with_distance_loss": (
        lambda *args, distance_function=None, **keywords: F.triplet_margin_with_distance_loss(
            *args, distance_function=distance_function and F.pairwise_distance, **keywords),
        "the database passes a module of PyTorch as the distance"),
}
"""By the name of an entry, or by that of one of its variants: a function with the entry's arguments, and the reason."""

UNDETERMINED = frozenset({
    "bernoulli", "cauchy", "empty", "empty_like", "empty_permuted", "empty_strided", "exponential", "geometric",
    "log_normal", "multinomial", "new_empty", "new_empty_strided", "nn.functional.alpha_dropout",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "nn.functional.rrelu", "normal", "normal_in_place", "rand_like", "randint",
    "randint_like", "randn", "randn_like", "uniform"})
"""Random numbers and uninitialised memory: only shapes and dtypes are compared."""

OTHER_GRADIENTS: dict[str, str] = {
    "as_strided_scatter": "PyTorch's gradient by the input is that where elements are replaced, and 0 elsewhere",
    **{f"nn_functional_max_unpool{n}d": "of several inputs with one index one is kept, and PyTorch gives all of "
       "them its gradient; the variants named _grad have each index once" for n in (1, 2, 3)}}
"""By the name of an entry, why the values of its derivatives are not compared."""
OTHER_DERIVATIVES: dict[tuple[str, str], str] = {
    **{("gradgrad", f"nn_functional_linear_cross_entropy_chunked{variant}"):
       "PyTorch's is 0; finite differences of its gradients agree with mlc" for variant in ("", "_none")},
    ("gradgrad", "linalg_norm_subgradients_at_zero"): "there is none at 0: PyTorch gives NaN, mlc 0",
    **{(kind, "masked_logaddexp"): "where both operands are masked PyTorch gives NaN, mlc 0"
       for kind in ("gradgrad", "jvp", "dual")},
    ("jvp", "triangular_solve"): "PyTorch's supposes a triangular tangent; finite differences agree with mlc",
    ("jvp", "logcumsumexp"): "PyTorch's is off by 1e-6 in float64; finite differences agree with mlc",
    ("jvp", "as_strided_partial_views"): "PyTorch's tangent ends with the view, whose memory does not",
    ("jvp", "linalg_eigh"): "of a tangent that is not Hermitian; mlc's is the adjoint of the gradient, which is "
                            "PyTorch's, too"}
"""By kind and name, why the values of derivatives of one kind are not compared."""

DEFAULTS: dict[str, tuple[Any, ...]] = {
    "memory_format": (torch.preserve_format, torch.contiguous_format), "requires_grad": (False,),
    "layout": (torch.strided,), "pin_memory": (False,)}
"""Keywords with the values that ask for what mlc always does, and has no name for."""


def without_defaults(keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a call but for those of `DEFAULTS`."""
    return {n: x for n, x in keywords.items() if not any(x is value for value in DEFAULTS.get(n, ()))}
