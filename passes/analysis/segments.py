"""The segments of a rank's program: what it computes between collectives."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlc.dialects import shard
from mlc.dialects.func import Func
from mlc.ir.core import Op, Value
from mlc.passes.analysis.free_values import free_values


def is_between_segments(op: Op) -> bool:
    """Whether an operation is carried out by the caller of the segments."""
    return isinstance(op, shard.Collective | shard.ProcessIndex | shard.Wait | shard.After)


def is_ordered(function: Func) -> bool:
    """Whether the operations of a function are in the order in which they run, as where collectives overlap with
    them."""
    return any(isinstance(op, shard.Wait) for op in function.block)


@dataclass(frozen=True)
class Segments:
    """The segments of a function: as few as possible, with each operation in the first that its operands allow; in a
    function whose operations are ordered, those between two collectives, or parts of these.

    number  the segment of each operation that is computed
    ready   for each value, the first segment that can use it, besides the one that computes it
    """

    number: dict[Op, int] = field(default_factory=dict)
    ready: dict[Value, int] = field(default_factory=dict)

    @staticmethod
    def of(function: Func) -> Segments:
        """The segments of a function."""
        out = Segments()
        number, ready = out.number, out.ready
        ordered, last, ended = is_ordered(function), 0, False
        for op in function.block:
            if op.terminator:
                continue
            if is_between_segments(op):
                ready |= dict.fromkeys(op.results, max((ready.get(v, 0) for v in op.operands), default=0))
                ended = ended or not isinstance(op, shard.ProcessIndex)
                continue
            if ordered:
                first = last = last + 1 if ended and number else last
                ended = False
            else:
                first = max((number[v.op] if v.op in number else ready.get(v, 0) for v in free_values(op)), default=0)
            number[op] = first
            ready |= dict.fromkeys(op.results, first + 1)
        return out
