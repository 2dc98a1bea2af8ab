"""Modules made of that of a recorded function: its pullback, its pushforward, and the two functions of a split one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from mlc.dialects import autodiff, func
from mlc.dialects.builtin import Module
from mlc.frontend.location import user_loc
from mlc.frontend.operands import broadcast_to, cast, tracer
from mlc.frontend.trace import Trace
from mlc.frontend.tracer import Tracer
from mlc.ir.core import Symbol, located
from mlc.ir.diag import IRError, UserError
from mlc.ir.types import TensorType
from mlc.passes import pipeline

NO_DERIVATIVE = ("MLC0130", "MLC0132")
"""Errors of functions that have no derivative."""


def copy_of(module: Module) -> Module:
    """A copy, which lowering may consume."""
    copy = module.clone()
    assert isinstance(copy, Module)
    return copy


def _calling(module: Module) -> tuple[Trace, func.Func]:
    """The trace of a function that calls @main of the module, and this."""
    trace = Trace("main")
    trace.module.attrs.update(module.attrs)                # what holds for the code of one holds for that of the other
    functions = func.functions(copy_of(module))
    names = {f.sym_name for f in functions}
    for f in functions:
        f.detach()
        if f.sym_name == "main":
            forward = f
            f.sym_name = Symbol(next(n for i in range(len(names) + 1) if (n := f"forward_{i}") not in names))
            f.attrs["sym_visibility"] = "private"
        trace.module.body.block.insert(f)
    return trace, forward


def alone(module: Module, name: str) -> Module:
    """A module of a function, as @main, and of those that it calls."""
    copy = copy_of(module)
    table: dict[str, func.Func] = {f.sym_name: f for f in func.functions(copy)}
    reached, work = {name}, [name]
    while work:
        found = set[str](func.references(table[work.pop()])) - reached
        reached |= found
        work += found
    for f in table.values():
        if f.sym_name not in reached:
            f.erase()
    table[name].sym_name = Symbol("main")
    return copy


def _zeros(type: Any) -> Tracer:
    return broadcast_to(cast(tracer(0.0), type.dtype), type.shape)


def pullback(module: Module, wrt: Sequence[int], present: Sequence[int], keeps_results: bool = False) -> Module:
    """The module of the pullback; with `keeps_results`, joint: it gives the results of the function first."""
    trace, forward = _calling(module)
    types = forward.function_type
    with located(user_loc()), trace.recording():
        operands = [trace.arg(t) for t in types.inputs]  # type: ignore[arg-type]
        given = {i: trace.arg(types.results[i]) for i in present}  # type: ignore[arg-type]
        cotangents = [given[i] if i in given else _zeros(t) for i, t in enumerate(types.results) if moves(t)]
        found = autodiff.vjp(forward, [t.value for t in operands], [t.value for t in cotangents], wrt)
        trace.finish([Tracer(v, trace) for v in (found if keeps_results else found[len(types.results):])])
    if keeps_results:
        trace.function.attrs |= {"joint": (len(types.inputs), len(types.results)), "returned": tuple(present)}
    return trace.module


def split(module: Module, wrt: Sequence[int], present: Sequence[int]) -> tuple[Module, Module, tuple[int, ...]] | None:
    """The function with what its pullback reads behind its results, the pullback of cotangents and of that, and what
    it reads: numbers among the operands and the results of the first. None if the pullback computes all by itself."""
    types = next(f for f in func.functions(module) if f.sym_name == "main").function_type
    if any(isinstance(t, TensorType) and t.dtype.is_complex for t in (*types.inputs, *types.results)):
        return None                                        # the halves would take and give their parts
    try:
        joint = pullback(module, wrt, present, keeps_results=True)
        pipeline.splitting().run(joint)
    except (UserError, IRError) as error:
        if error.code not in NO_DERIVATIVE:
            raise
        return None                                        # backward says so, if it is called
    functions: dict[str, func.Func] = {f.sym_name: f for f in func.functions(joint)}
    if "main_forward" not in functions:                    # it stays joint
        return None
    saved, count = functions["main_backward"].attrs["saved"], len(functions["main_forward"].args)
    if all(n < count for n in saved):
        return None
    forward, backward = alone(joint, "main_forward"), alone(joint, "main_backward")
    names = [f.attrs["arg_names"] for f in func.functions(module) if f.sym_name == "main" and "arg_names" in f.attrs]
    for f in func.functions(forward):
        if f.sym_name == "main" and names:
            f.attrs["arg_names"] = names[0]
    return forward, backward, saved


def without_cotangents(backward: Module, present: Sequence[int], given: Sequence[int]) -> Module:
    """A pullback as of `split` where those of the results `present` that are not `given` have no cotangents."""
    trace, function = _calling(backward)
    types = function.function_type.inputs
    with located(user_loc()), trace.recording():
        cotangents = [trace.arg(t) if i in given else _zeros(t)  # type: ignore[arg-type]
                      for i, t in zip(present, types)]
        saved = [trace.arg(t) for t in types[len(present):]]  # type: ignore[arg-type]
        found = func.call(function, [t.value for t in (*cotangents, *saved)])
        trace.finish([Tracer(v, trace) for v in found])
    return trace.module


def pushforward(module: Module, wrt: Sequence[int]) -> Module:
    trace, forward = _calling(module)
    types = forward.function_type
    with located(user_loc()), trace.recording():
        operands = [trace.arg(t) for t in types.inputs]  # type: ignore[arg-type]
        tangents = [trace.arg(types.inputs[i]) for i in wrt]  # type: ignore[arg-type]
        found = autodiff.jvp(forward, [t.value for t in operands], [t.value for t in tangents], wrt)
        trace.finish([Tracer(v, trace) for v in found[len(types.results):]])
    return trace.module


def moves(type: Any) -> TypeGuard[TensorType]:
    """Whether what has a type has a derivative."""
    return isinstance(type, TensorType) and type.dtype.is_inexact
