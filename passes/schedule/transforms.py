"""The steps a schedule is made of. Each changes a kernel in place, records itself there, and changes no bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlc.dialects import loop
from mlc.dialects.loop import For, Kernel, ScratchType
from mlc.ir.core import Block, Op, Region, Value, at_end, before, builder


def record(kernel: Kernel, step: str, **arguments: object) -> None:
    text = ", ".join(f"{k}={v}" for k, v in arguments.items() if v not in (False, 0))
    kernel.reschedule(steps=(*kernel.schedule.steps, f"{step}({text})"))


def block(kernel: Kernel, dim: int, size: int, vector: bool = False, lanes: int = 0) -> None:
    """Let each block hold `size` points along dimension `dim`; `vector` puts them in registers of so many lanes."""
    kernel.reschedule(tile=kernel.schedule.with_tile(dim, size))
    if vector:
        kernel.reschedule(vector=dim, lanes=lanes if lanes != size else 0)
    arguments: dict[str, object] = {"dim": f"{dim}", "size": size, "vector": vector, "lanes": lanes}
    record(kernel, "block", **arguments)


def unroll(kernel: Kernel, dim: int, size: int) -> None:
    """Let the innermost loops over `dim` take `size` points at a time."""
    for op in list(kernel.inside(For)):
        if op.dim == dim and not op.is_ranged:
            if op.outer() is None:
                kernel.reschedule(tile=kernel.schedule.with_tile(dim, size))
            else:
                op.size = size
    record(kernel, "unroll", dim=f"{dim}", size=size)


def walk(kernel: Kernel, dim: int, size: int) -> None:
    """Go through each block of a parallel dimension in smaller ones, in a loop around all that is done in it."""
    _walk(kernel.body.block, dim, size)
    record(kernel, "walk", dim=f"{dim}", size=size)


def _walk(body: Block, dim: int, size: int) -> None:
    run: list[Op] = []
    for op in body.ops:
        ranged = isinstance(op, For) and op.is_ranged
        if not (op.terminator or ranged or isinstance(op, loop.Scratch)):
            run.append(op)
            continue
        if run:
            _wrap(run, dim, size)
            run = []
        if ranged:
            _walk(op.regions[0].block, dim, size)


def _wrap(run: Sequence[Op], dim: int, size: int) -> None:
    """Put neighbouring operations into a loop."""
    inside = Block()
    with before(run[0]):
        with at_end(inside, run[0].loc):
            end = loop.Yield(())
        For((), Region(inside), dim=dim, size=size)
    for op in run:
        op.move_before(end)


# -- sums in parts ----------------------------------------------------------------------------------------------------
def contraction(kernel: Kernel) -> tuple[For, loop.Contract | loop.Mma]:
    """The loop of the one contraction of a kernel, and the contraction."""
    op = next(op for op in kernel.walk() if isinstance(op, loop.Contract | loop.Mma))
    around = op.parent_op
    assert isinstance(around, For)
    return around, op


def keep_total(kernel: Kernel) -> None:
    """Of a sum in blocks, keep the total of every result in memory, not in registers beside the sum of a block.

    What stands in a kernel's body apart from the sum comes after all of it.
    """
    sum, contract = contraction(kernel)
    blocks = sum.parent_op
    assert isinstance(blocks, For) and blocks.dim == contract.dim and blocks.parent_op is kernel
    start, total = blocks.operands[0], blocks.body.block.args[0]
    outer, room = Block(), scratch_for(kernel, contract.result)
    later = before_last(kernel, blocks, start.op)
    with before(blocks):
        loop.Keep(start, room)
        with at_end(outer, blocks.loc):
            mapping: dict[Value, Value] = {}
            copy_slice([v for op in blocks.walk() for v in op.operands], later, mapping)
            for op in blocks.body.block:
                if op.terminator:
                    loop.Keep(mapping[op.operands[0]], room)
                    loop.Yield(())
                else:
                    if total in op.operands:
                        mapping[total] = loop.Recall(room).result
                    op.insert_clone(mapping)
        For((), Region(outer), dim=contract.dim)
        whole = loop.Recall(room)
    blocks.replace_by(whole.result)
    move_after(whole, later)
    record(kernel, "keep_total")


def split_sum(kernel: Kernel, size: int) -> None:
    """Add up `size` terms of every result of the block, then the next; what has been added so far is kept between.

    What stands around the sum apart from it comes after all of it.
    """
    sum, contract = contraction(kernel)
    start, around = sum.operands[0], sum.parent_op
    inside = around is not kernel                        # a sum in blocks: of each of them
    outer, room = Block(), scratch_for(kernel, contract.result)
    later = before_last(around, sum, start.op)
    with before(sum):
        loop.Keep(start, room)
        with at_end(outer, sum.loc):
            mapping: dict[Value, Value] = {}
            copy_slice([v for op in sum.walk() for v in op.operands], later, mapping)
            mapping[start] = loop.Recall(room).result
            loop.Keep(sum.insert_clone(mapping).results[0], room)
            loop.Yield(())
        For((), Region(outer), dim=contract.dim, size=size if inside else 0)
        total = loop.Recall(room)
    sum.replace_by(total.result)
    move_after(total, later)
    if not inside:
        kernel.reschedule(tile=kernel.schedule.with_tile(contract.dim, size))
    record(kernel, "split_sum", dim=f"{contract.dim}", size=size)


def scratch_for(kernel: Kernel, tile: Value) -> Value:
    """Memory for a tile, at the start of the kernel; its vector dimension lies side by side."""
    order = sorted(tile.type.dims, key=lambda d: (d == kernel.schedule.vector, d))
    assert kernel.body.block.first is not None
    with before(kernel.body.block.first):
        return loop.Scratch(ScratchType(tuple(order), tile.type.dtype)).result


def before_last(around: Op | None, last: Op, start: Op | None) -> list[Op]:
    """Operations of a body before `last`, without the initial value of a sum and scratch memory."""
    assert around is not None
    ops = around.regions[0].block.ops
    return [op for op in ops[: ops.index(last)] if op is not start and not isinstance(op, loop.Scratch)]


def move_after(op: Op, moved: Sequence[Op]) -> None:
    """Put operations after `op`, in their order."""
    for m in moved:
        m.detach()
        assert op.parent is not None
        op.parent.insert(m, op.next)
        op = m


def copy_slice(values: Sequence[Value], among: Sequence[Op], mapping: dict[Value, Value]) -> None:
    """Copy here those operations of a list that values are computed from."""
    needed, work = set[Op](), [v.op for v in values]
    here = {*among}
    while work:
        op = work.pop()
        if op in here and op not in needed:
            needed.add(op)
            work += [v.op for inner in op.walk() for v in inner.operands]
    for op in among:
        if op in needed:
            op.insert_clone(mapping)


# -- packing ----------------------------------------------------------------------------------------------------------
def pack(kernel: Kernel, side: str, vector: int, size: int = 0) -> None:
    """Copy a factor of the contraction into scratch memory, in the order in which it is read, before it is read again.

    `side` is lhs or rhs. The copy lies side by side along dimension `vector`, and takes `size` points at a time: of
    `vector` where that is no block yet, else of the sum's dimension.
    """
    _, contract = contraction(kernel)
    factor: Value = getattr(contract, side)
    loops = enclosing_loops(contract)
    target = next(op for op in loops if op.dim not in factor.type.dims)
    below = loops[loops.index(target) + 1:]
    dims = sorted(factor.type.dims, key=lambda d: (d == vector, d < kernel.parallel, d))
    walked = [d for d in dims if any(op.dim == d for op in below)]
    source = [op for op in target.walk() if isinstance(op, loop.InKernel) and not isinstance(op, For)]
    with before(target, contract.loc):
        room = loop.Scratch(ScratchType(tuple(dims), factor.type.dtype)).result

        def fill() -> None:
            mapping: dict[Value, Value] = {}
            copy_slice([factor], source, mapping)
            loop.Keep(mapping[factor], room)

        nested(kernel, walked, vector, contract.dim, size, fill)
    with before(contract):
        copied = loop.Recall(room).result
    for i, v in enumerate(contract.operands):
        if v is factor and i == (1 if side == "lhs" else 2):
            contract.set_operand(i, copied)
    drop_unused(contract)
    arguments: dict[str, object] = {"side": side, "vector": f"{vector}", "size": size}
    record(kernel, "pack", **arguments)


def nested(kernel: Kernel, dims: Sequence[int], vector: int, summed: int, size: int,
           fill: Callable[[], None]) -> None:
    """Loops over dimensions, and `fill` inside."""
    if not dims:
        fill()
        return
    d, inside = dims[0], Block()
    own = d == vector and vector != kernel.schedule.vector
    with at_end(inside, builder.loc):
        nested(kernel, dims[1:], vector, summed, size, fill)
        loop.Yield(())
    sized = own or (d == summed and vector == kernel.schedule.vector)
    For((), Region(inside), dim=d, size=size if sized else 0, vector=own)


def enclosing_loops(op: Op) -> list[For]:
    """The loops around an operation, outer before inner."""
    out: list[For] = []
    while isinstance(op := op.parent_op, For):  # type: ignore[assignment]
        out.insert(0, op)
    return out


def drop_unused(contract: loop.Contract | loop.Mma) -> None:
    """Remove what the loop of a contraction computed for a factor that is read from elsewhere now."""
    assert contract.parent is not None
    for op in reversed(contract.parent.ops):
        if op.results and not op.terminator and not any(r.uses for r in op.results):
            op.erase()
