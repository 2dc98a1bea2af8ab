"""Control flow as functions: cond, while_loop, fori_loop, scan and map, with JAX's signatures.

The functions they take are recorded into the regions of scf operations, and may capture values from outside.
Outside a recorded function, the whole construct is recorded, compiled and run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.dialects.tensor import control
from mlc.frontend import loop_carried, tree
from mlc.frontend.abstract_values import SourceConstruct, Trees, is_array
from mlc.frontend.arguments import coded
from mlc.frontend.derivatives import run_now
from mlc.frontend.eager import is_watched
from mlc.frontend.location import user_loc
from mlc.frontend.loop_carried import StackedRows
from mlc.frontend.operands import as_tensors, broadcast_to, cast, integer, number, reshape, to_default_dtype, tracer
from mlc.frontend.operation_errors import as_user_error, describe
from mlc.frontend.symint import plain_sizes
from mlc.frontend.tensor import Tensor, wrap
from mlc.frontend.trace import captured, current, emit, state
from mlc.frontend.tracer import Tracer
from mlc.ir.core import Value, located
from mlc.ir.diag import Error, UserError, UserTypeError
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import i64, ui64


@coded
def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """Conditional: true_fn(*operands) if pred else false_fn(*operands); only the branch that is taken runs.

    Both branches give the same structure, shapes and dtypes; a Python number takes the dtype of what it meets. A `pred`
    that is no tensor decides while the function is recorded, and the other branch is not recorded at all. Unlike
    jax.lax.cond, the branches may use whatever stands around them.

    Args:
        pred: Tensor of one element, true if it is not 0; or a Python value.
        true_fn: Function of the operands.
        false_fn: Function of the operands.
        operands: Trees that both are given.

    Returns:
        The result of the branch that is taken.

    Raises:
        UserTypeError: `pred` has not one element (MLC0602), or the branches give different types (MLC0603).

    Example:
        >>> mlc.cond(mlc.tensor(2.0) > 1, lambda x: x * 10, lambda x: -x, mlc.tensor([1.0, 2.0]))
        tensor([10., 20.], dtype=mlc.float32)
    """
    chosen = captured(true_fn), captured(false_fn)
    if not is_array(pred):
        return (chosen[0] if pred else chosen[1])(*operands)
    if state.trace is None:
        return run_now(lambda pred, *xs: cond(pred, true_fn, false_fn, *xs), (pred, *operands), {})
    site = SourceConstruct("mlc.cond", user_loc(), ("the result",))
    found, = loop_carried.branch(loop_carried.condition(pred, site), lambda: [chosen[0](*operands)],
                            lambda: [chosen[1](*operands)], site)
    return as_tensors(found)


@coded
def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any) -> Any:
    """Loop with a condition: x = init; while cond_fn(x): x = body_fn(x).

    The loop is recorded once. x keeps its structure, shapes and dtypes; Python numbers in `init` take the dtype that
    the body gives. It has derivatives in both modes: reverse mode runs the loop again to save what it needs, unlike
    jax.lax.while_loop, which has none.

    Args:
        cond_fn: Function of x that gives a tensor of one element.
        body_fn: Function of x that gives the next x.
        init: First x, a tree.

    Returns:
        The last x.

    Raises:
        UserTypeError: The condition has not one element (MLC0602), or the body changes a type (MLC0601).

    Example:
        >>> mlc.while_loop(lambda x: x < 100, lambda x: x * 3, mlc.tensor(1))
        tensor(243, dtype=mlc.int64)
    """
    if state.trace is None:
        return run_now(lambda x: while_loop(cond_fn, body_fn, x), (init,), {})
    going, body = captured(cond_fn), captured(body_fn)
    site = SourceConstruct("mlc.while_loop", user_loc(), ("init",))
    found, = loop_carried.while_(lambda x: going(x[0]), lambda x: [body(x[0])], [init], site)
    return as_tensors(found)


@coded
def fori_loop(lower: Any, upper: Any, body_fn: Callable[[Any, Any], Any], init: Any) -> Any:
    """Counted loop: x = init; for i in range(lower, upper): x = body_fn(i, x).

    The loop is recorded once. x keeps its structure, shapes and dtypes, as in `while_loop`. It has derivatives in both
    modes.

    Args:
        lower: First index: an integer, a size, or a tensor of one integer.
        upper: End of the indices, which is excluded; below `lower` the trip count is 0.
        body_fn: Function of i, a tensor of no dimensions (int64, or the dtype of tensors as bounds), and of x.
        init: First x, a tree.

    Returns:
        The last x.

    Raises:
        UserTypeError: A bound is no integer (MLC0354) or not one element (MLC0605), or the body changes a type
            (MLC0601).

    Example:
        >>> mlc.fori_loop(0, 5, lambda i, x: x + i, mlc.tensor(0))
        tensor(10, dtype=mlc.int64)
    """
    if state.trace is None:
        return run_now(lambda lower, upper, x: fori_loop(lower, upper, body_fn, x), (lower, upper, init), {})
    body, site = captured(body_fn), SourceConstruct("mlc.fori_loop", user_loc(), ("init",))
    like = next((x for x in (lower, upper) if is_array(x)), 0)
    bounds = bound(lower, site), bound(upper, site)
    with located(site.loc):
        kind = integer(like, "a bound")

    def step(i: Value, x: Trees) -> tuple[Trees, None]:
        return [body(cast(counter(i, site), kind.type.dtype, kind.weak), x[0])], None

    (found,), _ = loop_carried.for_(*bounds, step, [init], site)
    return as_tensors(found)


@coded
def scan(f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None,
         reverse: bool = False) -> tuple[Any, Any]:
    """Loop over rows that carries a value: c = init; for i in range(length): c, ys[i] = f(c, xs[i]).

    The loop is recorded once; the carry keeps its structure, shapes and dtypes, as in `while_loop`. It has derivatives
    in both modes.

    Args:
        f: Function of the carry and a row, which gives the pair of the next carry and a tree y.
        init: First carry, a tree.
        xs: Tree of arrays of equal length, whose rows f is given; None to give it None.
        length: Number of steps; needed without `xs`.
        reverse: Whether to begin at the last row; ys[i] still belongs to xs[i].

    Returns:
        Pair of the last carry and ys, a tree like y with the steps as dimension 0.

    Raises:
        UserError: The lengths differ, or none is known (MLC0606).
        UserTypeError: f gives no pair (MLC0604), the carry changes its type (MLC0601), or `xs` or `length` has no
            length (MLC0606).

    Example:
        >>> mlc.scan(lambda c, x: (c + x, c * x), mlc.tensor(0.0), mlc.tensor([1.0, 2.0, 3.0]))
        (tensor(6., dtype=mlc.float32), tensor([0., 2., 9.], dtype=mlc.float32))
    """
    if state.trace is None:
        if is_watched() and (found_now := _scanned(f, init, xs, reverse)) is not None:
            return found_now
        return run_now(lambda c, xs: scan(f, c, xs, length, reverse), (init, xs), {})  # type: ignore[no-any-return]
    body, site = captured(f), SourceConstruct("mlc.scan", user_loc(), ("init",))
    leaves, structure = tree.flatten(xs)
    with located(site.loc):
        rows = [tracer(x) for x in leaves]
    n = _length(rows, tree.paths(xs, "xs"), length, site)
    found: list[tree.TreeDef] = []

    def step(i: Value, x: Trees) -> tuple[Trees, StackedRows]:
        with located(site.loc):
            at = current().local(counter(i, site))
            if reverse:
                last = tracer(n - 1 if isinstance(n, Size) else int(n) - 1)
                at = emit(T.Sub, cast(last, i64), Tracer(at, current())).value
            given = structure.unflatten([row(t, Tracer(at, current()), n) for t in rows])
        pair = body(x[0], given)
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise UserTypeError(f"mlc.scan: the function returned {describe(pair)}, expected (carry, y)",
                                code="MLC0604", loc=site.loc)
        ys, kind = tree.flatten(pair[1])
        found[:] = [kind]
        try:
            with located(site.loc):
                return [pair[0]], StackedRows([to_default_dtype(tracer(y)) for y in ys], at, n)
        except Error as error:
            raise as_user_error(error, "mlc.scan", ys, site.loc) from None

    with located(site.loc):
        bounds = control.as_index(0), control.as_index(n)
    (carry,), stacked = loop_carried.for_(*bounds, step, [init], site)
    return as_tensors(carry), found[0].unflatten(stacked)


def _scanned(f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, reverse: bool) -> tuple[Any, Any] | None:
    """The scan as a Python loop: the eager reference that a recorded scan is compared with.

    None in cases that it does not cover: no rows, or leaves that are not tensors.
    """
    leaves, structure = tree.flatten(xs)
    if not leaves or not all(isinstance(x, Tensor) and x.shape and len(x) == len(leaves[0]) for x in leaves):
        return None
    numbers, rows = range(len(leaves[0])), list[Any]()
    for i in reversed(numbers) if reverse else numbers:
        pair: Any = f(init, structure.unflatten([x[i] for x in leaves]))
        if not (isinstance(pair, tuple) and len(pair) == 2) or not all(isinstance(y, Tensor) for y in tree.leaves(
                pair[1])):
            return None
        init = pair[0]
        rows.append(tree.flatten(pair[1]))
    if not rows:
        return None
    columns = zip(*(ys for ys, _ in (rows[::-1] if reverse else rows)))
    stacked = [wrap(np.stack([y.array for y in column])) for column in columns]
    return init, rows[0][1].unflatten(stacked)


@coded
def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Sequential map: ys[i] = f(xs[i]), one row after the other.

    It takes the memory of one row at a time; `vmap` computes all rows at once.

    Args:
        f: Function of a row.
        xs: Tree of arrays of equal length.

    Returns:
        Tree like the result of f, with the rows as dimension 0.

    Raises:
        UserError: The lengths differ (MLC0606).

    Example:
        >>> mlc.map(lambda x: x * x, mlc.tensor([1.0, 2.0, 3.0]))
        tensor([1., 4., 9.], dtype=mlc.float32)
    """
    return scan(lambda _, x: (None, captured(f)(x)), None, xs)[1]


# -- what they and Python's own loops share ---------------------------------------------------------------------------
def bound(x: Any, site: SourceConstruct) -> Value:
    """A bound of a loop as an index."""
    x = plain_sizes(x)
    with located(site.loc):
        try:
            if isinstance(x, Size):
                return control.as_index(x)
            found = integer(x, "a bound")
            if any(d != 1 for d in found.shape):
                raise UserTypeError(f"a bound is {found.type}, not a tensor of one element", code="MLC0605")
            if found.type.dtype == ui64:                   # an index is signed: what is beyond it is the greatest one
                found = emit(T.Minimum, found, number((1 << 63) - 1, ui64))
            return control.as_index(x if type(x) is int else current().local(found))
        except Error as error:
            raise as_user_error(error, site.what, (x,), site.loc) from None


def counter(i: Value, site: SourceConstruct, weak: bool = True) -> Tracer:
    """A loop's index as a tensor, weakly typed like the Python integer that it replaces."""
    with located(site.loc):
        return Tracer(control.from_index(i), current(), weak)


def row(x: Tracer, at: Tracer, length: Dim) -> Tracer:
    """x[at]; zeros for an array without rows, where the loop body never runs."""
    rest = x.shape[1:]
    if length == 0:
        return broadcast_to(number(0, x.type.dtype), rest)
    starts = (at, *(number(0, i64) for _ in rest))
    return reshape(emit(T.DynamicSlice, x, starts, (1, *rest)), rest)


def _length(rows: list[Tracer], paths: list[str], length: Any, site: SourceConstruct) -> Dim:
    found: Dim | None = plain_sizes(length)
    for x, path in zip(rows, paths):
        if not x.shape:
            raise UserTypeError(f"{site.what}: {path} is {x.type}, which has no elements to go through",
                                code="MLC0606", loc=site.loc)
        if found is not None and x.shape[0] != found:
            raise UserError(f"{site.what}: {path} has length {x.shape[0]}, "
                            f"{'length says' if found is length else 'others have'} {found}", code="MLC0606",
                            loc=site.loc)
        found = x.shape[0]
    if found is None:
        raise UserError(f"{site.what}: the number of steps is not given", code="MLC0606", loc=site.loc,
                        hint="give xs, or length=")
    known: Any = found
    if isinstance(known, bool) or not isinstance(known, int | Size) or (isinstance(known, int) and known < 0):
        raise UserTypeError(f"{site.what}: length is {found!r}, not a size"[:200], code="MLC0606", loc=site.loc)
    return found
