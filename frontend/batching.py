"""vmap, which batches a function of one example; and the Jacobians, which are built on it.

    mlc.vmap(f, in_dims=(0, None))(xs, w)          f(x, w) for each row x of xs, stacked

The function is recorded once, for one batch element; `autodiff.vmap` names it, and the pass `grad` batches it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from mlc.dialects import autodiff
from mlc.dialects import tensor as T
from mlc.frontend import tree
from mlc.frontend.arguments import check_call, coded
from mlc.frontend.buffers import Buffers
from mlc.frontend.derivatives import Argnums, numbers_of, pair, run_now, vjp
from mlc.frontend.forward import jvp
from mlc.frontend.functions.shape import cat, movedim, narrow
from mlc.frontend.location import user_loc
from mlc.frontend.nested import record
from mlc.frontend.operands import as_tensors, cast, is_tensor, reshape, tracer
from mlc.frontend.recorded_draws import Draws
from mlc.frontend.recorded_draws import mapped as recorded_for_many
from mlc.frontend.signature import name_of, parameters, roots
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import captured, current, emit, state
from mlc.frontend.tracer import Tracer
from mlc.ir.core import located
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Dim
from mlc.ir.types import i64

Axes = Any
"""An axis, None, or a tuple, list or dict of these: a prefix of the tree of the arguments or results."""


@coded
def vmap(f: Callable[..., Any], in_dims: Axes = 0, out_dims: Axes = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable[..., Any]:
    """Vectorization: a function of one example as one of a batch, y[i] = f(x[i]).

    f is recorded once, for one example. Random numbers differ between examples only if their keys do. It composes with
    `grad`, `jvp`, loops and itself.

    Args:
        f: Function of examples.
        in_dims: Axis of the batch in the positional arguments: one for all, or a tuple or list with one for each; in
            place of an axis there may be containers of axes. None is for what is the same for all examples, as keyword
            arguments always are.
        out_dims: Axis of the batch in the results, or a tree of axes; None for a result that does not depend on the
            example.
        randomness: "same" if all examples may see the same draw from a generator; "error" refuses it. Numbers of a key
            are functions of that.
        chunk_size: Most examples to compute at a time; None for all at once.

    Returns:
        Function of arguments with one more dimension.

    Raises:
        UserError: An axis is out of range, `in_dims` has the wrong length, nothing is mapped, or another argument has
            no such value (MLC0400); or the sizes along the axes differ (MLC0401).
        UserTypeError: A tree of axes has another structure than the argument (MLC0400).

    Example:
        >>> mlc.vmap(mlc.dot, in_dims=(0, None))(mlc.ones(2, 3), mlc.tensor([1.0, 2.0, 3.0]))
        tensor([6., 6.], dtype=mlc.float32)
    """
    check_randomness(randomness)
    if chunk_size is not None and (type(chunk_size) is not int or chunk_size < 1):
        raise UserError(f"chunk_size is {chunk_size}", code="MLC0400", loc=user_loc(),
                        hint="it is a positive integer, or None for all examples at once")

    @functools.wraps(f, updated=())
    def mapped(*args: Any, **keywords: Any) -> Any:
        if state.trace is None:
            return run_now(mapped, args, keywords, list(parameters(f)), Draws())
        with recorded_for_many(randomness):
            if chunk_size is not None:
                return _in_chunks(f, in_dims, out_dims, chunk_size, args, keywords)
            return as_tensors(_vmap(f, in_dims, out_dims, args, keywords))

    return mapped


def check_randomness(randomness: str) -> None:
    """UserError for a value of that argument of `vmap` that has no meaning here."""
    if randomness not in ("error", "same"):
        why = "random numbers differ between examples only if their keys do" if randomness == "different" else (
            'it is "error" or "same"')
        raise UserError(f"randomness is {randomness!r}", code="MLC0400", loc=user_loc(),
                        hint=f"{why}: map over keys, as of mlc.random.split(key, n)" if "keys" in why else why)


def _in_chunks(f: Callable[..., Any], in_dims: Axes, out_dims: Axes, size: int, args: tuple[Any, ...],
               keywords: dict[str, Any]) -> Any:
    """`_vmap` of some examples after others; what does not depend on the example is taken from the first of them."""
    leaves, structure = tree.flatten((args, keywords))
    axes = _argument_axes(in_dims, args, keywords)
    ends = {leaves[i].shape[axis] for i, axis in enumerate(axes)
            if axis is not None and is_tensor(leaves[i]) and -len(leaves[i].shape) <= axis < len(leaves[i].shape)}
    if len(ends) != 1 or not isinstance(end := next(iter(ends)), int) or end <= size:
        return _vmap(f, in_dims, out_dims, args, keywords)        # it has an error, or one chunk
    found = []
    for start in range(0, end, size):
        with located(user_loc()):
            part = [x if axis is None else narrow(x, axis, start, min(size, end - start))
                    for x, axis in zip(leaves, axes)]
        found.append(_vmap(f, in_dims, out_dims, *structure.unflatten(part)))
    of_results: list[int | None] = []
    _spread(out_dims, found[0], "the result", of_results, "out_dims")
    parts, results = zip(*map(tree.flatten, found))
    with located(user_loc()):
        whole = [xs[0] if axis is None or not is_tensor(xs[0]) else cat(list(xs), axis)
                 for axis, *xs in zip(of_results, *parts)]
    return results[0].unflatten(whole)


def _vmap(f: Callable[..., Any], in_dims: Axes, out_dims: Axes, args: tuple[Any, ...],
          keywords: dict[str, Any]) -> Any:
    loc = user_loc()
    check_call(f, name_of(f), args, keywords)
    leaves, structure = tree.flatten((args, keywords))
    names = [path for name, x in roots(list(parameters(f)), args, keywords) for path in tree.paths(x, name)]
    axes = _argument_axes(in_dims, args, keywords)
    with located(loc):
        mapped = {i: _mapped(x, axis, names[i]) for i, (x, axis) in enumerate(zip(leaves, axes)) if axis is not None}
        batch_size = _batch_size({names[i]: (leaves[i].shape, axis) for i, axis in mapped.items()})
        fronts = [tracer(movedim(leaves[i], axis, 0)) for i, axis in mapped.items()]
    result_axes: list[int | None] = []

    def body() -> Any:
        inner = current()
        own = dict(zip(mapped, (inner.arg(x.type.with_shape(x.shape[1:]), x.value.name, x.weak) for x in fronts)))
        args, keywords = structure.unflatten([own.get(i, x) for i, x in enumerate(leaves)])
        buffers = Buffers(args, keywords)
        out = captured(f)(*args, **keywords)
        _spread(out_dims, out, "the result", result_axes, "out_dims")
        with located(loc):
            out = tree.map(lambda x: tracer(x) if is_tensor(x) or type(x) in (int, float) else x, out)
        return out, buffers.take()

    inner, function, traced, outputs, others = record(name_of(f), body, None)
    result_axes += [None] * (len(others) - len(result_axes))              # of buffers
    of_traced = [axis for axis, x in zip(result_axes, others) if x is None]
    outer = current()
    with located(loc):
        values = autodiff.vmap(function, [*(outer.local(x) for x in fronts), *inner.arguments()], range(len(fronts)),
                               batch_size, [j for j, axis in enumerate(of_traced) if axis is None])
        results = iter([_placed(Tracer(v, outer, x.weak), axis) for v, x, axis in zip(values, traced, of_traced)])
    out, assigned = outputs.unflatten([x if x is not None else next(results) for x in others])
    Buffers(args, keywords).assign(assigned)
    return out


def _mapped(x: Any, axis: int, name: str) -> int:
    """The axis of an argument, counted from the front."""
    rank = len(x.shape) if is_tensor(x) else 0
    if not -rank <= axis < rank:
        raise UserError(f"{name} has {rank} dimensions, and is to be mapped over axis {axis}", code="MLC0400",
                        loc=user_loc(), hint="None in in_dims is for what is the same for all")
    return axis % rank


def _batch_size(mapped: dict[str, tuple[Sequence[Dim], int]]) -> Dim:
    """The common size of all mapped axes."""
    if not mapped:
        raise UserError("no argument is mapped over", code="MLC0400", loc=user_loc(),
                        hint="give an axis of at least one tensor in in_dims")
    found: dict[Dim, str] = {}
    for name, (shape, axis) in mapped.items():
        found.setdefault(shape[axis], f"{shape[axis]} (axis {axis} of {name})")
    if len(found) > 1:
        raise UserError(f"the mapped axes have different sizes: {', '.join(found.values())}", code="MLC0401",
                        loc=user_loc(), hint="map axes of one size; None in in_dims maps none")
    return next(iter(found))


def _placed(x: Tracer, axis: int | None) -> Tensor:
    """A result with its batch axis moved to `axis`."""
    if axis is None or axis == 0:
        return x
    if not -x.ndim <= axis < x.ndim:
        raise UserError(f"a result has {x.ndim} dimensions with that of vmap, and out_dims is {axis}", code="MLC0400",
                        loc=user_loc())
    return movedim(x, 0, axis)


# -- trees of axes ----------------------------------------------------------------------------------------------------
def _argument_axes(in_dims: Axes, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[int | None]:
    """The axis of each leaf of (args, keywords)."""
    out: list[int | None] = []
    if isinstance(in_dims, tuple | list) and len(in_dims) != len(args):
        raise UserError(f"in_dims has {len(in_dims)} entries, but there are {len(args)} positional arguments",
                        code="MLC0400", loc=user_loc(), hint="give one axis for all of them, or one for each")
    for i, x in enumerate(args):
        _spread(in_dims[i] if isinstance(in_dims, tuple | list) else in_dims, x, f"argument {i}", out, "in_dims")
    _spread(None, keywords, "", out, "in_dims")
    return [axis if is_tensor(x) or type(x) in (int, float) else None
            for axis, x in zip(out, tree.leaves((args, keywords)))]


def _spread(axes: Axes, x: Any, path: str, out: list[int | None], name: str) -> None:
    """Append the axis of each leaf of x, where `axes` is a prefix of the tree x."""
    if axes is None or type(axes) is int:
        out += [axes] * len(tree.leaves(x))
        return
    given, found = tree.children(axes), tree.children(x)
    if not given or isinstance(x, tree.AttributeTree) or {n for n, _ in given} != {n for n, _ in found}:
        raise UserTypeError(f"{name} for {path} is {axes!r}, which is no axis and has another structure than "
                            f"{type(x).__name__}", code="MLC0400", loc=user_loc(),
                            hint="an axis is an integer or None; containers of axes are like those of the arguments")
    by_name = dict(given)
    for step, child in found:
        _spread(by_name[step], child, path + step, out, name)


# -- Jacobians --------------------------------------------------------------------------------------------------------
@coded
def jacrev(f: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False,
           chunk_size: int | None = None) -> Callable[..., Any]:
    """Jacobian in reverse mode: y[i, j] = d f(x)[i] / d x[j], by the pullbacks of all elements of f(x) at once.

    It takes less work than `jacfwd` where f(x) has fewer elements than x.

    Args:
        f: Function that returns a tree of floats, or with `has_aux` a pair of it and anything else.
        argnums: Position of the argument to differentiate by, or several; negative ones count from the last.
        has_aux: Whether f returns a pair.
        chunk_size: Most rows to compute at a time; None for all at once.

    Returns:
        Function of the same arguments. In place of each leaf of the result of f it gives a tree like the argument, or a
        tuple of them, with tensors of shape (*result.shape, *leaf.shape), and None for buffers and frozen parameters.
        With `has_aux`, a pair of that and the rest of what f returns.

    Raises:
        UserError: A position is beyond the positional arguments (MLC0372), or a chunk has no rows (MLC0400).
        UserTypeError: An argument or a result has no floats (MLC0373), or f returns no pair (MLC0374).

    Example:
        >>> mlc.jacrev(lambda x: x * x)(mlc.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]], dtype=mlc.float32)
    """
    @functools.wraps(f, updated=())
    def jacobian(*args: Any, **keywords: Any) -> Any:
        if state.trace is None:
            return run_now(jacobian, args, keywords, list(parameters(f)), Draws())
        f_of, chosen = _of_chosen(f, argnums, args, keywords)
        out, pullback = vjp(f_of, *chosen)
        leaves, structure = tree.flatten(out)
        value, aux = pair(f, out) if has_aux else (out, None)
        own = tree.flatten(value)[1]
        rows = [_row(pullback, leaves, structure, i, chunk_size) for i in range(own.leaf_count)]
        found = own.unflatten([row[0] if isinstance(argnums, int) else row for row in rows])
        return (found, aux) if has_aux else found

    return jacobian


@coded
def jacfwd(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:
    """Jacobian in forward mode: y[i, j] = d f(x)[i] / d x[j], by the tangents of all elements of x at once.

    It takes less work than `jacrev` where x has fewer elements than f(x).

    Args:
        f: Function that returns a tree of floats, or with `has_aux` a pair of it and anything else.
        argnums: Position of the argument to differentiate by, or several; negative ones count from the last.
        has_aux: Whether f returns a pair.
        randomness: As of `vmap`.

    Returns:
        Function of the same arguments, with the results of `jacrev`.

    Raises:
        UserError: A position is beyond the positional arguments (MLC0372), or `randomness` is neither value (MLC0400).
        UserTypeError: An argument or a result has no floats (MLC0373), or f returns no pair (MLC0374).

    Example:
        >>> mlc.jacfwd(lambda x: mlc.stack([x, x**3]))(mlc.tensor(2.0))
        tensor([ 1., 12.], dtype=mlc.float32)
    """
    @functools.wraps(f, updated=())
    def jacobian(*args: Any, **keywords: Any) -> Any:
        if state.trace is None:
            return run_now(jacobian, args, keywords, list(parameters(f)), Draws())
        whole, chosen = _of_chosen(f, argnums, args, keywords)
        f_of = (lambda *xs: pair(f, whole(*xs))[0]) if has_aux else whole
        leaves, inputs = tree.flatten(tuple(chosen))
        columns = [_column(f_of, leaves, inputs, j) if wanted else None
                   for j, wanted in enumerate(tree.trained(tuple(chosen)))]
        outputs = next((c[1] for c in columns if c is not None), tree.flatten(())[1])
        rows = [inputs.unflatten([None if c is None else c[0][i] for c in columns]) for i in range(outputs.leaf_count)]
        found = outputs.unflatten([row[0] if isinstance(argnums, int) else row for row in rows])
        return (found, whole(*chosen)[1]) if has_aux else found

    check_randomness(randomness)
    return jacobian


@coded
def hessian(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Hessian: y[i, j] = d2 f(x) / d x[i] d x[j], forward over reverse.

    Args:
        f: Function that returns a float tensor; of one with several elements, it is the Hessian of each.
        argnums: Position of the argument to differentiate by, or several; negative ones count from the last.

    Returns:
        Function of the same arguments that gives a tensor of shape (*f(x).shape, *x.shape, *x.shape); of trees, those
        of the Jacobian of the Jacobian.

    Raises:
        UserError: A position is beyond the positional arguments (MLC0372).
        UserTypeError: An argument or a result has no floats (MLC0373).

    Example:
        >>> mlc.hessian(lambda x: (x**3).sum())(mlc.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]], dtype=mlc.float32)
    """
    return jacfwd(jacrev(f, argnums), argnums)


def _of_chosen(f: Callable[..., Any], argnums: Argnums, args: tuple[Any, ...],
               keywords: dict[str, Any]) -> tuple[Callable[..., Any], list[Any]]:
    """f as a function of the arguments `argnums` only, and these arguments."""
    check_call(f, name_of(f), args, keywords)
    numbers = numbers_of(argnums, len(args))
    names = list(parameters(f))
    for i in numbers:
        paths = tree.paths(args[i], names[i] if i < len(names) else f"args[{i}]")
        for x, path, wanted in zip(tree.leaves(args[i]), paths, tree.trained(args[i])):
            if wanted:
                _check_float(x, path)

    def of_chosen(*chosen: Any) -> Any:
        given = dict(zip(numbers, chosen))
        return captured(f)(*(given.get(i, x) for i, x in enumerate(args)), **keywords)

    of_chosen.__name__ = name_of(f)
    return of_chosen, [args[i] for i in numbers]


def _check_float(x: Any, what: str) -> Tracer:
    """The tracer of a differentiable leaf; UserTypeError for others."""
    if is_tensor(x) or type(x) in (int, float):
        with located(user_loc()):
            out = tracer(x)
        if out.type.dtype.is_float:
            return out
    shown = str(x.type) if isinstance(x, Tracer) else type(x).__name__
    raise UserTypeError(f"{what} is {shown}, which has no derivative", code="MLC0373", loc=user_loc(),
                        hint="make it a float, such as 1.0 for 1, or leave it out")


def _row(pullback: Callable[[Any], tuple[Any, ...]], leaves: Sequence[Any], structure: tree.TreeDef,
         i: int, chunk_size: int | None) -> tuple[Any, ...]:
    """Rows of the Jacobian: the derivatives of one result by all arguments."""
    y = _check_float(leaves[i], "a result")

    def pull(ct: Tensor) -> tuple[Any, ...]:
        return pullback(structure.unflatten([ct if k == i else 0.0 for k in range(len(leaves))]))

    with located(user_loc()):
        pulled = vmap(pull, randomness="same", chunk_size=chunk_size)(_basis(y))
        return tree.map(lambda d: reshape(tracer(d), (*y.shape, *d.shape[1:])), pulled)  # type: ignore[no-any-return]


def _column(f: Callable[..., Any], leaves: Sequence[Any], inputs: tree.TreeDef,
            j: int) -> tuple[list[Any], tree.TreeDef]:
    """Columns of the Jacobian: the derivatives of all result leaves by one argument leaf, and their structure."""
    with located(user_loc()):
        x = tracer(leaves[j])

    def of_leaf(value: Any) -> Any:
        return f(*inputs.unflatten([value if k == j else leaf for k, leaf in enumerate(leaves)]))

    def push(direction: Tensor) -> Any:
        out, change = jvp(of_leaf, (x,), (direction,))
        for y in tree.leaves(out):
            _check_float(y, "a result")
        return change

    with located(user_loc()):
        pushed, structure = tree.flatten(vmap(push, out_dims=-1, randomness="same")(_basis(x)))
        return [reshape(tracer(d), (*d.shape[:-1], *x.shape)) for d in pushed], structure


def _basis(x: Tracer) -> Tracer:
    """The standard basis of the space of x, stacked along a new first axis."""
    n = x.type.size
    row, column = emit(T.Iota, (n, 1), 0, i64), emit(T.Iota, (1, n), 1, i64)
    return reshape(cast(emit(T.Compare, "eq", row, column), x.type.dtype), (n, *x.shape))
