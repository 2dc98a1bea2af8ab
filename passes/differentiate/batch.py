"""differentiate, batch: vmap, which adds a batch axis to a function.

    f(x, w) -> y          f_vmap(xs, w) -> ys, where xs and ys have a leading batch axis

Values that depend on no batched argument stay unbatched. Functions are memoised by (callee, batched arguments, batch
size where it is static), and nested calls become calls of batched functions. batch_operations.py applies the
batching rules of operations, batch_control.py batches loops and conditionals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlc.dialects import func
from mlc.dialects.autodiff.attributes import RECOMPUTE, is_custom
from mlc.dialects.autodiff.batch import Vmap, check
from mlc.dialects.builtin import Module
from mlc.dialects.func import WRITTEN_AT, Func
from mlc.dialects.tensor.base import broadcast_to
from mlc.ir.core import Symbol, at_end, before, located
from mlc.ir.diag import Loc, UserError
from mlc.ir.sizes import Dim, sym
from mlc.ir.types import TensorType, Type, i1
from mlc.passes.differentiate.batch_control import Batcher
from mlc.passes.differentiate.batch_custom import bring_rules
from mlc.passes.differentiate.batch_operations import (
    PASS_NAME,
    BatchCoroutine,
    BatchedFunction,
    BatchRequest,
    BatchScope,
    batched_type,
)

BatchedFunctions = dict[BatchRequest, BatchedFunction]
"""Memo of batched functions."""


# -- expansion --------------------------------------------------------------------------------------------------------
def expand_vmap(op: Vmap, function: Func, module: Module, memo: BatchedFunctions) -> None:
    """Replace a `vmap` operation by a call of the batched function."""
    check(op, function)
    batch_size = op.batch_size if isinstance(op.batch_size, int) else None
    batched = batch(module, BatchRequest(op.callee, op.batched, batch_size), memo, op.loc)
    with before(op, op.loc.through(PASS_NAME)):
        results = list(func.call(batched.function, op.args))
        for j, (result, is_batched) in enumerate(zip(op.results, batched.results)):
            if j in op.common and is_batched:
                raise UserError(f"result {j} of @{op.callee} differs between batch elements, but is returned once",
                                code="MLC0139", loc=op.loc, hint="give it an axis in out_dims")
            if j not in op.common and not is_batched:
                results[j] = broadcast_to(results[j], result.type.shape)
    op.replace_by(*results)


def batch(module: Module, request: BatchRequest, memo: BatchedFunctions, asked: Loc) -> BatchedFunction:
    """The batched function for `request`; callees are batched first.

    The coroutine of a caller is suspended while its callee is batched, so nested calls need no recursion.
    """
    table = {f.sym_name: f for f in func.functions(module)}
    names = {str(op.attrs.get("sym_name")) for op in module.body.block}
    work: dict[BatchRequest, BatchCoroutine] = {} if request in memo else {
        request: _function(table, names, request, asked)}
    answer: BatchedFunction | None = None
    while work:
        current = next(reversed(work))
        try:
            wanted = work[current].send(answer)  # type: ignore[arg-type]
            if (answer := memo.get(wanted)) is None:
                if wanted in work:
                    raise UserError(f"@{wanted.callee} calls itself: a recursive function cannot be batched",
                                    code="MLC0137", loc=table[wanted.callee].loc, notes=(_asked(asked),))
                work[wanted] = _function(table, names, wanted, asked)
        except StopIteration as stop:
            del work[current]
            answer = memo[current] = stop.value
        except BaseException as error:
            _unwind(list(work.values()), error)
            raise
    return memo[request]


def _unwind(coroutines: Sequence[BatchCoroutine], error: BaseException) -> None:
    """Close the coroutines, innermost first, so that each restores its insertion point."""
    for walk in reversed(coroutines):
        try:
            walk.throw(error)
        except BaseException as raised:
            if raised is not error:
                raise


def _asked(loc: Loc) -> str:
    return f"vmap is requested at {loc}"


def _function(table: Mapping[Symbol, Func], names: set[str], request: BatchRequest, asked: Loc) -> BatchCoroutine:
    """Batch one function, under a name that is not in `names`."""
    if request.callee not in table:
        raise UserError(f"@{request.callee} is not defined", code="MLC0106", loc=asked)
    function = table[request.callee]
    if len(function.body.blocks) != 1:
        raise UserError(f"@{function.sym_name} has branches between blocks, which cannot be batched", code="MLC0137",
                        loc=function.loc, notes=(_asked(asked),))
    source = function.clone()                    # composites are decomposed in the clone
    assert isinstance(source, Func)
    batch_size: Dim = request.batch_size if request.batch_size is not None else sym(
        func.free_name("batch", func.size_names(function)))
    active: list[Type] = [TensorType((batch_size,), i1)] if request.predicated else []
    types = [batched_type(a.type, batch_size, asked) if i in request.batched else a.type
             for i, a in enumerate(source.args)]
    out = func.function("", [*active, *types], ["active"] * len(active) + [a.name for a in source.args], private=True)
    out.loc = function.loc.through(PASS_NAME)
    scope = BatchScope(out.args[0] if request.predicated else None)
    for i, (arg, new) in enumerate(zip(source.args, out.args[len(active):])):
        scope.bind(arg, new, i in request.batched)
    with at_end(out.block):
        returned = yield from Batcher(batch_size, asked, table).block(source.block, scope)
        with located(source.block.terminator.loc.through(PASS_NAME)):
            func.Return(tuple(v for v, _ in returned))
    module = function.parent
    assert module is not None
    out.sym_name = Symbol(func.free_name(f"{function.sym_name}_vmap", names))
    names.add(out.sym_name)
    out.update_type()
    out.attrs.update({name: function.attrs[name] for name in (RECOMPUTE, WRITTEN_AT) if name in function.attrs})
    module.insert(out, function.next)
    flags = tuple(is_batched for _, is_batched in returned)
    if is_custom(function):
        yield from bring_rules(function, out, request, batch_size, flags, table)
        out.update_type()
        flags = (True,) * len(flags)
    return BatchedFunction(out, flags)
