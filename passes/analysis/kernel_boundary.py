"""Operations between kernels: calls, loops, conditions, scalars, views, constants. For fuse and bufferize.

Fusion works on one block at a time: that of a function, and those inside loops and conditions. An operation between
kernels stays where its operands and readers let it. What a block hands over comes from an operation of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mlc.dialects import func, scf
from mlc.dialects import tensor as tn
from mlc.dialects.tensor.kernel import Kernel
from mlc.ir.core import Block, Op, Value
from mlc.ir.sizes import symbols
from mlc.ir.types import TensorType
from mlc.passes.analysis.size_constraints import op_sizes

REGIONS = (scf.For, scf.If, scf.While)
"""Operations whose regions hold kernels."""
GIVES_TENSORS = (Kernel, func.Call, *REGIONS, tn.FromScalar)
"""Operations that write their results to buffers which they are given."""


def blocks_of(function: func.Func) -> list[Block]:
    """The blocks of a function that hold kernels, in order, those inside others first."""
    out: list[Block] = []
    work = [function.block]
    while work:
        out.append(work.pop())
        work += [b for op in out[-1] if isinstance(op, REGIONS) for region in op.regions for b in region.blocks]
    return out[::-1]


def reads(op: Op) -> Iterator[Value]:
    """The operands of an operation and of all inside it."""
    for inner in op.walk() if op.regions else (op,):
        yield from inner.operands


def has_size(op: Op, name: str) -> bool:
    """Whether a size that an operation, or one inside it, has or reads depends on the symbol `name`."""
    for inner in op.walk() if op.regions else (op,):
        types = [v.type for v in inner.operands if isinstance(v.type, TensorType)]
        if any(name in symbols(d) for d in (*op_sizes(inner), *(d for t in types for d in t.shape))):
            return True
    return False


def following(op: Op) -> Iterator[Op]:
    """The operations after one in its block."""
    later = op.next
    while later is not None:
        yield later
        later = later.next


def sink(block: Block, is_free: Callable[[Op], bool]) -> None:
    """Give a block its own copies of the free operations around it that have no operands: memory would cost more."""
    copies: dict[Op, Value] = {}
    for op in list(block):
        for i, v in enumerate(op.operands):
            source = v.op
            if source is not None and source.parent is not block and not source.operands and is_free(source):
                if source not in copies:
                    copy = source.clone()
                    block.insert(copy, block.first)
                    copies[source] = copy.results[0]
                op.set_operand(i, copies[source])


def move(op: Op, mapping: dict[Value, Value], target: Op) -> None:
    """Put an operation before another one of its block, with the operands that `mapping` gives for the old ones."""
    for inner in list(op.walk()):
        for i, v in enumerate(inner.operands):
            if v in mapping:
                inner.set_operand(i, mapping[v])
    op.detach()
    assert target.parent is not None
    target.parent.insert(op, target)


def finish(terminator: Op, mapping: dict[Value, Value], copy: Callable[[Value], Value]) -> None:
    """Let every tensor that a block hands over come from an operation of its own; `copy` makes one for what does not.

    What a loop carries may stay as it is.
    """
    terminator.set_operands([mapping.get(v, v) for v in terminator.operands], terminator.segments)
    for i, own in enumerate(list(hands_over_its_own(terminator))):
        if not own:
            terminator.set_operand(i, copy(terminator.operands[i]))


def hands_over_its_own(terminator: Op) -> Iterator[bool]:
    """For each operand of a terminator, whether its buffer can be the one that waits for it."""
    seen: set[Value] = set()
    for i, v in enumerate(terminator.operands):
        own = isinstance(v.op, GIVES_TENSORS) and v.op.parent is terminator.parent
        yield not isinstance(v.type, TensorType) or (v not in seen and (own or stays(terminator, i, v)))
        seen.add(v)


def stays(terminator: Op, i: int, v: Value) -> bool:
    """Whether operand `i` of a terminator hands over what lies in the right buffer already."""
    loop = terminator.parent_op
    if isinstance(loop, scf.For):
        return v is loop.carried[i]
    if isinstance(terminator, scf.Condition):
        return v in terminator.parent.args  # type: ignore[union-attr]
    if isinstance(loop, scf.While):
        before = loop.before.block
        return any(v is arg and given is before.args[i]
                   for arg, given in zip(loop.after.block.args, before.terminator.operands[1:]))
    return False
