"""Forward-mode differentiation: Jacobian-vector products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.dialects import autodiff
from mlc.dialects.tensor.bounded import first_of
from mlc.frontend import tree
from mlc.frontend.arguments import check_call, coded
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.buffers import Buffers
from mlc.frontend.derivatives import Inputs, grad, run_now
from mlc.frontend.location import user_loc
from mlc.frontend.nested import record, results_of
from mlc.frontend.operands import as_tensors, broadcast_to, cast, tracer
from mlc.frontend.recorded_draws import Draws
from mlc.frontend.signature import name_of
from mlc.frontend.trace import captured, current, state
from mlc.frontend.tracer import Tracer
from mlc.ir.core import located
from mlc.ir.diag import UserError, UserTypeError


@coded
def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Jacobian-vector product: f(*primals), and J @ tangents, in forward mode.

    Args:
        f: Function of the primals.
        primals: Tuple of trees.
        tangents: Tuple of trees of the same structure and shapes; None stands for zeros, and for what has no
            derivative.

    Returns:
        The result of f, and its tangent in the same structure, with None for what has no derivative.

    Raises:
        UserError: A tangent has another shape than its primal (MLC0375).
        UserTypeError: There are more or fewer tangents than primals (MLC0375), or one for what has no derivative
            (MLC0373).

    Example:
        >>> mlc.jvp(lambda x: x * x, (mlc.tensor([1.0, 2.0]),), (mlc.tensor([1.0, 10.0]),))
        (tensor([1., 4.], dtype=mlc.float32), tensor([ 2., 40.], dtype=mlc.float32))
    """
    if state.trace is None:
        found: tuple[Any, Any] = run_now(lambda xs, ts: _jvp(f, xs, ts), (tuple(primals), tuple(tangents)), {},
                                         draws=Draws())
        return found
    return as_tensors(_jvp(f, tuple(primals), tuple(tangents)))  # type: ignore[no-any-return]


@coded
def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Linear approximation: f(*primals), and the function df that maps tangents to J @ tangents.

    Within a compiled function, what df needs of f is computed once, however often df is called; outside of one, each
    call of df computes f again.

    Args:
        f: Function of the primals.
        primals: Trees.

    Returns:
        The result of f, and df, a function of one tangent for each primal.

    Raises:
        UserError: df is given a tangent of another shape than its primal (MLC0375).

    Example:
        >>> y, df = mlc.linearize(lambda x: x * x, mlc.tensor([1.0, 2.0]))
        >>> df(mlc.tensor([1.0, 10.0]))
        tensor([ 2., 40.], dtype=mlc.float32)
    """
    if state.trace is None:
        return run_now(f, primals, {}), lambda *tangents: jvp(f, primals, tangents)[1]
    return captured(f)(*primals), lambda *tangents: jvp(f, primals, tangents)[1]


@coded
def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """Hessian-vector product: H @ tangents, without the Hessian H of f.

    It is the derivative of the gradient in a direction, forward over reverse. (Pearlmutter 1994, "Fast Exact
    Multiplication by the Hessian".)

    Args:
        f: Function of the primals that returns a float tensor of one number.
        primals: Tuple of trees of floats.
        tangents: Tuple of trees of the same structure and shapes.

    Returns:
        Tuple with the structure of the primals.

    Raises:
        UserError: A tangent has another shape than its primal (MLC0375).
        UserTypeError: A primal has no floats (MLC0373), or f returns no single float (MLC0374).

    Example:
        >>> mlc.hvp(lambda x: (x**3).sum(), (mlc.tensor([1.0, 2.0]),), (mlc.tensor([1.0, 0.0]),))
        (tensor([6., 0.], dtype=mlc.float32),)
    """
    products: tuple[Any, ...] = jvp(grad(f, argnums=tuple(range(len(primals)))), primals, tangents)[1]
    return products


def _jvp(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    loc = user_loc()
    check_call(f, name_of(f), primals, {})
    if len(primals) != len(tangents):
        raise UserTypeError(f"{len(tangents)} tangents are given for {len(primals)} primals", code="MLC0375", loc=loc)
    inputs = Inputs(primals, lambda i: True)
    given = _tangents(inputs, tangents)

    def body(*own: Tracer) -> Any:
        args = inputs.rebuild(own)
        buffers = Buffers(args)
        with GradMode(True):
            return captured(f)(*args), buffers.take()

    inner, function, traced, structure, others = record(name_of(f), body, inputs.tracers, True)
    outer = current()
    with located(loc):
        values = [*(outer.local(t) for t in inputs.tracers), *inner.arguments()]
        found = autodiff.jvp(function, values, [outer.local(t) for t in given.values()], list(given))
        own = len(function.function_type.results)
        results = results_of(inner, traced, found[:own])
        flow = iter(found[own:])
        moved = [Tracer(first_of(next(flow), r.shape), outer, r.weak) if r.type.dtype.is_inexact else None
                 for r in results]
    pending = iter(results)
    out, assigned = structure.unflatten([x if x is not None else next(pending) for x in others])
    Buffers(primals).assign(assigned)
    pairs = iter(moved)
    tangent, _ = structure.unflatten([None if x is not None else next(pairs) for x in others])
    return out, tangent


def _tangents(inputs: Inputs, tangents: tuple[Any, ...]) -> dict[int, Tracer]:
    """The nonzero tangents by the numbers of their arguments in the recorded function."""
    out: dict[int, Tracer] = {}
    leaves = tree.matching_leaves(inputs.structure, tangents)
    for p, t in zip(inputs.position, leaves):
        if t is None:
            continue
        type = inputs.tracers[p].type if p is not None else None
        if p is None or type is None or not type.dtype.is_inexact:
            raise UserTypeError(f"a tangent is given for {type or 'an argument that is not an array'}, which has no "
                                "derivative", code="MLC0373", loc=user_loc(), hint="give None in its place")
        with located(user_loc()):
            t = cast(tracer(t), type.dtype)
            if t.shape != type.shape and t.shape != ():
                raise UserError(f"a tangent has type {t.type}, its primal {type}", code="MLC0375", loc=user_loc())
            out[p] = broadcast_to(t, type.shape)
    return out
