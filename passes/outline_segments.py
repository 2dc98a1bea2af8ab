"""Outline what a rank computes between collectives into functions of their own.

takes  PARTITIONED
gives  PARTITIONED, in which @main has only collectives, the rank's position, and calls of functions @main_segment_N
why    a segment is compiled like any program; the collectives between them are carried out by whoever calls them

An operation is in the first segment that its operands allow, so there are as few as possible: in that of the operations
that compute them, or after the collectives that they come from. Where collectives overlap with computation
(`overlap_collectives`), segments are what is between them in the order of the function. What costs nothing, such as a
constant, is computed in each segment that uses it. A slice that depends on the rank's position is computed
in the segments, from that position, so that all ranks have the same code.
"""

from __future__ import annotations

from mlc.dialects import func, shard, tensor
from mlc.dialects.func import Func
from mlc.dialects.shard.mesh import Axes
from mlc.dialects.tensor.traits import is_free
from mlc.ir.core import Op, OpResult, Symbol, Value, at_end, before
from mlc.ir.passes import Pass
from mlc.ir.types import TensorType, i64
from mlc.passes.analysis.dependence_order import restore_dominance
from mlc.passes.analysis.free_values import free_values
from mlc.passes.analysis.segment_cost import bytes_of
from mlc.passes.analysis.segments import Segments, is_between_segments, is_ordered
from mlc.passes.forms import PARTITIONED


def run(module: Op) -> None:
    """Outline the segments of every function that has a mesh."""
    for function in list(module.inside(Func)):
        if "partitioned" in function.attrs and "position" not in function.attrs:
            ordered = is_ordered(function)
            _slice_by_position(function)
            _compute_again(function)
            for number, ops in _by_number(Segments.of(function)).items():
                _outline(function, number, ops, ordered)
            for op in reversed(list(function.block)):      # scalars, which each segment has for itself
                if not op.terminator and op.pure and not any(r.uses for r in op.results):
                    op.erase()
            if not ordered:
                restore_dominance(function.block, early=is_between_segments)


def _by_number(segments: Segments) -> dict[int, list[Op]]:
    """The operations of each segment, in order."""
    out: dict[int, list[Op]] = {number: [] for number in sorted(set(segments.number.values()))}
    for op, number in segments.number.items():
        out[number].append(op)
    return out


def _slice_by_position(function: Func) -> None:
    """Replace slices of what every rank has by slices at the rank's position."""
    positions: dict[Axes, OpResult] = {}
    for op in [op for op in function.block if isinstance(op, shard.AllSlice)]:
        with before(op, op.loc):
            size = tensor.Full(op.result.type.shape[op.axis], (), i64).result
            if op.axes not in positions:
                positions[op.axes] = shard.ProcessIndex(op.mesh, op.axes).result
                positions[op.axes].op.move_before(next(iter(function.block)))
            at = tensor.Mul(positions[op.axes], size).result
            zero = tensor.Full(0, (), i64).result
            starts = tuple(at if axis == op.axis else zero for axis in range(op.x.type.rank))
            op.replace_by(tensor.DynamicSlice(op.x, starts, op.result.type.shape).result)


def _compute_again(function: Func) -> None:
    """Have each segment compute what costs nothing and is no longer than its operands."""
    number = Segments.of(function).number
    for op in reversed(list(function.block)):
        if not is_free(op) or not op.pure or len(op.results) != 1 or sum(map(bytes_of, op.operands)) > bytes_of(
                op.results[0]):
            continue
        copies: dict[int, Value] = {}
        for user in [o for o in function.block if o in set(op.result.users)]:
            at = number.get(user, number[op])
            if at == number[op]:
                continue
            if at not in copies:
                with before(user, op.loc):
                    copy = op.insert_clone({})
                number[copy], copies[at] = at, copy.result
            for i, v in enumerate(user.operands):
                if v is op.result:
                    user.set_operand(i, copies[at])


def _outline(function: Func, number: int, ops: list[Op], ordered: bool) -> None:
    """Replace the operations of a segment by a call: in an ordered function at their place, otherwise at its end."""
    inside = set(ops)
    place = ops[0] if ordered else function.block.terminator
    ops = [*_scalars(ops), *ops]
    own = {r for op in ops for r in op.results}
    takes = list(dict.fromkeys(v for op in ops for v in free_values(op) if v not in own))
    gives = [r for op in ops for r in op.results if op in inside and isinstance(r.type, TensorType)
             and any(function.block.ancestor_of(user) not in inside for user in r.users)]
    name = Symbol(f"{function.sym_name}_segment_{number}")
    made = func.function(name, [v.type for v in takes], [v.name for v in takes])
    mapping: dict[Value, Value] = dict(zip(takes, made.args))
    with at_end(made.block):
        for op in ops:
            made.block.insert(op.clone(mapping))
        func.Return(tuple(mapping[v] for v in gives))
    made.update_type()
    with before(place, ops[0].loc):
        call = func.Call(name, tuple(takes), tuple(v.type for v in gives))
    for old, new in zip(gives, call.results):
        new.name = old.name
        for user, i in list(old.uses):
            if function.block.ancestor_of(user) not in inside:
                user.set_operand(i, new)
    for op in reversed([op for op in ops if op in inside]):
        if not any(r.uses for r in op.results):            # else it computes a scalar of a later segment, too
            op.erase()
    assert function.parent is not None
    function.parent.insert(made, function)


def _scalars(ops: list[Op]) -> list[Op]:
    """The operations for the scalars that some operations take from earlier segments: they are computed again."""
    own, out = {r for op in ops for r in op.results}, list[Op]()
    work = [v for op in ops for v in free_values(op)]
    while work:
        v = work.pop()
        if v.op is not None and v not in own and not isinstance(v.type, TensorType):
            own |= set(v.op.results)
            out.append(v.op)
            work += free_values(v.op)
    return out[::-1]


PASS = Pass(run, takes=PARTITIONED, gives=PARTITIONED, whole=False)
