"""Symbol tables: lookup of operations by name."""

from __future__ import annotations

from mlc.ir.core import Op


def nearest_table(op: Op) -> Op | None:
    """The nearest symbol table among `op` and its ancestors."""
    at: Op | None = op
    while at is not None and not at.symbol_table:
        at = at.parent_op
    return at


def lookup(table: Op, name: str) -> Op | None:
    """The first operation of a symbol table that has this name.

    An index avoids a linear search. The table may change at any time, so an entry of the index is validated before use,
    and a stale index is rebuilt.
    """
    region = table.regions[0]
    found = region.symbols.get(name)
    if found is None or found.parent is not region.block or found.attrs.get("sym_name") != name:
        region.symbols.clear()
        for op in region.block:
            if (symbol := op.attrs.get("sym_name")) is not None:
                region.symbols.setdefault(symbol, op)
        found = region.symbols.get(name)
    return found
