"""Symbol tables: which operation a name stands for."""

from __future__ import annotations

from mlc.ir.core import Op


def nearest_table(op: Op) -> Op | None:
    """The closest operation around `op`, or `op` itself, that names others."""
    at: Op | None = op
    while at is not None and not at.symbol_table:
        at = at.parent_op
    return at


def lookup(table: Op, name: str) -> Op | None:
    """The first operation of a symbol table that has this name.

    An index finds it without a search. The table may change at any time, so what the index says is looked at before it
    is believed, and the index is made anew where it is wrong.
    """
    region = table.regions[0]
    found = region.symbols.get(name)
    if found is None or found.parent is not region.block or found.attrs.get("sym_name") != name:
        region.symbols.clear()
        for op in region.block:
            if (known := op.attrs.get("sym_name")) is not None:
                region.symbols.setdefault(known, op)
        found = region.symbols.get(name)
    return found
