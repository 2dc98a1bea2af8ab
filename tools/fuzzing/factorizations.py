"""Factorizations of matrices in random Python programs, compared up to what is free in them.

Singular vectors and eigenvectors have free signs, which mlc defines and LAPACK does not: programs return their absolute
values, and the product of all factors, in which the signs of two vectors belong together. Vectors of values that are
equal or zero are free altogether: they are left out, and nothing of such a matrix is compared with PyTorch, as
derivatives depend on those vectors, too.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

FREE: Mapping[str, str] = {
    "svd": "unsigned(*T.svd({args}))",
    "linalg.svd": "unsigned(*T.linalg.svd({args}), rows=True)",
    "linalg.eigh": "(lambda l, q: unsigned(q, l, q))(*T.linalg.eigh({args}))",
    "svd_lowrank": "unsigned(*T.svd_lowrank({x}, min(({x}).shape[-2:])))",
    "pca_lowrank": "unsigned(*T.pca_lowrank({x}))",
    "linalg.cond": "T.atan(T.linalg.cond({args}))",
}
"""Expressions that a program has in place of a call of a function with free results.

`svd_lowrank` and `pca_lowrank` draw random numbers, on which results of a lower rank than the matrix depend: here they
have its own rank, as the default of the second, 6, is more than the size of any matrix. The condition number of a
singular matrix is some large number."""
MATRICES = ("{x}", "{x} @ {x}.mT")
"""Arguments of functions with free results: `x` seldom is a square matrix."""
APART = 1e-3
"""How far values are from each other and from zero, relative to their sum, so that their vectors are compared."""
PRELUDE = f"""

def unsigned(left, values, right, rows=False):
    right = right.mH if rows else right
    left, right = (x[..., :values.shape[-1]] for x in (left, right))
    others = T.cat([values, T.zeros_like(values[..., :1])], -1).unsqueeze(-2)
    near = (values.unsqueeze(-1) - others).abs() < {APART} * values.abs().sum(-1)[..., None, None]
    alone = (near.sum(-1) == 1).unsqueeze(-2)
    parts = [T.where(alone, x.abs(), 0.0) for x in (left, right)]
    return values, *parts, (left * values.unsqueeze(-2)) @ right.mH
"""
"""A function of results that are the same whatever the signs of vectors. It stands beside the one that calls it."""
FACTORS = re.compile(r"aten\.(_?linalg_(svd|pinv|qr|lu|inv|eigh|cholesky|ldl|lstsq|solve|det|slogdet|householder)|"
                     r"lu_solve|cholesky|geqrf|ormqr)")
"""PyTorch's operations that LAPACK computes."""
VALUES = {"aten._linalg_svd": 1, "aten._linalg_eigh": 0}
"""Which result of an operation has singular values or eigenvalues."""


def is_free(text: str) -> bool:
    """Whether a program has results that are compared up to what is free."""
    return any(f"T.{name}(" in text for name in FREE)


@contextmanager
def factored_by_torch(vectors: bool) -> Iterator[Callable[[], bool]]:
    """Whether what PyTorch factors meanwhile defines the results: all matrices are finite, and with `vectors` no
    singular values or eigenvalues are equal, and no singular value is zero. LAPACK is not defined for others."""
    torch: Any = importlib.import_module("torch")
    mode: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    undefined: list[str] = []

    def are_apart(values: Any) -> bool:
        ordered = torch.cat([values, torch.zeros_like(values[..., :1])], -1).sort(-1).values
        return bool((ordered.diff(dim=-1) > APART * values.abs().sum(-1, keepdim=True)).all())

    class Watch(mode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found, name = function(*args, **(kwargs or {})), str(function).rpartition(".")[0]
            if FACTORS.match(name) and not all(
                    torch.isfinite(x).all() for x in args if isinstance(x, torch.Tensor)):
                undefined.append(name)
            elif vectors and name in VALUES and not are_apart(found[VALUES[name]]):
                undefined.append(name)
            return found

    with Watch():
        yield lambda: not undefined
