"""Arrays of which more is said than what their items are: that these differ, or that some are of a kind."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.models.constraints.expressions import Expression, Graph, Rule, sequence

MOST_DIFFERENT = 8
"""Values of which items that differ are chosen: each set of them is a state."""
MOST_COUNTED = 1_000
_SPACE = Rule("space")


def _edge(item: Expression, first: bool) -> Expression:
    return item if first else sequence(_SPACE, ",", _SPACE, item)


def different(values: Sequence[Expression], least: int, most: int | None) -> Graph:
    """Between `least` and `most` of some values, each once at most, in any order."""
    size, most = 1 << len(values), len(values) if most is None else most
    edges = tuple(tuple((_edge(value, used == 0), used | 1 << i) for i, value in enumerate(values)
                        if not used >> i & 1 and used.bit_count() < most) for used in range(size))
    return Graph(edges, frozenset(used for used in range(size) if least <= used.bit_count() <= most))


def containing(item: Expression, wanted: Expression, needed: int, least: int, most: int | None) -> Graph:
    """Items, at least `needed` of which are of a kind: `wanted` is such an item, which `item` may be, too."""
    far = max(least, 1) if most is None else most          # so far items are counted, and from there on no more
    places = {(count, found): count * (needed + 1) + found for count in range(far + 1) for found in range(needed + 1)}
    edges: list[tuple[tuple[Expression, int], ...]] = []
    for count, found in places:
        after = min(count + 1, far)
        edges.append(() if count == most else (
            (_edge(item, count == 0), places[after, found]),
            (_edge(wanted, count == 0), places[after, min(found + 1, needed)])))
    return Graph(tuple(edges), frozenset(at for (count, found), at in places.items()
                                         if count >= least and found == needed))
