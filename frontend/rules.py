"""Functions with custom differentiation: derivative rules of their own, or rematerialization."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

from mlc.dialects import autodiff, func
from mlc.frontend import tree
from mlc.frontend.arguments import check_call, coded
from mlc.frontend.autograd.function_node import requires_grad
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.derivatives import Argnums, Inputs, numbers_of, run_now
from mlc.frontend.location import user_loc
from mlc.frontend.nested import call, record
from mlc.frontend.operands import broadcast_to, cast, tracer
from mlc.frontend.recorded_function import record_entry
from mlc.frontend.recorded_operation import constant
from mlc.frontend.signature import Arguments, Spec, name_of
from mlc.frontend.trace import Trace, captured, current, state
from mlc.frontend.tracer import Tracer
from mlc.ir.core import Value, located
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Dim
from mlc.passes.differentiate import expand


@coded
def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """Rematerialization: f, whose derivative saves the arguments alone, and runs f again in the backward pass.

    It saves the memory of all intermediate results of f, for the time of one more f. (Chen, Xu, Zhang and Guestrin
    2016, "Training Deep Nets with Sublinear Memory Cost".)

    Args:
        f: Function of trees.

    Returns:
        Function with the same arguments, results and derivatives.

    Example:
        >>> layer = lambda x: mlc.exp(mlc.sin(x)).sum()
        >>> x = mlc.ones(100)
        >>> mlc.saved_bytes(layer, x), mlc.saved_bytes(mlc.checkpoint(layer), x)
        (400, 0)
    """
    @functools.wraps(f, updated=())
    def recomputed(*args: Any, **keywords: Any) -> Any:
        if state.trace is None:
            if requires_grad(tree.leaves((args, keywords))):
                return run_now(recomputed, args, keywords)
            return f(*args, **keywords)

        def body(*args: Any, **keywords: Any) -> Any:
            current().function.attrs[autodiff.RECOMPUTE] = True
            return captured(f)(*args, **keywords)

        body.__self__ = getattr(f, "__self__", f)  # type: ignore[attr-defined]
        check_call(f, name_of(f), args, keywords)
        return call(name_of(f), body, *args, **keywords)

    return recomputed


@coded
def saved_bytes(f: Callable[..., Any], *args: Any, argnums: Argnums = 0) -> Dim:
    """Bytes that the forward pass of f leaves to the backward pass of its gradient.

    Arguments and results do not count. A `while`, and a `for` with a data-dependent trip count, save their initial
    values: the backward pass replays them.

    Args:
        f: Function of the arguments.
        args: Arrays, or specifications (`mlc.spec`).
        argnums: Position of the argument to differentiate by, or several; negative ones count from the last.

    Returns:
        An integer; with symbols among the sizes of the arguments, a size.

    Raises:
        UserError: A position is beyond the arguments (MLC0372).
        UserTypeError: No argument has floats (MLC0373).

    Example:
        >>> mlc.saved_bytes(lambda x: mlc.exp(x).sum(), mlc.ones(4))
        16
    """
    arguments = Arguments(*tree.flatten((args, {})))
    arguments.types = [x.type if isinstance(x, Spec) else t for x, t in zip(arguments.given, arguments.types)]
    trace = record_entry(f, arguments).trace
    chosen = numbers_of(argnums, len(args))
    moved = [n in chosen for n, x in enumerate(args) for _ in tree.leaves(x)]
    slots = [wanted for wanted, slot in zip(moved, arguments.slots) if slot]
    wrt = [i for i, wanted in enumerate(slots) if wanted and trace.function.args[i].type.dtype.is_inexact]
    if not wrt:
        raise UserTypeError("nothing among these arguments has a derivative", code="MLC0373", loc=user_loc())
    return expand.saved_bytes(trace.module, trace.function, wrt, user_loc())


class _Custom:
    """A function with a custom derivative rule. Arguments that are not arrays are constants of the recording.

    Within its own rule, a call runs the plain function.
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        functools.update_wrapper(self, f, updated=())
        self.f = f
        self.recording = threading.local()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        args = self._positional(args, keywords)
        if state.trace is None:
            return run_now(self, args, {}) if requires_grad(tree.leaves(args)) else self.f(*args)
        if getattr(self.recording, "now", False):
            return captured(self.f)(*args)
        self._check_defined()
        inputs = Inputs(args, lambda i: True)
        self.recording.now = True
        try:
            rules = self._rules(inputs)
        finally:
            self.recording.now = False
        out = _recorded(name_of(self.f), inputs, self.f, *rules)
        return out if mode.enabled else tree.map(constant, out)

    def _positional(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        check_call(self.f, name_of(self.f), args, keywords)
        bound = inspect.signature(self.f).bind(*args, **keywords)
        bound.apply_defaults()
        if bound.kwargs:
            raise UserTypeError(f"{name_of(self.f)} has keyword-only parameters {', '.join(bound.kwargs)}, which its "
                                "rule is not given", code="MLC0407", loc=user_loc(), hint="make them positional")
        return bound.args

    def _check_defined(self) -> None:
        raise NotImplementedError

    def _rules(self, inputs: Inputs) -> tuple[dict[str, Any], Sequence[Trace], list[Tracer]]:
        """The attribute with the names of the rules, the traces that recorded them, and the results they promise."""
        raise NotImplementedError

    def _undefined(self, missing: str) -> UserError:
        return UserError(f"{name_of(self.f)} has no rule for its derivative", code="MLC0405", loc=user_loc(),
                         hint=f"give it one with {name_of(self.f)}.{missing}")


class custom_vjp(_Custom):
    """Function with a reverse-mode rule of its own, which `defvjp` gives it.

    Forward mode uses the transpose of the rule, unlike in JAX, so that backward has to be linear in the cotangent.
    Where the rule itself calls the function, it is the plain one.

    Args:
        f: Function of positional arguments.

    Raises:
        UserError: It is differentiated without a rule (MLC0405), or the rule gives a wrong shape (MLC0375).
        UserTypeError: The rule returns another structure or type than f (MLC0406), or f has keyword-only parameters
            (MLC0407).

    Example:
        >>> @mlc.custom_vjp
        ... def clipped(x):
        ...     return x
        >>> clipped.defvjp(lambda x: (x, None), lambda saved, ct: mlc.clamp(ct, -1.0, 1.0))
        >>> mlc.grad(lambda x: (5 * clipped(x)).sum())(mlc.tensor([1.0, 2.0]))
        tensor([1., 1.], dtype=mlc.float32)
    """

    forward: Callable[..., Any] | None = None
    backward: Callable[..., Any] | None = None

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Give the function its rule.

        Args:
            forward: Function of the arguments of f that returns (f(*args), residuals), where residuals is any tree.
            backward: Function of residuals and cotangent that returns a cotangent for each argument, None for zeros.
                The cotangent has the structure of the result, with None for what has no derivative.
        """
        self.forward, self.backward = forward, backward

    def _check_defined(self) -> None:
        if self.forward is None or self.backward is None:
            raise self._undefined("defvjp(forward, backward)")

    def _rules(self, inputs: Inputs) -> tuple[dict[str, Any], Sequence[Trace], list[Tracer]]:
        f, forward, backward = self.f, self.forward, self.backward
        assert forward is not None and backward is not None
        counts: list[int] = []

        def saving(*own: Tracer) -> Any:
            out = captured(forward)(*inputs.rebuild(own))
            if not (isinstance(out, tuple) and len(out) == 2):
                raise UserTypeError(f"{name_of(forward)} returned {type(out).__name__}, not (result, residuals)",
                                    code="MLC0406", loc=user_loc())
            counts[:] = [len(tree.leaves(out[0]))]
            return out

        first, fwd, traced, structure, others = record(f"{name_of(f)}_fwd", saving, inputs.tracers)
        own = sum(x is None for x in others[: counts[0]])
        results, residuals = traced[:own], traced[own:]
        floats = [t for t in results if t.type.dtype.is_inexact]

        def pulling(*own: Tracer) -> Any:
            kept, given = iter(own[: len(residuals)]), iter(own[len(residuals):])
            flow = iter([next(given) if t.type.dtype.is_inexact else None for t in results])
            leaves = [(next(flow) if i < counts[0] else next(kept)) if x is None else None if i < counts[0] else x
                      for i, x in enumerate(others)]
            cotangent, saved = structure.unflatten(leaves)
            return _fitting(inputs, captured(backward)(saved, cotangent), name_of(backward))

        second, bwd, *_ = record(f"{name_of(f)}_bwd", pulling, [*residuals, *floats])
        return {autodiff.CUSTOM_VJP: (fwd.sym_name, bwd.sym_name)}, (first, second), results


class custom_jvp(_Custom):
    """Function with a forward-mode rule of its own, which `defjvp` gives it.

    Reverse mode uses the transpose of the rule, which has to be linear in the tangents. Where the rule itself calls the
    function, it is the plain one.

    Args:
        f: Function of positional arguments.

    Raises:
        UserError: It is differentiated without a rule (MLC0405), or the rule gives a wrong shape (MLC0375).
        UserTypeError: The rule returns another structure or type than f (MLC0406), or f has keyword-only parameters
            (MLC0407).

    Example:
        >>> @mlc.custom_jvp
        ... def softplus(x):
        ...     return mlc.log(1 + mlc.exp(x))
        >>> @softplus.defjvp
        ... def rule(primals, tangents):
        ...     return softplus(*primals), mlc.sigmoid(primals[0]) * tangents[0]
        >>> mlc.grad(softplus)(0.0)
        tensor(0.5, dtype=mlc.float32)
    """

    rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the function its rule; also a decorator of the rule.

        Args:
            rule: Function of primals and tangents, tuples with one element for each argument of f, that returns
                (f(*primals), tangent of the result). Tangents are None for what has no derivative.

        Returns:
            The rule.
        """
        self.rule = rule
        return rule

    def _check_defined(self) -> None:
        if self.rule is None:
            raise self._undefined("defjvp(rule)")

    def _rules(self, inputs: Inputs) -> tuple[dict[str, Any], Sequence[Trace], list[Tracer]]:
        f, rule = self.f, self.rule
        assert rule is not None
        moving = [t for t in inputs.tracers if t.type.dtype.is_inexact]
        promised: list[Tracer] = []

        def pushing(*own: Tracer) -> Any:
            flow = iter(own[len(inputs.tracers):])
            given = [next(flow) if t.type.dtype.is_inexact else None for t in inputs.tracers]
            primals = inputs.rebuild(own[: len(inputs.tracers)])
            directions = inputs.structure.unflatten([None if p is None else given[p] for p in inputs.position])
            pair = captured(rule)(primals, directions)
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise UserTypeError(f"{name_of(rule)} returned {type(pair).__name__}, not (result, tangent)",
                                    code="MLC0406", loc=user_loc())
            leaves, structure = tree.flatten(pair[0])
            with located(user_loc()):
                out = [tracer(x) for x in leaves]
                promised[:] = out
                flow_out = tree.matching_leaves(structure, pair[1])
                return (*out, *(_as(t, x, name_of(rule)) for x, t in zip(out, flow_out) if x.type.dtype.is_inexact))

        first, function, *_ = record(f"{name_of(f)}_jvp", pushing, [*inputs.tracers, *moving])
        return {autodiff.CUSTOM_JVP: (function.sym_name,)}, (first,), list(promised)


def _recorded(name: str, inputs: Inputs, f: Callable[..., Any], rules: dict[str, Any], traces: Sequence[Trace],
              promised: Sequence[Tracer]) -> Any:
    """Record f on these inputs as a function with rules; it also takes the values that the rules capture."""
    outer = current()

    def body(*own: Tracer) -> Any:
        out = captured(f)(*inputs.rebuild(own))
        trace = current()
        outside = [[trace._captured(v, outer) for v in t.arguments()] for t in traces]
        places = [tuple(_position(v) for v in values) for values in outside]
        trace.function.attrs |= {**rules, autodiff.CUSTOM_ARGS: (len(own), *places, *[()] * (2 - len(places)))}
        return out

    inner, function, traced, structure, others = record(name, body, inputs.tracers)
    if [t.type for t in traced] != [t.type for t in promised]:
        raise UserTypeError(f"{name} returns ({_types(traced)}), its rule ({_types(promised)})", code="MLC0406",
                            loc=user_loc())
    with located(user_loc()):
        values = [*(outer.local(t) for t in inputs.tracers), *inner.arguments()]
        results = iter([Tracer(v, outer, t.weak) for v, t in zip(func.call(function, values), traced)])
    return structure.unflatten([x if x is not None else next(results) for x in others])


def _position(argument: Value) -> int:
    return argument.index  # type: ignore[attr-defined, no-any-return]


def _types(tracers: Sequence[Tracer]) -> str:
    return ", ".join(str(t.type) for t in tracers)


def _fitting(inputs: Inputs, given: Any, name: str) -> tuple[Tracer, ...]:
    """A cotangent for each float argument, from the value that a rule returned."""
    if not isinstance(given, tuple | list):
        given = (given,)
    leaves = tree.matching_leaves(inputs.structure, tuple(given))
    with located(user_loc()):
        return tuple(_as(ct, inputs.tracers[p], name) for p, ct in zip(inputs.position, leaves)
                     if p is not None and inputs.tracers[p].type.dtype.is_inexact)


def _as(x: Any, like: Tracer, name: str) -> Tracer:
    """The derivative x of the value `like`, in the type of `like`; zero for None."""
    x = cast(tracer(0.0 if x is None else x), like.type.dtype)
    if x.shape != like.shape and x.shape != ():
        raise UserError(f"{name} returned {x.type} for a value of type {like.type}", code="MLC0375", loc=user_loc())
    return broadcast_to(x, like.shape)
