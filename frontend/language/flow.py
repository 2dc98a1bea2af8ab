"""Properties of blocks that hold before they are evaluated: whether they return, and which names they assign."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.frontend.language import syntax as S
from mlc.frontend.language.expressions import names_in

ALWAYS, NEVER, SOMETIMES = "always", "never", "sometimes"


def returns(body: Sequence[S.Node]) -> str:
    """Whether a block returns: always, never or sometimes."""
    for x in body:
        if isinstance(x, S.Returned):
            return ALWAYS
        if isinstance(x, S.If):
            ways = {returns(x.body), returns(x.other)}
            if ways == {ALWAYS}:
                return ALWAYS
            if ways != {NEVER}:
                return ALWAYS if returns(body[body.index(x) + 1:]) == ALWAYS and SOMETIMES not in ways else SOMETIMES
        if isinstance(x, S.For | S.While) and returns(x.body) != NEVER:
            return SOMETIMES
    return NEVER


def assigned(body: Sequence[S.Node]) -> list[str]:
    """The names that statements assign, in the order of their first assignments."""
    out: list[str] = []
    for x in body:
        if isinstance(x, S.Assigned):
            out += names_in(x.target)
        elif isinstance(x, S.Declared | S.Function | S.Model):
            out.append(x.name)
        elif isinstance(x, S.If):
            out += [*assigned(x.body), *assigned(x.other)]
        elif isinstance(x, S.While):
            out += assigned(x.body)
        elif isinstance(x, S.For):
            out += [*names_in(x.target), *assigned(x.body), *(names_in(x.results) if x.results is not None else ())]
        elif isinstance(x, S.Broken):
            out += x.names
    return list(dict.fromkeys(out))


def statements_in(body: Sequence[S.Node], collecting: bool = True) -> list[S.Node]:
    """The statements of a block and its nested blocks, optionally without those of loops that collect values."""
    out: list[S.Node] = []
    work = list(body)
    while work:
        x = work.pop(0)
        out.append(x)
        if isinstance(x, S.If | S.For | S.While) and (collecting or getattr(x, "results", None) is None):
            work += [*x.body, *getattr(x, "other", ())]
    return out
