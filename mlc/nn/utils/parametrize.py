"""Parametrizations, parameters that are functions of others: the functions of torch.nn.utils.parametrize.

The attribute `weight` of a module becomes f(original), computed at every access by a module f; the optimizer sees
`module.parametrizations.weight.original`. An f with a `right_inverse` allows the attribute to be assigned to.

Example:
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return (x + x.T) / 2
    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    >>> (layer.weight == layer.weight.T).all().item()
    True
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.nn.containers import ModuleDict, ModuleList
from mlc.nn.module import Module
from mlc.nn.parameter import Parameter
from mlc.nn.utils.computed import compute, give_up, held_tensor, hold, original_class, stop_computing


class _Cache(threading.local):
    """The values of parametrized tensors within `cached`, and how many such contexts there are."""

    depth = 0

    def __init__(self) -> None:
        self.values: dict[tuple[int, str], Tensor] = {}


_cache = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """Context in which each parametrized tensor is computed once, when it is first read.

    Returns:
        A context manager.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> with nn.utils.parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    _cache.depth += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.values.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, and the parameters that they start from.

    These are `original`, or `original0`, `original1`, ... if the `right_inverse` of the first one gives several.

    Args:
        modules: The parametrizations.
        original: The tensor.
        unsafe: Whether shape and dtype of the tensor may change.

    Raises:
        UserError: The parametrizations change the shape or the dtype (MLC0742).

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> [name for name, _ in layer.parametrizations.weight.named_parameters()]
        ['original0', 'original1']
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe, self.ntensors, self.is_tensor = unsafe, 1, True
        new = self._inverted(original) if hasattr(modules[0], "right_inverse") else original
        if isinstance(new, Tensor):
            hold(self, "original", original, original)
            if new is not original:
                original.replace_elements(new.detach())
        else:
            self.is_tensor, self.ntensors = False, len(new)
            for i, x in enumerate(new):
                hold(self, f"original{i}", x, original)

    def originals(self) -> list[Tensor]:
        """The tensors that the parametrizations start from."""
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        return [getattr(self, name) for name in names]

    def forward(self) -> Any:
        """Compute the tensor.

        Returns:
            The result of the last parametrization.
        """
        first, *rest = self
        x = first(*self.originals())
        for step in rest:
            x = step(x)
        return x

    def _inverted(self, value: Any) -> Any:
        with GradMode(False):
            for step in reversed(list(self)):
                if not hasattr(step, "right_inverse"):
                    raise UserError(f"{type(step).__name__} has no right_inverse, so what it gives cannot be assigned",
                                    code="MLC0742", loc=user_loc(), hint="define right_inverse(value)")
                value = step.right_inverse(value)
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Set the tensors that the parametrizations start from, so that they give a value.

        Args:
            value: The value.

        Raises:
            UserError: A parametrization has no right_inverse (MLC0742).
        """
        new = self._inverted(value)
        for held, x in zip(self.originals(), [new] if self.is_tensor else new):
            held.replace_elements(x.detach())


def _checked(name: str, before: Tensor, after: Any) -> None:
    if not isinstance(after, Tensor) or tuple(after.shape) != tuple(before.shape) or after.dtype is not before.dtype:
        found = f"{after.dtype}{list(after.shape)}" if isinstance(after, Tensor) else type(after).__name__
        raise UserError(f"the parametrization of {name!r} gives {found}, and the tensor is "
                        f"{before.dtype}{list(before.shape)}", code="MLC0742", loc=user_loc(),
                        hint="change it, or pass unsafe=True")


@coded
def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *,
                             unsafe: bool = False) -> Module:
    """Have a parameter of a module computed by another module, from a parameter of the same shape or others.

    The parameter becomes `module.parametrizations.NAME.original`. If the parametrization has a `right_inverse`, it
    gives the value or values to begin with, and the parameter can still be assigned. Several parametrizations of one
    parameter are applied one after the other.

    Args:
        module: The module, which is changed.
        tensor_name: Name of the parameter or buffer.
        parametrization: Module whose `forward` computes it.
        unsafe: Whether shape and dtype of the tensor may change.

    Returns:
        The module.

    Raises:
        UserError: The module has no such tensor (MLC0743), or shape or dtype change (MLC0742).

    Example:
        >>> class Symmetric(nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
        >>> bool((layer.weight == layer.weight.T).all())
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        steps: ParametrizationList = module.parametrizations[tensor_name]
        before = getattr(module, tensor_name)
        if hasattr(parametrization, "right_inverse"):
            with GradMode(False):
                steps.right_inverse(parametrization.right_inverse(before))
        if not unsafe:
            _checked(tensor_name, before, parametrization(before))
        steps.append(parametrization)
        return module
    original = held_tensor(module, tensor_name)
    shown = original.detach()
    steps = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        with GradMode(False):
            _checked(tensor_name, shown, steps())
    give_up(module, tensor_name)
    if "parametrizations" not in vars(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = steps
    _compute_from(module, tensor_name)
    return module


def _compute_from(module: Module, tensor_name: str) -> None:
    """Have the attribute computed by the module's parametrizations."""
    def getter(self: Any) -> Tensor:
        key = id(self), tensor_name
        if _cache.depth and key in _cache.values:
            return _cache.values[key]
        value: Tensor = self.parametrizations[tensor_name]()
        if _cache.depth:
            _cache.values[key] = value
        return value

    def setter(self: Any, value: Any) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    compute(module, tensor_name, getter, setter, f"Parametrized{type(module).__name__}")


@coded
def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrizations.

    Args:
        module: The module.
        tensor_name: Name of a tensor; None for any.

    Returns:
        A bool.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> nn.utils.parametrize.is_parametrized(layer, "weight"), nn.utils.parametrize.is_parametrized(layer, "bias")
        (True, False)
    """
    found = vars(module).get("parametrizations")
    return isinstance(found, ModuleDict) and (len(found) > 0 if tensor_name is None else tensor_name in found)


@coded
def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Undo `register_parametrization`.

    Args:
        module: The module, which is changed.
        tensor_name: Name of the tensor.
        leave_parametrized: Whether the tensor keeps its value, rather than that of `original`.

    Returns:
        The module.

    Raises:
        UserError: The tensor is not parametrized, or `original` is not one tensor (MLC0743).

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> nn.utils.parametrize.remove_parametrizations(layer, "weight")
        Linear(in_features=2, out_features=3, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise UserError(f"{type(module).__name__}.{tensor_name} is not parametrized", code="MLC0743", loc=user_loc())
    steps: ParametrizationList = module.parametrizations[tensor_name]
    first = steps.originals()[0]
    if leave_parametrized:
        with GradMode(False):
            value = getattr(module, tensor_name).detach()
    if not steps.is_tensor:
        if not leave_parametrized:
            raise UserError(f"{type(module).__name__}.{tensor_name} starts from {steps.ntensors} tensors, none of "
                            "which stands for it", code="MLC0743", loc=user_loc(), hint="pass leave_parametrized=True")
        kept = Parameter(value, first.requires_grad) if isinstance(first, Parameter) else value
    else:
        kept = first
        if leave_parametrized:
            first.replace_elements(value)
    stop_computing(module, tensor_name)
    del module.parametrizations[tensor_name]
    hold(module, tensor_name, kept, first)
    if not len(module.parametrizations):
        del module.parametrizations
    return module


@coded
def type_before_parametrizations(module: Module) -> type:
    """Find the class that a module had before it got parametrizations.

    Args:
        module: The module.

    Returns:
        The class.

    Example:
        >>> nn.utils.parametrize.type_before_parametrizations(nn.utils.parametrizations.weight_norm(nn.Linear(2, 3)))
        <class 'mlc.nn.linear.Linear'>
    """
    return original_class(module)
