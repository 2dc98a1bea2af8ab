"""differentiate, batch: a function of one lane as a function of many, by one walk that names no operation on tensors.

    f(x, w) -> y          f_vmap(xs, w) -> ys, where xs and ys have an axis of lanes before their own

What depends on no batched argument stays as it is, once for all lanes. Functions are memoised by (callee, batched
arguments, number of lanes where that is known), and calls inside become calls of batched functions.
batch_operations.py has the rules of operations, batch_control.py those of loops and conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlc.dialects import func
from mlc.dialects.autodiff.attributes import RECOMPUTE, is_custom
from mlc.dialects.autodiff.vmap import Vmap, check
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.dialects.tensor.base import broadcast_to
from mlc.ir.core import Symbol, at_end, before, located
from mlc.ir.diag import Loc, UserError
from mlc.ir.sizes import Dim, sym
from mlc.ir.types import TensorType, Type, i1
from mlc.passes.differentiate.batch_control import Batcher
from mlc.passes.differentiate.batch_custom import bring_rules
from mlc.passes.differentiate.batch_operations import (
    PASS_NAME,
    BatchedFunction,
    BatchRequest,
    Scope,
    Walk,
    batched_type,
)

Lanes = dict[BatchRequest, BatchedFunction]
"""The functions that were batched, by what asked for them."""


# -- expansion --------------------------------------------------------------------------------------------------------
def expand_vmap(op: Vmap, function: Func, module: Module, made: Lanes) -> None:
    """Replace one operation by a call of the batched function."""
    check(op, function)
    lanes = op.lanes if isinstance(op.lanes, int) else None
    batched = batch(module, BatchRequest(op.callee, op.batched, lanes), made, op.loc)
    with before(op, op.loc.through(PASS_NAME)):
        results = list(func.call(batched.function, op.args))
        for j, (result, is_batched) in enumerate(zip(op.results, batched.results)):
            if j in op.common and is_batched:
                raise UserError(f"result {j} of @{op.callee} differs from lane to lane, but is asked for once",
                                code="MLC0139", loc=op.loc, hint="give it an axis in out_axes")
            if j not in op.common and not is_batched:
                results[j] = broadcast_to(results[j], result.type.shape)
    op.replace_by(*results)


def batch(module: Module, request: BatchRequest, made: Lanes, asked: Loc) -> BatchedFunction:
    """The function that `request` asks for, and before it those that calls inside ask for; `made` is the memo.

    Walks wait while what they call is batched: calls are nested, Python's are not.
    """
    table = {f.sym_name: f for f in func.functions(module)}
    names = {str(op.attrs.get("sym_name")) for op in module.body.block}
    work: dict[BatchRequest, Walk] = {} if request in made else {request: _function(table, names, request, asked)}
    answer: BatchedFunction | None = None
    while work:
        current = next(reversed(work))
        try:
            wanted = work[current].send(answer)  # type: ignore[arg-type]
            if (answer := made.get(wanted)) is None:
                if wanted in work:
                    raise UserError(f"@{wanted.callee} calls itself: a recursive function cannot be batched",
                                    code="MLC0137", loc=table[wanted.callee].loc, notes=(_asked(asked),))
                work[wanted] = _function(table, names, wanted, asked)
        except StopIteration as stop:
            del work[current]
            answer = made[current] = stop.value
        except BaseException as error:
            _unwind(list(work.values()), error)
            raise
    return made[request]


def _unwind(walks: Sequence[Walk], error: BaseException) -> None:
    """Let walks leave the places where they insert, the last first."""
    for walk in reversed(walks):
        try:
            walk.throw(error)
        except BaseException as raised:
            if raised is not error:
                raise


def _asked(loc: Loc) -> str:
    return f"vmap is asked for at {loc}"


def _function(table: Mapping[Symbol, Func], names: set[str], request: BatchRequest, asked: Loc) -> Walk:
    """Batch one function, under a name that is none of `names`."""
    if request.callee not in table:
        raise UserError(f"@{request.callee} is not defined", code="MLC0106", loc=asked)
    function = table[request.callee]
    if len(function.body.blocks) != 1:
        raise UserError(f"@{function.sym_name} has branches between blocks, which cannot be batched", code="MLC0137",
                        loc=function.loc, notes=(_asked(asked),))
    source = function.clone()                    # in which composites are taken apart
    assert isinstance(source, Func)
    lanes: Dim = request.lanes if request.lanes is not None else sym(
        func.free_name("lanes", func.size_names(function)))
    live: list[Type] = [TensorType((lanes,), i1)] if request.masked else []
    types = [batched_type(a.type, lanes, asked) if i in request.batched else a.type for i, a in enumerate(source.args)]
    out = func.function("", [*live, *types], ["live"] * len(live) + [a.name for a in source.args], private=True)
    out.loc = function.loc.through(PASS_NAME)
    scope = Scope(out.args[0] if request.masked else None)
    for i, (arg, new) in enumerate(zip(source.args, out.args[len(live):])):
        scope.bind(arg, new, i in request.batched)
    with at_end(out.block):
        returned = yield from Batcher(lanes, asked, table).block(source.block, scope)
        with located(source.block.terminator.loc.through(PASS_NAME)):
            func.Return(tuple(v for v, _ in returned))
    module = function.parent
    assert module is not None
    out.sym_name = Symbol(func.free_name(f"{function.sym_name}_vmap", names))
    names.add(out.sym_name)
    out.update_type()
    if RECOMPUTE in function.attrs:
        out.attrs[RECOMPUTE] = function.attrs[RECOMPUTE]
    module.insert(out, function.next)
    flags = tuple(is_batched for _, is_batched in returned)
    if is_custom(function):
        yield from bring_rules(function, out, request, lanes, flags, table)
        out.update_type()
        flags = (True,) * len(flags)
    return BatchedFunction(out, flags)
