"""Calls of modules with other tensors in place of their own, and modules without initial values."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.nn.hierarchy import with_tensors
from mlc.nn.init import shapes_only
from mlc.nn.module import Module


@coded
def functional_call(module: Module, parameters_and_buffers: Mapping[str, Tensor], args: Any = None,
                    kwargs: Mapping[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """Call a module with other tensors in place of its parameters and buffers; the module stays as it is.

    Args:
        module: The module.
        parameters_and_buffers: Tensors by name, of any history.
        args: Positional arguments of the call, a tuple; something else is the only one.
        kwargs: Keyword arguments of the call.
        tie_weights: Whether a tensor stands for a shared parameter under all its names.
        strict: Whether all parameters and buffers have to be given, and nothing else.

    Returns:
        The result of the call.

    Raises:
        UserError: Names differ, which `strict` forbids, or one name is none of the module (MLC0745).

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> new = {"weight": mlc.tensor([[1.0, 2.0]]), "bias": mlc.tensor([3.0])}
        >>> nn.utils.stateless.functional_call(layer, new, mlc.ones(2))
        tensor([6.], dtype=mlc.float32)
    """
    own = dict([*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)])
    unexpected = [name for name in parameters_and_buffers if name not in own]
    missing = [name for name in own if name not in parameters_and_buffers]
    if unexpected or (strict and missing):
        raise UserError(f"{type(module).__name__} is given {', '.join(unexpected) or 'nothing else'}, and lacks "
                        f"{', '.join(missing) or 'nothing'}", code="MLC0745", loc=user_loc())
    new = dict(parameters_and_buffers)
    if tie_weights:
        by_identity = {id(own[name]): x for name, x in new.items()}
        new.update((name, by_identity[id(x)]) for name, x in own.items() if name not in new and id(x) in by_identity)
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
