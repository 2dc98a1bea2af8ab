"""Attributes of one module that are computed from its parameters whenever they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.nn.module import Module
from mlc.nn.parameter import Parameter


def held_tensor(module: Module, name: str) -> Tensor:
    """The parameter or buffer that a module holds itself; UserError if there is none."""
    found = vars(module).get(name)
    if not isinstance(found, Tensor) or name not in (*module._parameters, *module._buffers):
        own = ", ".join(n for n, _ in module.named_parameters(recurse=False))
        raise UserError(f"{type(module).__name__} has no parameter or buffer {name!r} of its own", code="MLC0743",
                        loc=user_loc(), hint=f"it has {own}" if own else "it has none")
    return found


def give_up(module: Module, name: str) -> None:
    """Remove a parameter or buffer from a module."""
    delattr(module, name)


def compute(module: Module, name: str, getter: Callable[[Any], Tensor],
            setter: Callable[[Any, Any], None] | None = None, class_name: str = "") -> None:
    """Have an attribute of this one module computed by `getter`: the module gets a class of its own."""
    kind = type(module)
    _become(module, {**_computed(kind), name: property(getter, setter)},
            kind.__name__ if "_computed_from" in vars(kind) else class_name or kind.__name__)


def stop_computing(module: Module, name: str) -> None:
    """Undo `compute`; the module has its former class again once nothing is computed."""
    kind = type(module)
    _become(module, {n: x for n, x in _computed(kind).items() if n != name}, kind.__name__)


def _computed(kind: type) -> dict[str, property]:
    """The attributes that are computed of the modules of a class."""
    return {n: x for n, x in vars(kind).items() if isinstance(x, property)} if "_computed_from" in vars(kind) else {}


def _become(module: Module, computed: dict[str, property], name: str) -> None:
    """Give a module a class of its own: copies of it have the former one, in which other attributes are computed."""
    kind = original_class(module)
    own = {"_computed_from": kind, "__module__": kind.__module__, "__doc__": kind.__doc__}
    module.__class__ = type(name, (kind,), {**own, **computed}) if computed else kind


def hold(module: Module, name: str, tensor: Tensor, like: Tensor) -> None:
    """Make a tensor a parameter or a buffer of a module, as `like` is one."""
    if isinstance(like, Parameter):
        module.register_parameter(name, tensor if isinstance(tensor, Parameter) else
                                  Parameter(tensor.detach(), like.requires_grad))
    else:
        module.register_buffer(name, tensor)


def original_class(module: Module) -> type:
    """The class that a module had before attributes of it were computed."""
    found: type = getattr(type(module), "_computed_from", type(module))
    return found
