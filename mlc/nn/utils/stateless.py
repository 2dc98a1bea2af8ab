"""Calls of modules with other tensors in place of their own, and modules without initial values.

`functional_call` runs a module with given tensors in the places of its parameters and buffers, and puts its own back;
`skip_init` makes a module whose parameters have not been drawn.

Example:
    >>> layer = nn.Linear(1, 1, bias=False)
    >>> nn.utils.stateless.functional_call(layer, {"weight": mlc.tensor([[3.0]])}, (mlc.ones(1, 1),))
    tensor([[3.]], dtype=mlc.float32)
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.nn.hierarchy import with_tensors
from mlc.nn.init import shapes_only
from mlc.nn.module import Module


@coded
def functional_call(module: Module, parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
                    args: Any = None, kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """Call a module with other tensors in place of its parameters and buffers.

    Args:
        module: The module, which is as it was afterwards; buffers that were not replaced keep what the call assigned.
        parameter_and_buffer_dicts: Tensors by name, or several dicts of them.
        args: The arguments: a tuple, or a single one.
        kwargs: The keyword arguments.
        tie_weights: Whether what several names share is replaced under all of them by a tensor for one.
        strict: Whether there has to be a tensor for each parameter and buffer.

    Returns:
        The result of the module.

    Raises:
        UserError: A name is none of the module's, missing, or in two dicts (MLC0382).

    Example:
        >>> layer = nn.Linear(2, 1, bias=False)
        >>> mlc.func.functional_call(layer, {"weight": mlc.tensor([[2.0, 3.0]])}, (mlc.ones(1, 2),))
        tensor([[5.]], dtype=mlc.float32)
    """
    dicts = [parameter_and_buffer_dicts] if isinstance(parameter_and_buffer_dicts, Mapping) else [
        *parameter_and_buffer_dicts]
    new = {name: x for one in dicts for name, x in one.items()}
    parameters = dict(module.named_parameters(remove_duplicate=False))
    own = {**parameters, **dict(module.named_buffers(remove_duplicate=False))}
    faults = {"twice": [name for name in new if sum(name in one for one in dicts) > 1],
              "unexpected": [name for name in new if name not in own]}
    if tie_weights:
        shared = {id(own[name]): x for name, x in new.items() if name in own}
        new = {**{name: shared[id(x)] for name, x in parameters.items() if id(x) in shared}, **new}
    faults["missing"] = [name for name in own if strict and name not in new]
    found = "; ".join(f"{what} {', '.join(names[:6])}" for what, names in faults.items() if names)
    if found:
        raise UserError(f"the tensors do not fit the module: {found}", code="MLC0382", loc=user_loc(),
                        hint="name them as module.named_parameters() and module.named_buffers() do")
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    with with_tensors(module, new):
        return module(*given, **(kwargs or {}))


@coded
def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Module:
    """Make a module whose parameters have no initial values: they are zeros, which take no time to draw.

    Args:
        module_cls: Its class.
        args: Arguments of the class.
        kwargs: Keyword arguments of the class; the class has to take `device`.

    Returns:
        The module.

    Raises:
        UserError: It is no class of modules, or takes no `device` (MLC0745).

    Example:
        >>> nn.utils.skip_init(nn.Linear, 2, 3).weight.shape
        (3, 2)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise UserError(f"{module_cls!r} is no class of modules", code="MLC0745", loc=user_loc())
    if "device" not in inspect.signature(module_cls).parameters:
        raise UserError(f"{module_cls.__name__} takes no device", code="MLC0745", loc=user_loc(),
                        hint="call the class within nn.init.shapes_only()")
    device = kwargs.pop("device", None)
    with shapes_only():
        module = module_cls(*args, **kwargs)
    return module.to_empty(device=device or "cpu")
