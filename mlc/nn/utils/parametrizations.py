"""Weights by their norms, and orthogonal ones: the functions of torch.nn.utils.parametrizations.

Weight normalization is w = g v / |v|, spectral normalization w = v / sigma(v) with the largest singular value sigma,
and an orthogonal weight has w.T @ w = 1. Each is registered with `parametrize`, and taken away again with
`parametrize.remove_parametrizations`.

Example:
    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(2, 2))
    >>> mlc.allclose(layer.weight.T @ layer.weight, mlc.eye(2), atol=1e-5)
    True
"""

from __future__ import annotations

from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.functions import contract, create, linalg, neural
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions import shape as S
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.nn import init
from mlc.nn.convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from mlc.nn.module import Module
from mlc.nn.utils.computed import held_tensor
from mlc.nn.utils.parametrize import register_parametrization

__all__ = ["SpectralNorm", "orthogonal", "spectral_norm", "weight_norm"]
MAPS = ("matrix_exp", "cayley", "householder")


def norm_except(v: Tensor, dim: int | None) -> Tensor:
    """The norm over all dimensions but one, which stays."""
    if dim is None or dim == -1:
        return R.norm(v)
    axes = tuple(a for a in range(v.ndim) if a != dim % v.ndim)
    return R.norm(v, 2, axes, True) if axes else abs(v)


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


@coded
def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split a weight into its norm and its direction: weight = g * v / |v| (Salimans and Kingma 2016).

    Args:
        module: The module, which is changed.
        name: Name of the weight.
        dim: The dimension that keeps norms of its own; None for one norm of all elements.

    Returns:
        The module, with parameters `parametrizations.weight.original0`, g, and `original1`, v.

    Raises:
        UserError: The module has no such tensor (MLC0743).

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> [tuple(x.shape) for x in layer.parametrizations.parameters()]
        [(3, 1), (3, 2)]
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    return module


class SpectralNorm(Module):
    """Division of a weight by its greatest singular value, which power iteration estimates.

    Args:
        weight: The weight.
        n_power_iterations: Steps of the iteration in each call in training.
        dim: The dimension that the rows of the matrix are along; the others are its columns.
        eps: Least norm in the iteration.

    Example:
        >>> nn.utils.parametrizations.SpectralNorm(mlc.tensor([[2.0, 0.0], [0.0, 1.0]]))(mlc.eye(2)).shape
        (2, 2)
    """

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:
            with GradMode(False):
                matrix = self._matrix(weight.detach())
                rows, columns = matrix.shape
                self.register_buffer("_u", neural.normalize(init.normal((rows,), dtype=weight.dtype), 2.0, 0, eps))
                self.register_buffer("_v", neural.normalize(init.normal((columns,), dtype=weight.dtype), 2.0, 0, eps))
                self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        moved = S.movedim(weight, self.dim, 0) if self.dim else weight
        return S.flatten(moved, 1)

    def _iterate(self, matrix: Tensor, count: int) -> None:
        for _ in range(count):
            self._u = neural.normalize(contract.matmul(matrix, self._v), 2.0, 0, self.eps)
            self._v = neural.normalize(contract.matmul(S.t(matrix), self._u), 2.0, 0, self.eps)

    def forward(self, weight: Tensor) -> Tensor:
        """Divide the weight by its norm.

        Args:
            weight: The weight.

        Returns:
            Tensor of its shape.
        """
        if weight.ndim == 1:
            return neural.normalize(weight, 2.0, 0, self.eps)
        matrix = self._matrix(weight)
        if self.training:
            with GradMode(False):
                self._iterate(E.detach(matrix), self.n_power_iterations)
        return weight / contract.matmul(self._u, contract.matmul(matrix, self._v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """Give the weight to begin with.

        Args:
            value: The weight.

        Returns:
            The same.
        """
        return value


def rows_dimension(module: Module) -> int:
    """The dimension of a layer's weight that its results are along."""
    return 1 if isinstance(module, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d) else 0


@coded
def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """Divide a weight by its greatest singular value (Miyato et al. 2018).

    Args:
        module: The module, which is changed.
        name: Name of the weight.
        n_power_iterations: Steps of power iteration in each call in training.
        eps: Least norm in the iteration.
        dim: The dimension that the results are along; None for 1 of transposed convolutions and 0 otherwise.

    Returns:
        The module, with a parameter `parametrizations.weight.original`.

    Raises:
        UserError: The module has no such tensor (MLC0743).

    Example:
        >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(2, 3))
        >>> bool((mlc.linalg.svdvals(layer.weight)[0] - 1).abs() < 0.1)
        True
    """
    weight = getattr(module, name) if "parametrizations" in vars(module) else held_tensor(module, name)
    step = SpectralNorm(weight, n_power_iterations, rows_dimension(module) if dim is None else dim, eps)
    return register_parametrization(module, name, step)


class _Orthogonal(Module):
    _unsaved = ()

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        self.shape, self.orthogonal_map = tuple(weight.shape), orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.shape[-2] < x.shape[-1]
        x = x.mT if wide else x
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            below = S.tril(x, -1)
            q = linalg.householder_product(below, 2.0 / (1.0 + R.sum(below * below, -2)))
            q = q * x.diagonal(dim1=-2, dim2=-1).detach().trunc().unsqueeze(-2)
        else:
            lower = S.tril(x)
            if n != k:
                lower = S.pad(lower, (0, n - k))
            a = lower - lower.mT
            one = create.eye(n, dtype=x.dtype)
            q = linalg.matrix_exp(a) if self.orthogonal_map == "matrix_exp" else linalg.solve(
                one - 0.5 * a, one + 0.5 * a)
            q = q[..., :k]
        if self.use_trivialization:
            q = contract.matmul(self.base, q)
        return q.mT if wide else q

    def right_inverse(self, value: Tensor) -> Tensor:
        if tuple(value.shape) != self.shape:
            raise UserError(f"a weight of shape {list(value.shape)}, expected {list(self.shape)}", code="MLC0742",
                            loc=user_loc())
        if not self.use_trivialization:
            raise UserError(f"an orthogonal parametrization by {self.orthogonal_map} without trivialization cannot be "
                            "assigned", code="MLC0742", loc=user_loc(), hint="use_trivialization=True")
        q = value.mT if value.shape[-2] < value.shape[-1] else value
        n, k = q.shape[-2:]
        if n != k:
            q = S.cat([q, init.normal((*q.shape[:-2], n, n - k), dtype=q.dtype)], -1)
        if n != k or not _is_orthogonal(q):
            q, r = linalg.qr(q)
            q = q * E.sign(r.diagonal(dim1=-2, dim2=-1)).unsqueeze(-2)
        self.base = q
        rows, columns = self.shape[-2:]
        return S.broadcast_to(-create.eye(rows, columns, dtype=value.dtype), self.shape)


def _is_orthogonal(q: Tensor) -> bool:
    error = contract.matmul(q.mT, q) - create.eye(q.shape[-1], dtype=q.dtype)
    eps = 10 * q.shape[-1] * 2.0 ** -(23 if q.dtype.itemsize == 4 else 52)
    return bool((abs(error) <= eps).all())


@coded
def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> Module:
    """Have a weight be orthogonal, or its rows or columns orthonormal: a function of a matrix without restrictions.

    Args:
        module: The module, which is changed.
        name: Name of the weight, of at least two dimensions.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; None for the first of square weights and the last of
            others.
        use_trivialization: Whether the weight is relative to what it is at first (Lezcano-Casado 2019).

    Returns:
        The module, with a parameter `parametrizations.weight.original`.

    Raises:
        UserError: The module has no such tensor (MLC0743), it has less than two dimensions (MLC0364), the map is
            another string (MLC0360), or has no trivialization and no inverse (MLC0742).

    Example:
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
        >>> bool(((layer.weight @ layer.weight.T - mlc.eye(3)).abs() < 1e-5).all())
        True
    """
    weight: Any = getattr(module, name) if "parametrizations" in vars(module) else held_tensor(module, name)
    if weight.ndim < 2:
        raise UserError(f"a weight of {weight.ndim} dimensions is no matrix", code="MLC0364", loc=user_loc())
    chosen = orthogonal_map or ("matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder")
    if chosen not in MAPS:
        raise UserError(f"orthogonal_map = {chosen!r}, expected one of {', '.join(MAPS)}", code="MLC0360",
                        loc=user_loc())
    return register_parametrization(module, name, _Orthogonal(weight, chosen, use_trivialization), unsafe=True)
