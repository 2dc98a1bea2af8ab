"""Lowering of scf to blocks and branches, of calls and of function returns."""

from __future__ import annotations

from mlc.dialects import func, llvm, scf
from mlc.ir.core import Value
from mlc.ir.diag import BackendError
from mlc.ir.types import MemRefType
from mlc.passes.lower_to_llvm.lowering import Lowering, Parts, convert, convert_all, rule


@rule(scf.For)
def _for(low: Lowering, op: scf.For) -> list[Parts]:
    """head(i, x): if i < upper, body(i, x), then back with (i + step, y); else after, where x are the results."""
    counter, = convert(op.lower.type)
    carried = convert_all([v.type for v in op.init])
    head, body, after = low.new_block([counter, *carried]), low.new_block(), low.new_block()
    upper, step = low.one(op.upper), low.one(op.step)
    llvm.Br((low.one(op.lower), *low.all(op.init)), head)
    low.block = head
    with low.at(op):
        llvm.CondBr(llvm.ICmp("slt", head.args[0], upper).result, (), (), body, after)
    low.block = body
    values = low.region(op.body, head.args)
    with low.at(op.block.terminator):
        llvm.Br((llvm.Add(head.args[0], step).result, *values), head)
    _move_last(low, after)
    low.block = after
    return _grouped(op, list(head.args[1:]))


@rule(scf.While)
def _while(low: Lowering, op: scf.While) -> list[Parts]:
    """head(x): before(x) decides; after(y) goes back to the head."""
    head = low.new_block(convert_all([v.type for v in op.init]))
    body, after = low.new_block(), low.new_block()
    llvm.Br(tuple(low.all(op.init)), head)
    low.block = head
    going, *values = low.region(op.before, head.args)
    with low.at(op):
        llvm.CondBr(going, (), (), body, after)
    low.block = body
    next_values = low.region(op.after, values)
    with low.at(op.after.block.terminator):
        llvm.Br(tuple(next_values), head)
    _move_last(low, after)
    low.block = after
    return _grouped(op, values)


@rule(scf.If)
def _if(low: Lowering, op: scf.If) -> list[Parts]:
    """Two blocks that meet in a third, whose arguments are the results."""
    yes, after = low.new_block(), low.new_block(convert_all([r.type for r in op.results]))
    no = low.new_block() if op.else_body.blocks else after
    llvm.CondBr(low.one(op.condition), (), (), yes, no)
    for block, region in ((yes, op.then_body), (no, op.else_body)):
        if not region.blocks:
            continue
        low.block = block
        values = low.region(region, [])
        with low.at(region.block.terminator):
            llvm.Br(tuple(values), after)
    _move_last(low, after)
    low.block = after
    return _grouped(op, list(after.args))


def _move_last(low: Lowering, block: object) -> None:
    """Move a block to the end: blocks are ordered as they are filled."""
    blocks = low.function.body.blocks
    blocks.append(blocks.pop(next(i for i in range(len(blocks) - 1, -1, -1) if blocks[i] is block)))


def _grouped(op: scf.For | scf.If | scf.While, parts: list[Value]) -> list[Parts]:
    """Group a flat list of parts by result."""
    out, at = [], 0
    for result in op.results:
        count = len(convert(result.type))
        out.append(parts[at: at + count])
        at += count
    return out


@rule(func.Call)
def _call(low: Lowering, op: func.Call) -> list[Parts]:
    callee = low.functions[op.callee]
    result = llvm.call(callee, low.all(op.args))
    types = convert_all([r.type for r in op.results])
    if len(types) < 2:
        parts = [] if result is None else [result]
    else:
        assert result is not None
        parts = [llvm.ExtractValue(result, (i,)).result for i in range(len(types))]
    return _grouped(op, parts)  # type: ignore[arg-type]


def lower_return(low: Lowering, op: func.Return) -> None:
    """Several values are returned as one struct."""
    parts = low.all(op.values)
    with low.at(op):
        if len(parts) < 2:
            llvm.Return(parts[0] if parts else None)
            return
        type = low.function.function_type.result
        assert type is not None
        whole = llvm.Poison(type).result
        for i, part in enumerate(parts):
            whole = llvm.InsertValue(whole, part, (i,)).result
        llvm.Return(whole)


def declare(function: func.Func, internal: bool) -> llvm.Func:
    """The function with unpacked arguments and an empty entry block, or none if it is declared only; detached."""
    for type in function.function_type.results:
        if isinstance(type, MemRefType):
            raise BackendError(f"@{function.sym_name} returns a {type}; results are written to memory of the caller",
                               code="MLC0545", loc=function.loc)
    params, results = convert_all(function.function_type.inputs), convert_all(function.function_type.results)
    if function.is_declaration:
        out = llvm.declaration(function.sym_name, params, llvm.function_result(results))
    else:
        out = llvm.function(function.sym_name, params, results, linkage="internal" if internal else "external")
    out.loc = function.loc
    return out
