"""Elimination of jumps: `break`, `continue` and early `return` become assignments; only if, while and for remain.

The statements after an `if` that jumps move into the branch that falls through:

    if c: return a                       if c: value = a
    rest                       ->        else: rest

If both branches may fall through, and after loops, a flag guards the rest. A loop ends when a flag of it (`stops`) is
set.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from typing import Any

VALUE, RETURNED = "_mlc_value", "_mlc_returned"
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
LOOPS = (ast.For, ast.While)


class NotRecordable(Exception):
    """A function cannot be rewritten, for this reason; it runs as plain Python."""


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a function, except those of nested functions."""
    for s in body:
        yield s
        if not isinstance(s, SCOPES):
            for inner in blocks(s):
                yield from statements(inner)


def blocks(s: ast.stmt) -> list[list[ast.stmt]]:
    """The lists of statements in a statement."""
    out = [getattr(s, name) for name in ("body", "orelse", "finalbody") if getattr(s, name, None)]
    out += [h.body for h in getattr(s, "handlers", ())]
    return out + [c.body for c in getattr(s, "cases", ())]


def stops_of(loop: ast.stmt) -> list[str]:
    """The flags that end a loop."""
    return getattr(loop, "stops", [])


def without_jumps(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a function with its jumps replaced by assignments; it ends with its only `return`, if any."""
    return _Jumps(body).function()


class _Around:
    """Target of the jumps in a statement: the body of a loop, or the function.

    skip   the flag that is set by all jumps out of the body, if some rest needs it
    """

    def __init__(self, stop: str = "", skip: str = "") -> None:
        self.stop = stop
        self.skip = skip
        self.breaks = self.needs_skip = False


class _Jumps:
    def __init__(self, body: list[ast.stmt]) -> None:
        self.body = body
        self.flagged = False                               # whether returns set RETURNED
        self.needs_flag = False
        self.count = 0

    def function(self) -> list[ast.stmt]:
        returns = [s for s in statements(self.body) if isinstance(s, ast.Return)]
        if not returns or (len(returns) == 1 and returns[0] is self.body[-1]):
            last = self.body[-1:] if returns else []
            return [*self.block(self.body[: len(self.body) - len(last)], _Around()), *last]
        end = ast.copy_location(ast.Return(None), self.body[-1])
        whole = [*self.body, end] if _goes_on(self.body) else self.body
        out = self.block(copy.deepcopy(whole), _Around(skip=RETURNED))
        if self.needs_flag:
            self.flagged, self.count = True, 0
            out = [_assign(RETURNED, ast.Constant(False), self.body[0]),
                   *self.block(copy.deepcopy(whole), _Around(skip=RETURNED))]
        return [*out, ast.copy_location(ast.Return(ast.Name(VALUE, ast.Load())), returns[-1])]

    def block(self, body: list[ast.stmt], around: _Around) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for i, s in enumerate(body):
            rest = body[i + 1:]
            if isinstance(s, ast.Return | ast.Break | ast.Continue):
                return [*out, *self.jump(s, around)]
            if isinstance(s, LOOPS):
                return [*out, *self.loop(s, rest, around)]
            if isinstance(s, SCOPES) or not _jumps([s]):
                for inner in blocks(s) if not isinstance(s, SCOPES) else ():
                    inner[:] = self.block(inner, around)
                out.append(s)
                continue
            if isinstance(s, ast.If) and not _goes_on(s.body):
                s.body, s.orelse = self.block(s.body, around), self.block([*s.orelse, *rest], around)
                return [*out, s]
            if isinstance(s, ast.If) and not _goes_on(s.orelse):
                s.body, s.orelse = self.block([*s.body, *rest], around), self.block(s.orelse, around)
                return [*out, s]
            if isinstance(s, ast.Try) and _jumps(s.finalbody):
                raise NotRecordable("a jump out of `finally` discards the exception")
            if isinstance(s, ast.Try) and s.orelse and _jumps(s.body):
                otherwise, s.orelse = s.orelse, []
                s.orelse = self.guarded(around, otherwise, s)
                parts = [s.body, s.finalbody, *(h.body for h in s.handlers)]
            else:
                parts = blocks(s)
            for inner in parts:
                inner[:] = self.block(inner, around)
            return [*out, s, *self.guarded(around, rest, s)]
        return out

    def jump(self, s: ast.stmt, around: _Around) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        if isinstance(s, ast.Return):
            out.append(_assign(VALUE, s.value or ast.Constant(None), s))
            if around.stop:
                self.needs_flag = True
            if self.flagged:
                out.append(_assign(RETURNED, ast.Constant(True), s))
        if isinstance(s, ast.Break):
            around.breaks = True
            out.append(_assign(around.stop, ast.Constant(True), s))
        if around.skip and around.skip != RETURNED:
            out.append(_assign(around.skip, ast.Constant(True), s))
        return out or [ast.copy_location(ast.Pass(), s)]

    def guarded(self, around: _Around, rest: list[ast.stmt], s: ast.stmt) -> list[ast.stmt]:
        """The rest of a body after a statement that may have jumped."""
        if not rest:
            return []
        around.needs_skip = True
        if around.skip == RETURNED:
            self.needs_flag = True
        return [_unless(around.skip or RETURNED, [], self.block(rest, around), s)]

    def loop(self, s: Any, rest: list[ast.stmt], around: _Around) -> list[ast.stmt]:
        self.count += 1
        going = _going(s, self.count)
        if is_endless(s):
            s.test = ast.copy_location(ast.Constant(True), s.test)
        stop, number = f"_mlc_break_{self.count}", self.count
        returns = any(isinstance(x, ast.Return) for x in statements(s.body))
        original, orelse = copy.deepcopy(s.body), s.orelse
        inside = _Around(stop)
        s.body, s.orelse = self.block(s.body, inside), []
        if inside.needs_skip:
            self.count = number
            inside = _Around(stop, f"_mlc_skip_{number}")
            s.body = [_assign(inside.skip, ast.Constant(False), s), *self.block(original, inside)]
        s.stops = [stop] * inside.breaks + [RETURNED] * returns
        out = [_assign(stop, ast.Constant(False), s)] * inside.breaks + [s]
        if going is not None:
            out.insert(0, going)
            again = [copy.deepcopy(going)]
            for flag in s.stops:
                again = [_unless(flag, [], again, s)]
            s.body += again
        if is_endless(s) and not inside.breaks:
            rest = orelse = []                             # only a `return` leaves the loop
        if orelse:
            rest = [_unless(stop, [], orelse, s), *rest] if inside.breaks else [*orelse, *rest]
        if not returns:
            return [*out, *self.block(rest, around)]
        self.needs_flag = around.needs_skip = True
        skips = [_assign(around.skip, ast.Constant(True), s)] if around.skip not in ("", RETURNED) else []
        return [*out, _unless(RETURNED, skips, self.block(rest, around), s)] if rest or skips else out


def _going(loop: Any, number: int) -> ast.stmt | None:
    """The test of a `while` that assigns variables as a statement, which sets the flag that the loop then tests.

        while (s := f(x)) < 20: ...     ->     going = (s := f(x)) < 20
                                               while going: ...; going = (s := f(x)) < 20
    """
    if not isinstance(loop, ast.While) or not any(isinstance(n, ast.NamedExpr) for n in ast.walk(loop.test)):
        return None
    flag = f"_mlc_going_{number}"
    out = _assign(flag, loop.test, loop.test)
    loop.test = ast.copy_location(ast.Name(flag, ast.Load()), loop.test)
    return out


def is_endless(s: ast.stmt) -> bool:
    """Whether the test of a loop is a true constant, so that only a jump leaves it."""
    return isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and bool(s.test.value)


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether the body of a loop contains a `break` of that loop."""
    return any(isinstance(s, ast.Break) or (not isinstance(s, (*SCOPES, *LOOPS)) and any(map(_breaks, blocks(s))))
               or (isinstance(s, LOOPS) and _breaks(s.orelse)) for s in body)


def _jumps(body: Sequence[ast.stmt], in_loop: bool = False) -> bool:
    """Whether control may leave these statements by a jump: also one of the `else` of a loop, which is not in it."""
    return any(isinstance(s, ast.Return) or (isinstance(s, ast.Break | ast.Continue) and not in_loop)
               or (isinstance(s, LOOPS) and (_jumps(s.body, True) or _jumps(s.orelse, in_loop)))
               or (not isinstance(s, (*SCOPES, *LOOPS)) and any(_jumps(inner, in_loop) for inner in blocks(s)))
               for s in body)


def _goes_on(body: Sequence[ast.stmt]) -> bool:
    """Whether control may fall through to the end of these statements."""
    for s in body:
        if isinstance(s, ast.Return | ast.Break | ast.Continue | ast.Raise):
            return False
        if isinstance(s, ast.If) and s.orelse and not _goes_on(s.body) and not _goes_on(s.orelse):
            return False
        if is_endless(s) and not _breaks(s.body):  # type: ignore[attr-defined]
            return False
    return True


def _assign(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    node = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), at)
    return ast.fix_missing_locations(node)


def _unless(flag: str, then: list[ast.stmt], otherwise: list[ast.stmt], at: ast.AST) -> ast.stmt:
    node = ast.If(ast.Name(flag, ast.Load()), then or [ast.Pass()], otherwise)
    return ast.fix_missing_locations(ast.copy_location(node, at))
