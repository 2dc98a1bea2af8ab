"""Clipping of the gradients that `backward` has accumulated, in place: all of them in one compiled function."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from mlc.api import compile
from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.functions import create, shape
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserTypeError


@coded
def get_total_norm(tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:
    """Norm of all elements of several tensors: (sum |x| ** norm_type) ** (1 / norm_type).

    Args:
        tensors: Tensor, or several, such as gradients; float16 and bfloat16 are summed in float32.
        norm_type: The exponent; math.inf gives the greatest magnitude. For 0 it is the number of tensors that are not
            0, as in PyTorch.
        error_if_nonfinite: Whether a norm that is infinite or not a number is an error.
        foreach: Accepted for PyTorch's sake.

    Returns:
        Tensor of no dimensions, float32, or float64 if a tensor is.

    Raises:
        UserError: The norm is not finite, and `error_if_nonfinite` is set (MLC0445).
        UserTypeError: One is no tensor (MLC0446).

    Example:
        >>> nn.utils.get_total_norm([mlc.tensor([3.0]), mlc.tensor([4.0])])
        tensor(5., dtype=mlc.float32)
    """
    given = tensors_of(tensors, "get_total_norm")
    if not given:
        return create.tensor(0.0)
    with GradMode(False):
        return _finite(_norm(given, float(norm_type)), norm_type, error_if_nonfinite)


@coded
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Scale the gradients of parameters to a norm of at most max_norm, in place: g * min(1, max_norm / (norm + 1e-6)).

    The norm is that of all gradients together. (Pascanu, Mikolov and Bengio 2013, "On the Difficulty of Training
    Recurrent Neural Networks", algorithm 1.)

    Args:
        parameters: Parameter, or several; those without a gradient do not count.
        max_norm: The greatest norm.
        norm_type: The exponent of the norm, as in `get_total_norm`.
        error_if_nonfinite: Whether a norm that is infinite or not a number is an error, which leaves the gradients as
            they are.
        foreach: Accepted for PyTorch's sake.

    Returns:
        The norm before, a tensor of no dimensions.

    Raises:
        UserError: The norm is not finite, and `error_if_nonfinite` is set (MLC0445).
        UserTypeError: A parameter is no tensor (MLC0446).

    Example:
        >>> w = mlc.tensor([3.0, 4.0], requires_grad=True)
        >>> (w * w / 2).sum().backward()
        >>> nn.utils.clip_grad_norm_([w], max_norm=1.0)
        tensor(5., dtype=mlc.float32)
        >>> w.grad
        tensor([0.5999999 , 0.79999983], dtype=mlc.float32)
    """
    grads = _gradients(parameters, "clip_grad_norm_")
    if not grads:
        return create.tensor(0.0)
    with GradMode(False):
        scaled, norm = _clipped(grads, float(max_norm), float(norm_type))
        _finite(norm, norm_type, error_if_nonfinite)
        _replace(grads, scaled)
    return norm  # type: ignore[no-any-return]


@coded
def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor,
                          foreach: bool | None = None) -> None:
    """Scale the gradients of parameters by a norm that is known, in place: g * min(1, max_norm / (total_norm + 1e-6)).

    Args:
        parameters: Parameter, or several; those without a gradient do not count.
        max_norm: The greatest norm.
        total_norm: The norm, as `get_total_norm` gives it.
        foreach: Accepted for PyTorch's sake.

    Raises:
        UserTypeError: A parameter is no tensor (MLC0446).

    Example:
        >>> w = mlc.tensor([3.0, 4.0], requires_grad=True)
        >>> (w * w / 2).sum().backward()
        >>> nn.utils.clip_grads_with_norm_([w], max_norm=1.0, total_norm=nn.utils.get_total_norm([w.grad]))
        >>> w.grad
        tensor([0.5999999 , 0.79999983], dtype=mlc.float32)
    """
    if grads := _gradients(parameters, "clip_grads_with_norm_"):
        with GradMode(False):
            _replace(grads, _scaled(grads, float(max_norm), total_norm))


@coded
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clip every element of the gradients of parameters, in place: min(max(g, -clip_value), clip_value).

    Args:
        parameters: Parameter, or several; those without a gradient do not count.
        clip_value: The greatest magnitude.
        foreach: Accepted for PyTorch's sake.

    Raises:
        UserTypeError: A parameter is no tensor (MLC0446).

    Example:
        >>> w = mlc.tensor([3.0, -0.5], requires_grad=True)
        >>> (w * w / 2).sum().backward()
        >>> nn.utils.clip_grad_value_([w], 1.0)
        >>> w.grad
        tensor([ 1. , -0.5], dtype=mlc.float32)
    """
    if grads := _gradients(parameters, "clip_grad_value_"):
        with GradMode(False):
            _replace(grads, _clamped(grads, float(clip_value)))


def tensors_of(given: Any, name: str) -> list[Tensor]:
    """One tensor or several as a list; UserTypeError (MLC0446) if one is something else."""
    if isinstance(given, Tensor):
        return [given]
    if not isinstance(given, Iterable):
        raise UserTypeError(f"{name} takes tensors, found {type(given).__name__}", code="MLC0446", loc=user_loc(),
                            hint=f"{name}(model.parameters(), ...)")
    out = list(given)
    for x in out:
        if not isinstance(x, Tensor):
            raise UserTypeError(f"{name} takes tensors, found {type(x).__name__} among them", code="MLC0446",
                                loc=user_loc(), hint=f"{name}(model.parameters(), ...)")
    return out


def _gradients(parameters: Any, name: str) -> list[Tensor]:
    """The gradients that parameters have."""
    found = []
    for p in tensors_of(parameters, name):
        if p.grad is not None and p.grad.composite:        # the values of a sparse one, which share its memory
            p.grad = p.grad.coalesce()
            found.append(p.grad.values())
        elif p.grad is not None:
            found.append(p.grad)
    return found


def _replace(grads: Sequence[Tensor], new: Sequence[Tensor]) -> None:
    for g, x in zip(grads, new):
        g.copy_(x)


def _finite(norm: Tensor, norm_type: float, required: bool) -> Tensor:
    """The norm; UserError if it has to be finite and is not."""
    if required and not math.isfinite(norm.item()):
        raise UserError(f"the norm of order {norm_type} is {norm.item()}", code="MLC0445", loc=user_loc(),
                        hint="look for the operation that overflows; with error_if_nonfinite=False, gradients are "
                             "scaled by this norm")
    return norm


def _total(grads: Sequence[Tensor], norm_type: float) -> Tensor:
    """The norm of the norms of all gradients."""
    norms = [R.norm(g if g.dtype.itemsize >= 4 else g.float(), norm_type) for g in grads]
    return R.norm(shape.stack(norms), norm_type)


def _times(grads: Sequence[Tensor], max_norm: Any, norm: Tensor) -> list[Tensor]:
    """The gradients scaled to the greatest norm, each in its own dtype."""
    scale = E.minimum(max_norm / (norm + 1e-6), 1.0)
    return [E.cast_to(g * scale, g.dtype) for g in grads]


@compile(static="norm_type")
def _norm(grads: Any, norm_type: Any) -> Any:
    return _total(grads, norm_type)


@compile(static="norm_type")
def _clipped(grads: Any, max_norm: Any, norm_type: Any) -> Any:
    norm = _total(grads, norm_type)
    return _times(grads, max_norm, norm), norm


@compile
def _scaled(grads: Any, max_norm: Any, total_norm: Any) -> Any:
    return _times(grads, max_norm, total_norm)


@compile
def _clamped(grads: Any, clip_value: Any) -> Any:
    return [E.clamp(g, -clip_value, clip_value) for g in grads]
