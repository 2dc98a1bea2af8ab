"""The syntax tree of a code object, found in its file by first line, name and parameters."""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
import threading
from functools import lru_cache
from types import CodeType

Function = ast.FunctionDef | ast.Lambda
_parsing = threading.Lock()
"""Held while a tree is made: in CPython 3.11, two threads that do so at once fail (python/cpython#106905)."""


@lru_cache(maxsize=256)
def _functions(text: str) -> dict[int, list[tuple[Function, str]]]:
    """The functions of a file by their first line, each with the enclosing class."""
    found: dict[int, list[tuple[Function, str]]] = {}
    with _parsing:
        work: list[tuple[ast.AST, str]] = [(ast.parse(text), "")]
    while work:
        node, owner = work.pop()
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            lines = [node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]
            found.setdefault(min(lines), []).append((node, owner))
        inside = node.name if isinstance(node, ast.ClassDef) else owner
        work += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


def find(code: CodeType) -> tuple[Function, str] | None:
    """A copy of a function's syntax tree, and the class whose private names it sees; None without source."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    try:
        text = "".join(lines)
        candidates = [found for found in _functions(text).get(code.co_firstlineno, ()) if _is(found[0], code)]
    except (SyntaxError, ValueError, RecursionError):
        return None
    if len(candidates) > 1:
        here: list[tuple[Function, str]] = [
            found for found in candidates if isinstance(found[0], ast.Lambda) and _covers(found[0], code)]
        candidates = sorted(here, key=lambda found: _length(found[0]))[:1]             # the innermost
    if len(candidates) != 1:
        return None
    node, owner = candidates[0]
    return copy.deepcopy(node), owner


def _place(node: ast.AST) -> tuple[int, int, int | None, int | None]:
    assert isinstance(node, ast.expr | ast.stmt)
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _length(node: ast.AST) -> tuple[int, int]:
    line, column, end_line, end_column = _place(node)
    return (end_line or line) - line, (end_column or column) - column


def _is(node: Function, code: CodeType) -> bool:
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    args = node.args
    names = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    names += [a.arg for a in (args.vararg, args.kwarg) if a is not None]
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS) + bool(
        code.co_flags & inspect.CO_VARKEYWORDS)
    known = [n if not n.startswith("_") or "__" not in n else "__" + n.split("__", 1)[1]
             for n in code.co_varnames[:count]]
    return name == code.co_name and (names == list(code.co_varnames[:count]) or names == known)


def _covers(node: ast.Lambda, code: CodeType) -> bool:
    """Whether a code object is that of this lambda expression, by their positions; a line may have several."""
    line, column, end_line, end_column = _place(node.body)
    found = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
    return bool(found) and all((line, column) <= (p[0], p[2]) and (p[1], p[3]) <= (end_line, end_column)
                               for p in found)
