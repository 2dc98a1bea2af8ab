"""Remove unused arguments and results of private functions.

takes  any form of tensors
gives  the same form
why    forward functions save more than backward functions read, and unused results keep their producers alive

A result that equals another one, or an argument, is replaced by it. An argument is kept if only its type binds a size
that the function uses. Operations that become unused are removed, in callers and callees, to a fixed point.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlc.dialects import func
from mlc.dialects.func import Func
from mlc.ir import sizes
from mlc.ir.core import Op, Symbol, Value
from mlc.ir.passes import Pass
from mlc.ir.types import TensorType
from mlc.passes import dce
from mlc.passes.analysis.size_constraints import op_sizes


def run(module: Op) -> None:
    """Simplify signatures and remove dead operations, to a fixed point."""
    dce.run(module)
    changed = True
    while changed:
        changed = False
        for table in [op for op in module.walk() if op.symbol_table]:
            changed |= _module(table)
        if changed:
            dce.run(module)


def _module(module: Op) -> bool:
    """Simplify the functions of one module that are referenced by calls only; returns whether anything changed."""
    calls: dict[str, list[func.Call]] = {f.sym_name: [] for f in func.functions(module) if not f.is_public}
    for op in module.walk():
        if isinstance(op, func.Call) and op.callee in calls:
            calls[op.callee].append(op)
        elif not isinstance(op, Func):
            for value in op.attrs.values():
                if isinstance(value, Symbol):
                    calls.pop(value, None)
    functions = [f for f in func.callees_first(module) if f.sym_name in calls and len(f.body.blocks) == 1]
    changed = False
    for function in reversed(functions):
        changed |= _results(function, calls)
        changed |= _arguments(function, calls)
    return changed


def _results(function: Func, calls: dict[str, list[func.Call]]) -> bool:
    """Drop results that no call uses, after replacing those that equal an argument or another result."""
    returned = list(function.block.terminator.operands)
    for call in calls[function.sym_name]:
        for i, v in enumerate(returned):
            known = call.args[function.args.index(v)] if v in function.args else call.results[returned.index(v)]
            if known is not call.results[i]:
                call.results[i].replace_by(known)
    keep = [i for i in range(len(returned)) if any(call.results[i].uses for call in calls[function.sym_name])]
    if len(keep) == len(returned):
        return False
    function.block.terminator.set_operands([returned[i] for i in keep])
    function.update_type()
    _replace(function, calls, keep, list(range(len(function.args))))
    return True


def _arguments(function: Func, calls: dict[str, list[func.Call]]) -> bool:
    """Drop arguments that are neither used nor needed to bind a size."""
    used = {n for op in function.walk() if op is not function for d in op_sizes(op) for n in sizes.symbols(d)}
    used |= {n for a in function.args if a.uses for d in _shape(a) for n in sizes.symbols(d)}
    bound = {n for a in function.args if a.uses for n in _bound_sizes(a)}
    keep = []
    for i, arg in enumerate(function.args):
        binds = {n for n in _bound_sizes(arg) if n in used} - bound
        if arg.uses or binds:
            keep.append(i)
            bound |= set(_bound_sizes(arg))
            used |= {n for d in _shape(arg) for n in sizes.symbols(d)}
    if len(keep) == len(function.args):
        return False
    function.block.erase_args(set(range(len(function.args))) - set(keep))
    if donated := function.attrs.pop("donate", ()):
        function.attrs["donate"] = tuple(keep.index(i) for i in donated if i in keep)
    function.update_type()
    _replace(function, calls, list(range(len(function.function_type.results))), keep)
    return True


def _replace(function: Func, calls: dict[str, list[func.Call]], results: list[int], arguments: list[int]) -> None:
    """Restrict a function and its calls to the given results and arguments, by position."""
    updated = []
    for call in calls[function.sym_name]:
        types = [call.results[i].type for i in results]
        new = func.Call.make([call.args[i] for i in arguments], dict(call.attrs), types, loc=call.loc)
        assert call.parent is not None
        call.parent.insert(new, call)
        for i, result in zip(results, new.results):
            result.name = call.results[i].name
            call.results[i].replace_by(result)
        call.erase()
        updated.append(new)
    calls[function.sym_name] = updated


def _shape(value: Value) -> tuple[sizes.Dim, ...]:
    return value.type.shape if isinstance(value.type, TensorType) else ()


def _bound_sizes(value: Value) -> Iterator[str]:
    """The symbols that a value binds: those that are a whole dimension of it."""
    return (n for d in _shape(value) if (n := sizes.symbol_name(d)))


PASS = Pass(run)
