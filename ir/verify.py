"""The verifier: rules that hold for modules of every level."""

from __future__ import annotations

from mlc.ir.core import Block, Op, Region, Symbol, Value


def verify(root: Op) -> None:
    """Raise IRError for the first violated rule: types, dominance, terminators, symbols, and each op's own."""
    _op(root, set(), None)


def _symbols(table: Op) -> frozenset[str]:
    """The names that a symbol table defines; IRError for a duplicate."""
    names: set[str] = set()
    for op in table.regions[0].block:
        name = op.attrs.get("sym_name")
        if name is None:
            continue
        if name in names:
            op.fail(f"@{name} is defined twice", code="MLC0105")
        names.add(name)
        if op.symbol_table:
            names |= {f"{name}::{inner.attrs['sym_name']}" for inner in op.regions[0].block
                      if "sym_name" in inner.attrs}
    return frozenset(names)


def _op(op: Op, visible: set[Value], symbols: frozenset[str] | None) -> None:
    """Check an operation, given the values that dominate it and the nearest symbol table, if there is one."""
    for i, value in enumerate(op.operands):
        if value not in visible:
            op.fail(f"operand {i} does not dominate this use", code="MLC0103")
        if (op, i) not in value.uses:
            op.fail(f"this use is missing from the use list of operand {i}", code="MLC0107")
    op.check_counts()
    inferred = op.inferred()
    declared = tuple([r.type for r in op.results])
    if inferred != declared:
        op.fail(f"result types {', '.join(map(str, declared))} are not the {', '.join(map(str, inferred))} "
                "that the operands give", code="MLC0102")
    if op.symbol_table:
        symbols = _symbols(op)
    elif symbols is not None:
        for attr in op.attrs.values():
            if isinstance(attr, Symbol) and attr not in symbols:
                op.fail(f"@{attr} is not defined", code="MLC0106")
    for region in op.regions:
        if region.parent is not op:
            op.fail("a region belongs to another operation", code="MLC0107")
        _region(op, region, set() if op.isolated else visible, symbols)
    op.verify_op()


def _region(op: Op, region: Region, visible: set[Value], symbols: frozenset[str] | None) -> None:
    """Check the blocks of a region; `visible` is restored on return."""
    if len(region.blocks) <= 1:
        for block in region.blocks:
            visible.difference_update(_block(op, block, visible, symbols))
        return
    dominated: dict[Block | None, list[Block]] = {}
    dominators = immediate_dominators(region)
    for block, dominator in dominators.items():
        dominated.setdefault(dominator, []).append(block)
    work: list[Block | list[Value]] = [region.blocks[0]]     # a block to enter, or the values of one to leave
    while work:
        item = work.pop()
        if isinstance(item, list):
            visible.difference_update(item)
        else:
            work.append(_block(op, item, visible, symbols))
            work += reversed(dominated.get(item, []))
    for block in region.blocks:
        if block not in dominators:
            op.fail("a block is unreachable", code="MLC0104")


def _block(parent: Op, block: Block, visible: set[Value], symbols: frozenset[str] | None) -> list[Value]:
    """Check a block; the values that it defines are added to `visible` and returned."""
    defined: list[Value] = list(block.args)
    visible.update(defined)
    for op in block:
        if op.parent is not block:
            op.fail("the block does not own this operation", code="MLC0107")
        if op.terminator and op.next is not None:
            op.fail("a terminator must be the last operation of its block", code="MLC0104")
        _op(op, visible, symbols)
        visible.update(op.results)
        defined += op.results
    assert block.region is not None
    needs_terminator = len(block.region.blocks) > 1 or (not parent.symbol_table and parent.regions)
    if needs_terminator and (block.last is None or not block.last.terminator):
        parent.fail("a block does not end in a terminator", code="MLC0104")
    return defined


def immediate_dominators(region: Region) -> dict[Block, Block | None]:
    """The immediate dominator of each reachable block, None for the entry; in reverse postorder.

    K. Cooper, T. Harvey, K. Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
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
            processed = [p for p in predecessors[b] if p in idom]
            new = processed[0]
            for p in processed[1:]:
                while new is not p:
                    while number[p] > number[new]:
                        p = idom[p]
                    while number[new] > number[p]:
                        new = idom[new]
            if idom.get(b) is not new:
                idom[b] = new
                changed = True
    return {b: (None if b is order[0] else idom[b]) for b in order}
