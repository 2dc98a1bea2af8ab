"""Changes of a pass: the lines that it removed and added, with a few around them."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.tools.explain.explanation import Hunk, Line

AROUND = 2
"""Lines that are shown before and after a change."""


def hunks(before: Sequence[Line], after: Sequence[Line]) -> list[Hunk]:
    """The differences of two texts of a module.

    Lines keep their operations and names, so what both texts have is known without a search; a line that a pass moved
    counts as kept. What was removed is shown where the lines before it are.
    """
    kept = set(before) & set(after)
    if len(kept) == len(before) == len(after):
        return []
    removed: dict[Line | None, list[Line]] = {}
    last: Line | None = None
    for line in before:
        if line in kept:
            last = line
        else:
            removed.setdefault(last, []).append(line)
    out: list[Hunk] = []
    added: list[Line] = []
    gone = removed.pop(None, [])
    start = 0

    def end(at: int) -> None:
        if added or gone:
            out.append(Hunk(list(after[max(0, start - AROUND):start]), gone, added, list(after[at:at + AROUND])))

    for i, line in enumerate(after):
        if line in kept:
            end(i)
            gone, added, start = removed.pop(line, []), [], i + 1
        else:
            added.append(line)
    end(len(after))
    return _joined(out)


def _joined(found: Sequence[Hunk]) -> list[Hunk]:
    """Hunks without the lines around them that the hunk before has changed or shows."""
    out: list[Hunk] = []
    for hunk in found:
        shown = {*out[-1].added, *out[-1].after, *out[-1].before} if out else set[Line]()
        out.append(Hunk([x for x in hunk.before if x not in shown], hunk.removed, hunk.added, hunk.after))
    for i, (hunk, later) in enumerate(zip(out, out[1:])):
        changed = {*later.added}
        out[i] = Hunk(hunk.before, hunk.removed, hunk.added, [x for x in hunk.after if x not in changed])
    return out
