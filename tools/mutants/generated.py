"""Faults made by rule instead of by hand, at lines that tests run: what no test notices is not tested, or not needed.

The rules are those of mutation testing: a comparison or an operation becomes its neighbour, one of two conditions is
left out, a number is off by one, a keyword argument or a statement is left out, two arguments change places.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path

from mlc.tools.mutants.fault import Fault
from mlc.tools.mutants.lines_run import ROOT, Index

FOLDERS = ("ir", "dialects", "passes", "backends", "frontend", "mlc")
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"}
OPERATIONS: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Mod: "//", ast.BitAnd: "|", ast.BitOr: "&",
    ast.LShift: ">>", ast.RShift: "<<"}
NEIGHBOURS = {"min": "max", "max": "min", "any": "all", "all": "any"}
Edit = tuple[ast.expr | ast.stmt, str]
"""Part of a program, and what stands in its place."""


def edits(tree: ast.AST) -> Iterator[Edit]:
    """All faults that the rules know, but for those in messages, annotations, assertions and the heads of functions."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Raise | ast.Assert | ast.JoinedStr | ast.ImportFrom | ast.Import):
            continue
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute) and child.func.attr == "fail":
            continue
        yield from _edits_of(child)
        if isinstance(child, ast.AnnAssign):
            yield from edits(ast.Expression(child.value)) if child.value is not None else ()
        elif isinstance(child, ast.FunctionDef):
            for statement in child.body:
                yield from edits(ast.Module([statement], []))
        else:
            yield from edits(child)


def _edits_of(node: ast.AST) -> Iterator[Edit]:
    match node:
        case ast.Compare(left, [op], [right]) if type(op) in COMPARISONS:
            yield node, f"{_text(left)} {COMPARISONS[type(op)]} {_text(right)}"
        case ast.BinOp(left, op, right) if type(op) in OPERATIONS and not _is_text(left) and not _is_text(right):
            yield node, f"{_text(left)} {OPERATIONS[type(op)]} {_text(right)}"
        case ast.BoolOp(op, values):
            word = " and " if isinstance(op, ast.And) else " or "
            for i in range(len(values)):
                yield node, word.join(_text(v) for v in values[:i] + values[i + 1:])
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield node, _text(operand)
        case ast.Constant(bool() as value):
            yield node, str(not value)
        case ast.Constant(int() as number):
            yield node, str(number + 1)
        case ast.IfExp(test, body, orelse):
            yield node, f"{_text(orelse)} if {_text(test)} else {_text(body)}"
        case ast.If(test):
            yield test, "False"
        case ast.Call(ast.Name(name), args, []) if name in NEIGHBOURS:
            yield node.func, NEIGHBOURS[name]
        case ast.Call(function, args, keywords):
            names = [_text(a) for a in args]
            for i in range(len(keywords)):
                kept = [_text(k) for k in keywords[:i] + keywords[i + 1:]]
                yield node, f"{_text(function)}({', '.join(names + kept)})"
            alike = len(args) > 1 and all(isinstance(a, ast.Name | ast.Attribute) for a in args[:2])
            if alike and names[0] != names[1]:
                rest = [*names[2:], *map(_text, keywords)]
                yield node, f"{_text(function)}({', '.join([names[1], names[0], *rest])})"
        case ast.Expr(ast.Call()) | ast.AugAssign():
            yield node, "pass"


def _text(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Attribute | ast.Subscript | ast.keyword
                              | ast.Starred) else f"({text})"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def faults(index: Index, count: int, seed: int, place: str = "") -> Iterator[Fault]:
    """Some faults at lines that tests run, each at another line of the files whose names begin with `place`."""
    rng = random.Random(seed)
    sites = [(file, line, options) for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))
             if (file := path.relative_to(ROOT).as_posix()).startswith(place)
             for line, options in _by_line(path, index.lines(file)).items()]
    for file, _, options in rng.sample(sites, min(count, len(sites))):
        text = (ROOT / file).read_text(encoding="utf-8")
        made = fault(file, text, *rng.choice(options))
        if _is_python(made.applied(text)):
            yield made


def _is_python(text: str) -> bool:
    """Whether a fault has left a program: a pattern, for example, may be -1 and not -(2)."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _by_line(path: Path, lines: int) -> dict[int, list[Edit]]:
    """The faults of a file at lines that are run, by the first line of each."""
    out: dict[int, list[Edit]] = {}
    for node, new in edits(ast.parse(path.read_text(encoding="utf-8"))):
        if lines >> node.lineno & 1:
            out.setdefault(node.lineno, []).append((node, new))
    return out


def fault(file: str, text: str, node: ast.expr | ast.stmt, new: str) -> Fault:
    """Part of a file in place of which something else stands, with as many lines before it as tell it from others."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    lines = text.splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno - 1
    before = lines[first].encode()[: node.col_offset].decode()
    after = lines[last].encode()[node.end_col_offset:].decode()
    inside = new if isinstance(node, ast.stmt) else f"({new})"
    start = first
    while text.count("".join(lines[start: last + 1])) > 1:
        start -= 1
    lead = "".join(lines[start:first])
    return Fault("generated", file, lead + "".join(lines[first: last + 1]), f"{lead}{before}{inside}{after}")
