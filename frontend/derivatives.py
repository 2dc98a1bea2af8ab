"""Derivatives of Python functions: each records the function and emits an operation of the autodiff dialect.

Outside a recorded function, the whole derivative is recorded, compiled (or taken from the cache) and run. It is
recorded anew at every call, to capture the current state of globals and closures; captured arrays become arguments, so
that the same code serves all their values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from mlc.dialects import autodiff, func
from mlc.dialects import tensor as T
from mlc.dialects.tensor.bounded import up_to
from mlc.frontend import tree
from mlc.frontend.arguments import check_call, coded
from mlc.frontend.autograd.function_modules import copy_of
from mlc.frontend.autograd.function_node import FunctionRecord, push_call, record_call, requires_grad
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.autograd.tangents import any_tangent
from mlc.frontend.axes import plain_int
from mlc.frontend.buffers import Buffers
from mlc.frontend.compiler import compile_module
from mlc.frontend.devices import device_of_call
from mlc.frontend.location import user_loc
from mlc.frontend.nested import record, results_of
from mlc.frontend.operands import as_tensors, broadcast_to, cast, is_tensor, tracer
from mlc.frontend.recorded_draws import Draws
from mlc.frontend.recorded_function import record_entry
from mlc.frontend.signature import Arguments, name_of, parameters, paths_of
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import captured, current, emit, state
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.core import Value, located
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.profiling import timed

Argnums = int | Sequence[int]


def run_now(f: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any], names: Sequence[str] = (),
            draws: Draws | None = None) -> Any:
    """f(*args, **keywords), recorded and run as one compiled function, which may draw from generators if `draws` keeps
    the keys."""
    arguments = Arguments(*tree.flatten((args, keywords)))
    with nullcontext() if draws is None else draws.recording():
        recorded = record_entry(f, arguments, paths_of(names, arguments, args, keywords), lifts=True)
    if not recorded.computes:
        return recorded.result(())
    operands = [*arguments.operands(), *recorded.trace.lifted_from]
    dual = any_tangent(operands)
    name = name_of(f)
    function = FunctionRecord(copy_of(recorded.trace.module), name) if dual or requires_grad(operands) else None
    arrays = [*arguments.arrays, *recorded.captured]
    device = device_of_call(arrays)
    recorded.trace.check_device(device)
    entry = timed("compilation", name, lambda: compile_module(recorded.trace.module, device))
    results = timed("compiled function", name, lambda: entry.call(arrays), arrays)
    recorded.assign((args, keywords), results)
    out = recorded.result(results)
    if function is not None and requires_grad(operands):
        record_call(name, function, recorded, operands, out)
    if function is not None and dual:
        push_call(name, function, recorded, operands, out)
    return out


@coded
def value_and_grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Value and gradient of a function in reverse mode: (f(x), d f(x) / d x).

    It composes with itself, `jvp`, `vmap` and `compile`. Outside of a compiled function, each call records f, and
    compiles it where it has not been compiled for such arguments.

    Args:
        f: Function that returns a float tensor of one number, or with `has_aux` a pair of it and anything else.
        argnums: Position of the argument to differentiate by, or several; negative ones count from the last.
        has_aux: Whether f returns a pair.

    Returns:
        Function of the same arguments that returns the result of f and the gradient, or a tuple of gradients. A
        gradient has the structure, shapes and dtypes of its argument, with None for buffers and frozen parameters of
        modules.

    Raises:
        UserError: A position is beyond the positional arguments (MLC0372).
        UserTypeError: An argument has no floats (MLC0373), or f returns no single float (MLC0374).

    Example:
        >>> mlc.value_and_grad(lambda x: (x * x).sum())(mlc.tensor([1.0, 2.0]))
        (tensor(5., dtype=mlc.float32), tensor([2., 4.], dtype=mlc.float32))
    """
    numbers = _numbers(argnums)

    @functools.wraps(f, updated=())
    def derivative(*args: Any, **keywords: Any) -> Any:
        if state.trace is None:
            return run_now(derivative, args, keywords, list(parameters(f)), Draws())
        outputs, gradients = _grad(f, numbers, has_aux, args, keywords)
        return as_tensors(outputs), as_tensors(gradients if not isinstance(argnums, int) else gradients[0])

    return derivative


@coded
def grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Gradient of a function in reverse mode: d f(x) / d x.

    Args:
        f: Function that returns a float tensor of one number, or with `has_aux` a pair of it and anything else.
        argnums: Position of the argument to differentiate by, or several; negative ones count from the last.
        has_aux: Whether f returns a pair.

    Returns:
        Function of the same arguments that returns the gradient, or a tuple of them; with `has_aux` a pair of that and
        the rest of what f returns. A gradient has the structure, shapes and dtypes of its argument, with None for
        buffers and frozen parameters of modules.

    Raises:
        UserError: A position is beyond the positional arguments (MLC0372).
        UserTypeError: An argument has no floats (MLC0373), or f returns no single float (MLC0374).

    Example:
        >>> mlc.grad(lambda x: (x * x).sum())(mlc.tensor([1.0, 2.0]))
        tensor([2., 4.], dtype=mlc.float32)
        >>> mlc.grad(mlc.grad(lambda x: x**3))(2.0)
        tensor(12., dtype=mlc.float32)
    """
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f, updated=())
    def derivative(*args: Any, **keywords: Any) -> Any:
        if state.trace is None:
            return run_now(derivative, args, keywords, list(parameters(f)), Draws())
        value, gradient = both(*args, **keywords)
        return (gradient, value[1]) if has_aux else gradient

    return derivative


@coded
def vjp(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Vector-Jacobian product: f(*primals), and the pullback that maps v to v @ J.

    Args:
        f: Function of the primals.
        primals: Trees.

    Returns:
        The result of f, and the pullback: a function of cotangents with the structure of that result (a number stands
            for a tensor of it, None for zeros) that returns a tuple of the cotangents of the primals, None for what has
            no derivative.

    Raises:
        UserError: A cotangent has another shape than its result (MLC0375).

    Example:
        >>> y, pullback = mlc.vjp(lambda x: x * x, mlc.tensor([1.0, 2.0]))
        >>> pullback(mlc.tensor([1.0, 10.0]))
        (tensor([ 2., 40.], dtype=mlc.float32),)
    """
    if state.trace is None:
        leaves, structure = tree.flatten(primals)
        draws = Draws()

        def pull_now(cotangents: Any) -> tuple[Any, ...]:
            before = structure.unflatten(leaves)           # f may assign buffers of modules: only once, below
            if state.trace is not None:                    # as in vmap(pullback)
                with draws.recording():
                    return _vjp(f, before)[1](cotangents)
            pulled: tuple[Any, ...] = run_now(lambda xs, cts: _vjp(f, xs)[1](cts), (before, cotangents), {},
                                              draws=draws)
            return pulled
        return run_now(f, primals, {}, list(parameters(f)), draws), pull_now
    return _vjp(f, primals)


def numbers_of(argnums: Argnums, count: int) -> list[int]:
    """The nonnegative positions of `argnums` among `count` positional arguments."""
    numbers = _numbers(argnums)
    for n in numbers:
        if not -count <= n < count:
            raise UserError(f"argnums = {n}, but the function is called with {count} positional arguments",
                            code="MLC0372", loc=user_loc())
    return [n % count for n in numbers]


def _numbers(argnums: Argnums) -> tuple[int, ...]:
    try:
        return tuple(plain_int(n, "argnums") for n in ((argnums,) if isinstance(argnums, int) else argnums))
    except UserError as error:
        error.loc = user_loc()
        raise


class Inputs:
    """The leaves of a call within a trace: which become arguments of the differentiated function, and in which order.

    position   per leaf: its number among the arguments; None for leaves that are constants
    """

    def __init__(self, tree_: Any, numbers_too: Callable[[int], bool]) -> None:
        self.leaves, self.structure = tree.flatten(tree_)
        self.position: list[int | None] = []
        self.tracers: list[Tracer] = []
        with located(user_loc()):
            for i, x in enumerate(self.leaves):
                moves = is_tensor(x) or (numbers_too(i) and type(x) in (int, float))
                self.position.append(len(self.tracers) if moves else None)
                if moves:
                    self.tracers.append(tracer(x))

    def rebuild(self, own: Sequence[Tracer]) -> Any:
        return self.structure.unflatten([x if p is None else own[p] for x, p in zip(self.leaves, self.position)])


def _grad(f: Callable[..., Any], numbers: tuple[int, ...], has_aux: bool, args: tuple[Any, ...],
          keywords: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Record (result of f, gradients by the arguments `numbers`) in the current trace."""
    loc = user_loc()
    check_call(f, name_of(f), args, keywords)
    chosen = numbers_of(numbers, len(args))
    ends = [0]
    for x in args:
        ends.append(ends[-1] + len(tree.leaves(x)))
    wanted = [ends[n] + i for n in chosen for i, is_wanted in enumerate(tree.trained(args[n])) if is_wanted]
    inputs = Inputs((args, keywords), lambda i: i in wanted)
    wrt = _differentiable(f, inputs, wanted, args)

    def body(*own: Tracer) -> Any:
        args, keywords = inputs.rebuild(own)
        buffers = Buffers(args, keywords)
        with GradMode(True):
            return *_scalar(f, captured(f)(*args, **keywords), has_aux), buffers.take()

    inner, function, traced, structure, others = record(name_of(f), body, inputs.tracers, True)
    outer = current()
    with located(loc):
        primals = [*(outer.local(t) for t in inputs.tracers), *inner.arguments()]
        found = autodiff.grad(function, primals, wrt)
        own = len(function.function_type.results)
        values = iter(results_of(inner, traced, found[:own]))
    gradients = iter([Tracer(v, outer, inputs.tracers[i].weak) for i, v in zip(wrt, found[own:])])
    value, aux, assigned = structure.unflatten([x if x is not None else next(values) for x in others])
    Buffers(args, keywords).assign(assigned)
    trees = tuple(tree.flatten(args[n])[1].unflatten([
        next(gradients) if is_wanted else other
        for is_wanted, other in zip(tree.trained(args[n]), _others(args[n]))]) for n in chosen)
    return (value, aux) if has_aux else value, trees


def _others(x: Any) -> list[Any]:
    """For each leaf of an argument, what stands in its gradient if it is not differentiated: of the components of a
    sparse tensor the same, which are the pattern of the gradient, too; otherwise None."""
    leaves, structure = tree.flatten(x)
    out: list[Any] = []
    components = 0
    for token in structure:
        if token is tree.LEAF:
            out.append(leaves[len(out)] if components > 1 else None)
            components -= 1
        elif token[0] is tree.Again:                       # indices that several tensors share
            components -= 1
        else:
            components = token[1] if issubclass(token[0], Tensor) else 0
    return out


def _differentiable(f: Any, inputs: Inputs, wanted: Sequence[int], args: tuple[Any, ...]) -> list[int]:
    """The argument numbers of the leaves of the arguments `wanted`; UserError if one is not differentiable."""
    out = []
    names = list(parameters(f))
    for i in wanted:
        p = inputs.position[i]
        if p is None or not inputs.tracers[p].type.dtype.is_inexact:
            paths = [path for n, x in enumerate(args)
                     for path in tree.paths(x, names[n] if n < len(names) else f"args[{n}]")]
            what = f"{type(inputs.leaves[i]).__name__}" if p is None else str(inputs.tracers[p].type)
            raise UserTypeError(f"{paths[i]} is {what}, which has no derivative", code="MLC0373", loc=user_loc(),
                                hint="make it a float, such as 1.0 for 1, or leave it out of argnums")
        out.append(p)
    return out


def pair(f: Any, out: Any) -> tuple[Any, Any]:
    """The pair that a function returned whose `has_aux` is true."""
    if not (isinstance(out, tuple) and len(out) == 2):
        raise UserTypeError(f"with has_aux, {name_of(f)} must return (value, anything else); it returned "
                            f"{type(out).__name__}", code="MLC0374", loc=user_loc())
    return out


def _scalar(f: Any, out: Any, has_aux: bool) -> Any:
    """(number, rest) of what a differentiated function returned."""
    value, rest = pair(f, out) if has_aux else (out, None)
    if is_tensor(value) or type(value) in (int, float):
        with located(user_loc()):
            value = tracer(value)
        if value.shape == () and value.type.dtype.is_float:
            return value, rest
    shown = str(value.type) if isinstance(value, Tracer) else type(value).__name__
    raise UserTypeError(f"the gradient is that of a number, but {name_of(f)} returned {shown}", code="MLC0374",
                        loc=user_loc(), hint="sum or average it, or use mlc.vjp")


def _vjp(f: Callable[..., Any], primals: Sequence[Any]) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    check_call(f, name_of(f), primals, {})
    inputs = Inputs(tuple(primals), lambda i: True)

    def body(*own: Tracer) -> Any:
        args = inputs.rebuild(own)
        buffers = Buffers(args)
        with GradMode(True):
            return captured(f)(*args), buffers.take()

    inner, function, traced, structure, others = record(name_of(f), body, inputs.tracers, True)
    outer = current()
    values = [*(outer.local(t) for t in inputs.tracers), *inner.arguments()]
    with located(user_loc()):
        returned = func.call(function, values)
        results = results_of(inner, traced, returned)
    pending = iter(results)
    out, assigned = structure.unflatten([x if x is not None else next(pending) for x in others])
    Buffers(primals).assign(assigned)
    leaves, structure = tree.flatten(out)
    is_result = [x is None for x in others[: len(leaves)]]
    known = [Tracer(v, outer) for v in values]
    wrt = [p for p, wanted in zip(inputs.position, tree.trained(tuple(primals)))
           if wanted and p is not None and inputs.tracers[p].type.dtype.is_inexact]

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        loc, here = user_loc(), current()
        with located(loc):
            given = _cotangents(results, is_result, structure, cotangents)
            padded = zip((here.local(c) for c in given), (v.type for v in returned if v.type.dtype.is_inexact))
            found = autodiff.vjp(function, [here.local(t) for t in known], [up_to(c, t.shape) for c, t in padded], wrt)
        gradients: dict[int, Tensor] = {i: Tracer(v, here, inputs.tracers[i].weak)
                                        for i, v in zip(wrt, found[len(returned):])}
        leaves = [other if p is None else gradients.get(p, other)
                  for p, other in zip(inputs.position, _others(tuple(primals)))]
        return as_tensors(inputs.structure.unflatten(leaves))  # type: ignore[no-any-return]

    return as_tensors(out), pullback


def _cotangents(results: Sequence[Tracer], is_result: Sequence[bool], structure: tree.TreeDef,
                given: Any) -> list[Tracer]:
    """One cotangent for each float result, of its type; 0 for the buffers, which follow the results of f."""
    leaves = [x for x, wanted in zip(_leaves_or_none(structure, given), is_result) if wanted]
    leaves += [None] * (len(results) - len(leaves))
    out = []
    for result, ct in zip(results, leaves):
        if not result.type.dtype.is_inexact:
            continue
        ct = tracer(0.0 if ct is None else ct)
        ct = cast(ct, result.type.dtype)
        if ct.shape != () and (ct.ndim != result.ndim or not all(map(_fits, ct.shape, result.shape))):
            raise UserError(f"a cotangent has type {ct.type}, its result {result.type}", code="MLC0375",
                            loc=user_loc(), symbols=_plain(ct.shape, result.shape))
        out.append(ct if ct.shape else broadcast_to(ct, result.shape))
    return out


def _plain(given: Sequence[Any], wanted: Sequence[Any]) -> set[str]:
    """The symbols in which shapes differ first, if these are symbols; code for sizes computed of others is slow."""
    differing = next(((d, e) for d, e in zip(given, wanted) if d != e), ())
    return {*map(str, differing)} if all(sizes.symbol_name(d) is not None for d in differing) else set()


def _fits(n: Any, wanted: Any) -> bool:
    """Whether a cotangent has the size of its result; a data-dependent size is checked when the code runs."""
    if n == wanted:
        return True
    is_data_dependent = not sizes.symbols(wanted).isdisjoint(current().root.named)
    if is_data_dependent:
        emit(_must_be, tracer(wanted), tracer(n))
    return is_data_dependent


def _must_be(wanted: Value, n: Value) -> T.FailIf:
    differ = T.Compare("ne", wanted, n).result
    return T.FailIf(T.Item(differ).result, "a cotangent has as many elements as its result")


def _leaves_or_none(structure: tree.TreeDef, given: Any) -> list[Any]:
    """The leaves of the cotangents, where None may take the place of a leaf."""
    if len(structure) == 1:
        return [given]
    return tree.matching_leaves(structure, given)
