"""Forward mode under the names of torch.autograd.forward_ad: dual tensors, which carry a tangent through operations.

Eager operations on dual tensors give dual tensors, whose tangent is the Jacobian-vector product: out of place, in
place, and of views. `mlc.jvp` and `mlc.func.jvp` do the same for functions, which they record and compile as a whole.
There is one level at a time.

Example:
    >>> with mlc.autograd.forward_ad.dual_level():
    ...     x = mlc.autograd.forward_ad.make_dual(mlc.tensor(3.0), mlc.tensor(1.0))
    ...     mlc.autograd.forward_ad.unpack_dual(x * x).tangent
    tensor(6., dtype=mlc.float32)
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any, NamedTuple

from mlc.frontend.arguments import coded, coded_methods
from mlc.frontend.autograd.grad_mode import ForwardMode, mode
from mlc.frontend.autograd.tangents import DualLevel, NoTangents, duals
from mlc.frontend.dispatch import hold
from mlc.frontend.location import user_loc
from mlc.frontend.refusals import refusal
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state
from mlc.ir.diag import UserError, UserTypeError

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "is_fwd_grad_enabled",
           "make_dual", "set_fwd_grad_enabled", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """Result of `unpack_dual`.

    Args:
        primal: The tensor without its tangent.
        tangent: Its tangent; None if it has none.

    Example:
        >>> with mlc.autograd.forward_ad.dual_level():
        ...     mlc.autograd.forward_ad.unpack_dual(mlc.tensor(2.0))
        UnpackedDualTensor(primal=tensor(2., dtype=mlc.float32), tangent=None)
    """

    primal: Any
    tangent: Any


@coded
def enter_dual_level() -> int:
    """Enter a level, in which tensors can be dual; `dual_level` is the context manager that does.

    Returns:
        The number of the level, which is 0.

    Raises:
        UserError: A level is entered already, and levels do not nest (MLC0837), or a function is being recorded
            (MLC0839).

    Example:
        >>> level = mlc.autograd.forward_ad.enter_dual_level()
        >>> mlc.autograd.forward_ad.exit_dual_level(level=level)
    """
    _check_eager("enter_dual_level")
    if duals.level is not None:
        raise UserError("a dual level is entered within another one, and levels do not nest", code="MLC0837",
                        loc=user_loc(), hint="mlc.jvp of a function that calls mlc.jvp is its derivative")
    duals.level = DualLevel()
    hold(1)                                                # native code knows nothing of tangents
    return 0


@coded
def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level: no tensor is dual from then on.

    Args:
        level: Number of the level, 0; None stands for it.

    Raises:
        UserError: There is no such level (MLC0836).

    Example:
        >>> level = mlc.autograd.forward_ad.enter_dual_level()
        >>> mlc.autograd.forward_ad.exit_dual_level(level=level)
    """
    _check_level("exit_dual_level", level)
    if duals.level is None:
        raise UserError("exit_dual_level is called, and no dual level is entered", code="MLC0836", loc=user_loc())
    duals.level = None
    hold(-1)


class dual_level(ContextDecorator):
    """Context manager of a level, in which tensors can be dual. It also decorates a function.

    Raises:
        UserError: A level is entered already, and levels do not nest (MLC0837), or a function is being recorded
            (MLC0839).

    Example:
        >>> x, v = mlc.tensor([1.0, 2.0]), mlc.tensor([1.0, 10.0])
        >>> with mlc.autograd.forward_ad.dual_level():
        ...     y = mlc.autograd.forward_ad.make_dual(x, v) ** 2
        ...     mlc.autograd.forward_ad.unpack_dual(y).tangent
        tensor([ 2., 40.], dtype=mlc.float32)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *raised: object) -> None:
        exit_dual_level()


@coded
def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Make a dual tensor: a view of a tensor that carries a tangent.

    Args:
        tensor: The primal, of floats or complex numbers.
        tangent: Tensor of the same shape, dtype and device. Writes to the dual tensor are also made to it.
        level: Number of the level, 0; None stands for it.

    Returns:
        A tensor that shares the memory and the history of the primal.

    Raises:
        UserError: No level is entered (MLC0836), the tangent has another shape, dtype or device, one of the two is dual
            already (MLC0838), or a function is being recorded (MLC0839).
        UserTypeError: One is no tensor of floats or complex numbers, or is sparse (MLC0838).

    Example:
        >>> with mlc.autograd.forward_ad.dual_level():
        ...     x = mlc.autograd.forward_ad.make_dual(mlc.tensor(0.0), mlc.tensor(3.0))
        ...     mlc.autograd.forward_ad.unpack_dual(mlc.exp(x))
        UnpackedDualTensor(primal=tensor(1., dtype=mlc.float32), tangent=tensor(3., dtype=mlc.float32))
    """
    _check_eager("make_dual")
    _check_level("make_dual", level)
    entered = duals.level
    if entered is None:
        raise UserError("make_dual is called, and no dual level is entered", code="MLC0836", loc=user_loc(),
                        hint="call it within mlc.autograd.forward_ad.dual_level()")
    for what, x in (("primal", tensor), ("tangent", tangent)):
        if type(x) is not Tensor or not x.dtype.ir.is_inexact:
            found = f"tensor of {x.dtype.name}" if type(x) is Tensor else type(x).__name__
            raise UserTypeError(f"the {what} of a dual tensor is a {found}, and not a dense tensor of floats",
                                code="MLC0838", loc=user_loc())
        if entered.get(x) is not None:
            raise UserError(f"the {what} of a dual tensor is dual itself", code="MLC0838", loc=user_loc(),
                            hint="unpack_dual gives what it is made of")
    for what in ("shape", "dtype", "device"):
        if getattr(tensor, what) != getattr(tangent, what):
            raise UserError(f"the tangent has {what} {getattr(tangent, what)}, its primal {getattr(tensor, what)}",
                            code="MLC0838", loc=user_loc())
    dual = _view_of(tensor)
    entered.put(dual, tangent)
    return dual


@coded
def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Take a dual tensor apart.

    Args:
        tensor: A tensor, dual or not.
        level: Number of the level, 0; None stands for it.

    Returns:
        Named tuple of `primal`, a view of the tensor that is not dual, and `tangent`, None if it has none. Outside of a
        level, no tensor has one.

    Raises:
        UserError: A function is being recorded (MLC0839), or there is no such level (MLC0836).

    Example:
        >>> with mlc.autograd.forward_ad.dual_level():
        ...     x = mlc.autograd.forward_ad.make_dual(mlc.tensor(1.0), mlc.tensor(3.0))
        ...     mlc.autograd.forward_ad.unpack_dual(x * x).tangent
        tensor(6., dtype=mlc.float32)
    """
    _check_eager("unpack_dual")
    _check_level("unpack_dual", level)
    if not isinstance(tensor, Tensor):
        raise UserTypeError(f"unpack_dual takes a tensor, found {type(tensor).__name__}", code="MLC0838",
                            loc=user_loc())
    if duals.level is None:
        return UnpackedDualTensor(tensor, None)
    if tensor.composite:                                   # whose values are dual
        primal, tangent = unpack_dual(tensor.stored)
        return UnpackedDualTensor(tensor, None) if tangent is None else UnpackedDualTensor(
            tensor.with_values(primal), tensor.with_values(tangent))
    tangent = duals.level.get(tensor)
    return UnpackedDualTensor(_view_of(tensor), tangent)


class set_fwd_grad_enabled(ForwardMode):
    """Set at once whether operations on dual tensors give dual tensors; as a context manager, restore it at the end.

    Args:
        mode: Whether they do.

    Example:
        >>> with mlc.autograd.forward_ad.set_fwd_grad_enabled(False):
        ...     mlc.autograd.forward_ad.is_fwd_grad_enabled()
        False
    """


@coded
def is_fwd_grad_enabled() -> bool:
    """Whether operations on dual tensors give dual tensors in this thread.

    Returns:
        A bool: True but for the scope of `set_fwd_grad_enabled` and `mlc.inference_mode`.

    Example:
        >>> mlc.autograd.forward_ad.is_fwd_grad_enabled()
        True
    """
    return mode.forward


_set_fwd_grad_enabled, _is_fwd_grad_enabled = set_fwd_grad_enabled, is_fwd_grad_enabled    # PyTorch's names


def _view_of(x: Tensor) -> Tensor:
    """A view of all of a tensor, with its history, that is not dual."""
    with NoTangents():
        return x.view_as(x)


def _check_eager(name: str) -> None:
    if state.trace is not None:
        raise refusal(f"{name} is called within a function that is recorded", code="MLC0839", loc=user_loc(),
                      hint="mlc.jvp differentiates there, or call the function eagerly")


def _check_level(name: str, level: int | None) -> None:
    if level is not None and (type(level) is not int or level != 0):
        raise UserError(f"{name}: there is no dual level {level!r}", code="MLC0836", loc=user_loc(),
                        hint="the only one is 0")


coded_methods(set_fwd_grad_enabled, ("__init__",))
