"""The verifier: what must hold of every module, whatever its level."""

from __future__ import annotations

from collections.abc import Iterator

from mlc.ir.core import Block, Op, Region, Symbol, Value


def verify(root: Op) -> None:
    """Raise IRError at the first rule that is broken: types, dominance, terminators, symbols, and each op's own."""
    _symbols(root)
    _op(root, set())


def _symbols(root: Op) -> None:
    """Names in one symbol table are unique, and every reference finds its function or global."""
    tables = [op for op in root.walk() if op.symbol_table]
    for table in tables:
        seen: set[str] = set()
        for op in table.regions[0].block:
            name = op.attrs.get("sym_name")
            if name is None:
                continue
            if name in seen:
                op.fail(f"@{name} is defined twice", code="MLC0105")
            seen.add(name)
            if op.symbol_table:
                seen |= {f"{name}::{inner.attrs['sym_name']}" for inner in op.regions[0].block
                         if "sym_name" in inner.attrs}
        for op in _below(table):
            for value in op.attrs.values():
                if isinstance(value, Symbol) and value not in seen:
                    op.fail(f"@{value} is not defined", code="MLC0106")


def _below(table: Op) -> Iterator[Op]:
    """The operations for which `table` is the nearest symbol table."""
    work = [op for region in table.regions for block in region.blocks for op in block]
    while work:
        op = work.pop()
        if not op.symbol_table:
            yield op
            work += [inner for region in op.regions for block in region.blocks for inner in block]


def _op(op: Op, visible: set[Value]) -> None:
    for i, value in enumerate(op.operands):
        if value not in visible:
            op.fail(f"operand {i} is used where its definition does not reach", code="MLC0103")
        if (op, i) not in value.uses:
            op.fail(f"operand {i} does not know of this use", code="MLC0107")
    op._check_counts()
    inferred = op._infer()
    declared = tuple(r.type for r in op.results)
    if inferred != declared:
        op.fail(f"result types {', '.join(map(str, declared))} are not the {', '.join(map(str, inferred))} "
                "that the operands give", code="MLC0102")
    for region in op.regions:
        if region.parent is not op:
            op.fail("a region belongs to another operation", code="MLC0107")
        _region(op, region, set() if op.isolated else visible)
    op.verify_op()
    visible.update(op.results)


def _region(op: Op, region: Region, visible: set[Value]) -> None:
    if len(region.blocks) <= 1:
        for block in region.blocks:
            _block(op, block, set(visible))
        return
    dominators = immediate_dominators(region)
    defined: dict[Block, set[Value]] = {}
    for block in dominators:                        # in reverse postorder: a dominator comes first
        parent = dominators[block]
        scope = set(visible) if parent is None else set(defined[parent])
        _block(op, block, scope)
        defined[block] = scope
    for block in region.blocks:
        if block not in dominators:
            op.fail("a block cannot be reached", code="MLC0104")


def _block(parent: Op, block: Block, scope: set[Value]) -> None:
    scope.update(block.args)
    for op in block:
        if op.parent is not block:
            op.fail("the block does not own this operation", code="MLC0107")
        if op.terminator and op.next is not None:
            op.fail("a terminator stands before the end of its block", code="MLC0104")
        _op(op, scope)
    assert block.region is not None
    needs_terminator = len(block.region.blocks) > 1 or (not parent.symbol_table and parent.regions)
    if needs_terminator and (block.last is None or not block.last.terminator):
        parent.fail("a block does not end in a terminator", code="MLC0104")


def immediate_dominators(region: Region) -> dict[Block, Block | None]:
    """The closest block that every path from the entry to a block goes through, in reverse postorder.

    K. Cooper, T. Harvey, K. Kennedy, "A Simple, Fast Dominance Algorithm", 2001. Unreachable blocks are left out.
    """
    order: list[Block] = []
    seen = {region.blocks[0]}
    work = [(region.blocks[0], 0)]
    while work:
        block, i = work.pop()
        successors = block.last.successors if block.last is not None else []
        if i < len(successors):
            work.append((block, i + 1))
            if successors[i] not in seen:
                seen.add(successors[i])
                work.append((successors[i], 0))
        else:
            order.append(block)
    order.reverse()
    number = {b: i for i, b in enumerate(order)}
    predecessors: dict[Block, list[Block]] = {b: [] for b in order}
    for b in order:
        for s in b.last.successors if b.last is not None else []:
            predecessors[s].append(b)
    idom: dict[Block, Block] = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for b in order[1:]:
            known = [p for p in predecessors[b] if p in idom]
            new = known[0]
            for p in known[1:]:
                while new is not p:
                    while number[p] > number[new]:
                        p = idom[p]
                    while number[new] > number[p]:
                        new = idom[new]
            if idom.get(b) is not new:
                idom[b] = new
                changed = True
    return {b: (None if b is order[0] else idom[b]) for b in order}
