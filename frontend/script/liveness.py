"""Live variables and possibly unassigned variables of a function: two walks over statements without jumps.

`live` on an if, while or for holds the variables that are read after it; `head` on a loop also those that an iteration
reads before it assigns them. Names that nested functions use are live everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from mlc.frontend.script.jumps import SCOPES, blocks, statements, stops_of

Names = frozenset[str]
NONE: Names = frozenset()


def reads(*nodes: ast.AST | None) -> Names:
    return frozenset(n.id for node in nodes if node is not None for n in ast.walk(node)
                     if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def stores(node: ast.AST | Sequence[ast.stmt]) -> Names:
    """The names that statements or a target bind in their function."""
    out: set[str] = set()
    work: list[Any] = [*node] if isinstance(node, list | tuple) else [node]
    while work:
        n = work.pop()
        if isinstance(n, ast.Name):
            out |= set() if isinstance(n.ctx, ast.Load) else {n.id}
        elif isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            out.add(n.name)
            continue
        elif isinstance(n, ast.Import | ast.ImportFrom):
            out |= {a.asname or a.name.partition(".")[0] for a in n.names}
        elif isinstance(n, ast.MatchAs | ast.MatchStar) and n.name:
            out.add(n.name)
        elif isinstance(n, ast.MatchMapping) and n.rest:
            out.add(n.rest)
        elif isinstance(n, ast.Lambda):
            continue
        elif isinstance(n, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            out |= {w.target.id for w in ast.walk(n) if isinstance(w, ast.NamedExpr)}
            continue
        work += ast.iter_child_nodes(n)
    return frozenset(out)


def shared(body: Sequence[ast.stmt]) -> Names:
    """The names that functions nested in a body use."""
    inner = [n for s in body for n in ast.walk(s) if isinstance(n, (*SCOPES, ast.GeneratorExp))]
    declared = {x for n in inner for m in ast.walk(n) if isinstance(m, ast.Nonlocal) for x in m.names}
    return reads(*inner) | declared


def assigned_within(body: Sequence[ast.stmt]) -> Names:
    """The names of a function that nested functions assign."""
    return frozenset(x for s in body for n in ast.walk(s) if isinstance(n, SCOPES)
                     for m in ast.walk(n) if isinstance(m, ast.Nonlocal) for x in m.names)


def mark(body: list[ast.stmt], outer: Names) -> None:
    """Set `live` and `head` on the statements of a function; its `outer` variables belong to other functions."""
    _Live(shared(body) | outer).block(body, outer)


class _Live:
    def __init__(self, always: Names) -> None:
        self.always = always

    def block(self, body: Sequence[ast.stmt], out: Names) -> Names:
        for s in reversed(body):
            out = self.statement(s, out)
        return out

    def statement(self, s: Any, out: Names) -> Names:
        if isinstance(s, ast.If):
            s.live = out | self.always  # type: ignore[attr-defined]
            return reads(s.test) | self.block(s.body, out) | self.block(s.orelse, out)
        if isinstance(s, ast.While | ast.For):
            return self.loop(s, out)
        if isinstance(s, ast.With | ast.AsyncWith):
            inside = self.block(s.body, out)
            bound = frozenset().union(*(stores(i.optional_vars) for i in s.items if i.optional_vars))
            return (inside - bound) | reads(*(i.context_expr for i in s.items))
        if inner := [] if isinstance(s, SCOPES) else blocks(s):      # try, match: any part may come after any other
            wanted = out | reads(s)
            for body in inner:
                self.block(body, wanted)
            return wanted
        if isinstance(s, ast.Delete):
            return (out - stores(s)) | reads(s)
        written = reads(s) | (stores(s.target) if isinstance(s, ast.AugAssign) else NONE)
        return (out - stores(s)) | written

    def loop(self, s: Any, out: Names) -> Names:
        s.live = out | self.always
        head = out | frozenset(stops_of(s)) | (reads(s.test) if isinstance(s, ast.While) else NONE)
        target = stores(s.target) if isinstance(s, ast.For) else NONE
        while True:
            found = head | (self.block(s.body, head) - target)
            if found == head:
                break
            head = found
        s.head = head | self.always
        return head | (reads(s.iter) if isinstance(s, ast.For) else NONE)


def unsure(body: list[ast.stmt], given: Iterable[str], local: Names) -> set[ast.Name]:
    """The reads of local variables that may be unassigned."""
    found: set[ast.Name] = set()
    _walk(body, frozenset(given), local, found)
    return found


def _walk(body: Sequence[ast.stmt], known: Names, local: Names, found: set[ast.Name]) -> Names:
    for s in body:
        inner = [] if isinstance(s, SCOPES) else blocks(s)
        heads = [n for n in ast.iter_child_nodes(s) if isinstance(n, ast.expr | ast.withitem)] if inner else [s]
        for node in heads if not isinstance(s, SCOPES) else []:
            _check(node, known, local, found)
        if isinstance(s, ast.If):
            known |= stores(s.test)
            known = _walk(s.body, known, local, found) & _walk(s.orelse, known, local, found)
        elif isinstance(s, ast.With):
            known = _walk(s.body, known | frozenset().union(*(stores(i) for i in s.items)), local, found)
        elif inner:
            known -= _deleted(s)                           # an iteration comes after others, a handler after the body
            start = known | (stores(s.target) if isinstance(s, ast.For) else NONE)
            for part in inner:
                _walk(part, start, local, found)
        elif isinstance(s, ast.Delete):
            known -= stores(s)
        else:
            known |= stores(s)
    return known


def _deleted(s: ast.stmt) -> Names:
    """The names that parts of a statement delete."""
    return frozenset().union(*(stores(inner) for inner in statements([s]) if isinstance(inner, ast.Delete)))


def _check(node: ast.AST, known: Names, local: Names, found: set[ast.Name]) -> None:
    work = [node]
    while work:
        n = work.pop()
        if isinstance(n, (*SCOPES, ast.GeneratorExp)):
            continue
        if isinstance(n, ast.ListComp | ast.SetComp | ast.DictComp):
            work.append(n.generators[0].iter)
            continue
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in local and n.id not in known:
            found.add(n)
        work += ast.iter_child_nodes(n)
