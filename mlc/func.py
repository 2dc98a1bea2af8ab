"""Transformations of functions under the names of torch.func, with its signatures.

Those that take a function record it, and compile the derivative or the batched function; `mlc.compile` composes with
them, and they with each other. `functional_call` makes a function of a module's parameters out of the module.

Example:
    >>> cube = lambda x: x ** 3
    >>> mlc.func.vmap(mlc.func.grad(cube))(mlc.tensor([1.0, 2.0]))
    tensor([ 3., 12.], dtype=mlc.float32)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import mlc.api as api
from mlc.frontend import tree
from mlc.frontend.arguments import coded
from mlc.frontend.batching import jacfwd, jacrev, vmap
from mlc.frontend.derivatives import Argnums, pair
from mlc.frontend.forward import linearize
from mlc.frontend.functions.shape import stack
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.nn.module import Module
from mlc.nn.utils.stateless import functional_call

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
           "stack_module_state", "vjp", "vmap"]

grad = api.grad
hessian = api.hessian


@coded
def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Gradient and value of a function in reverse mode: the pair of `mlc.value_and_grad`, the other way round.

    Args:
        func: Function that returns a float tensor of one number, or with `has_aux` a pair of it and anything else.
        argnums: Position of the argument to differentiate by, or several.
        has_aux: Whether func returns a pair.

    Returns:
        Function of the same arguments that returns the gradient, or a tuple of gradients, and what func returns.

    Raises:
        UserError: A position is beyond the positional arguments (MLC0372).
        UserTypeError: An argument has no floats (MLC0373), or func returns no single float (MLC0374).

    Example:
        >>> mlc.func.grad_and_value(lambda x: (x * x).sum())(mlc.tensor([1.0, 2.0]))
        (tensor([2., 4.], dtype=mlc.float32), tensor(5., dtype=mlc.float32))
    """
    both = api.value_and_grad(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def derivative(*args: Any, **keywords: Any) -> Any:
        value, gradient = both(*args, **keywords)
        return gradient, value

    return derivative


@coded
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Vector-Jacobian product: func(*primals), and the pullback that maps v to v @ J.

    Args:
        func: Function of the primals that returns a tree of tensors, or with `has_aux` a pair of it and anything else.
        primals: Trees.
        has_aux: Whether func returns a pair.

    Returns:
        The result of func, and the pullback: a function of cotangents with the structure of that result that returns a
        tuple of the cotangents of the primals. With `has_aux`, the rest of what func returns comes third.

    Raises:
        UserError: A cotangent has another shape than its result (MLC0375).
        UserTypeError: func returns no pair (MLC0374).

    Example:
        >>> y, pullback = mlc.func.vjp(lambda x: x * x, mlc.tensor([1.0, 2.0]))
        >>> pullback(mlc.tensor([1.0, 10.0]))
        (tensor([ 2., 40.], dtype=mlc.float32),)
    """
    out, pullback = api.vjp(func, *primals)
    if not has_aux:
        return out, pullback
    value, aux = pair(func, out)
    nothing = tree.map(lambda x: None, aux)
    return value, lambda cotangents: pullback((cotangents, nothing)), aux


@coded
def jvp(func: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, strict: bool = False,
        has_aux: bool = False) -> Any:
    """Jacobian-vector product: func(*primals), and J @ tangents, in forward mode.

    Args:
        func: Function of the primals that returns a tree of tensors, or with `has_aux` a pair of it and anything else.
        primals: Tuple of trees.
        tangents: Tuple of trees of the same structure and shapes.
        strict: Accepted for PyTorch's sake: a result that does not depend on a primal has a tangent of zeros.
        has_aux: Whether func returns a pair.

    Returns:
        The result of func, and its tangent. With `has_aux`, the rest of what func returns comes third.

    Raises:
        UserError: A tangent has another shape than its primal (MLC0375).
        UserTypeError: There are more or fewer tangents than primals (MLC0375), or func returns no pair (MLC0374).

    Example:
        >>> mlc.func.jvp(lambda x: x * x, (mlc.tensor([1.0, 2.0]),), (mlc.tensor([1.0, 10.0]),))
        (tensor([1., 4.], dtype=mlc.float32), tensor([ 2., 40.], dtype=mlc.float32))
    """
    out, tangent = api.jvp(func, primals, tangents)
    if not has_aux:
        return out, tangent
    value, aux = pair(func, out)
    return value, tangent[0], aux


@coded
def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stack the parameters and the buffers of several modules, for `vmap` of `functional_call`.

    Args:
        models: Modules of one class and one shape.

    Returns:
        The parameters and the buffers by name, with one more dimension in front. The parameters are leaves that require
        a gradient.

    Raises:
        UserError: There is no module, or they have other classes or names (MLC0382).

    Example:
        >>> parameters, buffers = mlc.func.stack_module_state([nn.Linear(2, 1) for _ in range(3)])
        >>> parameters["weight"].shape
        (3, 1, 2)
    """
    every = list(models)
    if not every or any(type(m) is not type(every[0]) for m in every):
        raise UserError("stack_module_state takes modules of one class", code="MLC0382", loc=user_loc(),
                        hint="pass a list of modules that were made alike")
    named = [dict(m.named_parameters()) for m in every], [dict(m.named_buffers()) for m in every]
    if any(one.keys() != kind[0].keys() for kind in named for one in kind):
        raise UserError("the modules have different names of parameters or buffers", code="MLC0382", loc=user_loc(),
                        hint="pass a list of modules that were made alike")
    parameters, buffers = ({name: stack([one[name].detach() for one in kind], 0) for name in kind[0]} for kind in named)
    return {name: x.requires_grad_(named[0][0][name].requires_grad) for name, x in parameters.items()}, buffers
