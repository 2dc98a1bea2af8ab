"""Weights by their norms, under the names of parameters that torch.nn.utils itself gives them."""

from __future__ import annotations

from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.functions import neural
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.nn.module import Module
from mlc.nn.utils.computed import compute, give_up, held_tensor, hold, stop_computing
from mlc.nn.utils.parametrizations import SpectralNorm, norm_except, rows_dimension


@coded
def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split a weight into its norm and its direction: weight = g * v / |v|, the parameters weight_g and weight_v.

    `nn.utils.parametrizations.weight_norm` does the same under other names.

    Args:
        module: The module, which is changed.
        name: Name of the weight.
        dim: The dimension that keeps norms of its own; None for one norm of all elements.

    Returns:
        The module.

    Raises:
        UserError: The module has no such tensor (MLC0743).

    Example:
        >>> [name for name, _ in nn.utils.weight_norm(nn.Linear(2, 3)).named_parameters()]
        ['bias', 'weight_g', 'weight_v']
    """
    weight = held_tensor(module, name)
    give_up(module, name)
    with GradMode(False):
        hold(module, f"{name}_g", norm_except(weight, dim), weight)
    hold(module, f"{name}_v", weight, weight)

    def getter(self: Any) -> Tensor:
        g, v = getattr(self, f"{name}_g"), getattr(self, f"{name}_v")
        found: Tensor = v * (g / norm_except(v, dim))
        return found

    compute(module, name, getter)
    return module


@coded
def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo `weight_norm`: the weight is a parameter again, of the value that it has.

    Args:
        module: The module, which is changed.
        name: Name of the weight.

    Returns:
        The module.

    Raises:
        UserError: The weight is not split (MLC0743).

    Example:
        >>> nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(2, 3)))
        Linear(in_features=2, out_features=3, bias=True)
    """
    return _restored(module, name, f"{name}_v", f"{name}_g")


@coded
def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """Divide a weight by its greatest singular value: the parameter weight_orig, and the buffers weight_u and weight_v.

    `nn.utils.parametrizations.spectral_norm` does the same under other names.

    Args:
        module: The module, which is changed.
        name: Name of the weight.
        n_power_iterations: Steps of power iteration whenever the weight is read in training.
        eps: Least norm in the iteration.
        dim: The dimension that the results are along; None for 1 of transposed convolutions and 0 otherwise.

    Returns:
        The module.

    Raises:
        UserError: The module has no such tensor (MLC0743).

    Example:
        >>> sorted(nn.utils.spectral_norm(nn.Linear(2, 3)).state_dict())
        ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    weight = held_tensor(module, name)
    step = SpectralNorm(weight, n_power_iterations, rows_dimension(module) if dim is None else dim, eps)
    give_up(module, name)
    hold(module, f"{name}_orig", weight, weight)
    module.register_buffer(f"{name}_u", step._u)
    module.register_buffer(f"{name}_v", step._v)

    def getter(self: Any) -> Tensor:
        value, u, v = (getattr(self, f"{name}_{part}") for part in ("orig", "u", "v"))
        matrix = step._matrix(value)
        if self.training:
            with GradMode(False):
                held = matrix.detach()
                for _ in range(n_power_iterations):        # in the order that the vectors of checkpoints are of
                    v = neural.normalize(held.t() @ u, 2.0, 0, eps)
                    u = neural.normalize(held @ v, 2.0, 0, eps)
            setattr(self, f"{name}_u", u)
            setattr(self, f"{name}_v", v)
        found: Tensor = value / (u @ (matrix @ v))
        return found

    compute(module, name, getter)
    return module


@coded
def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo `spectral_norm`: the weight is a parameter again, of the value that it has.

    Args:
        module: The module, which is changed.
        name: Name of the weight.

    Returns:
        The module.

    Raises:
        UserError: The weight is not divided (MLC0743).

    Example:
        >>> nn.utils.remove_spectral_norm(nn.utils.spectral_norm(nn.Linear(2, 3)))
        Linear(in_features=2, out_features=3, bias=True)
    """
    return _restored(module, name, f"{name}_orig", f"{name}_u", f"{name}_v")


def _restored(module: Module, name: str, kept: str, *others: str) -> Module:
    if any(n not in vars(module) for n in (kept, *others)) or name not in vars(type(module)):
        raise UserError(f"{type(module).__name__}.{name} is not computed from {kept}", code="MLC0743", loc=user_loc())
    training = module.training
    with GradMode(False):
        value = getattr(module.eval() if len(others) > 1 else module, name).detach()
    module.train(training)
    weight = getattr(module, kept)
    stop_computing(module, name)
    for n in {kept, *others}:
        give_up(module, n)
    weight.replace_elements(value)
    hold(module, name, weight, weight)
    return module
