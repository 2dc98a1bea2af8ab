"""Python's grammar under the recorder: what is recorded means what Python means, or is refused with a code.

`pytest -s -n 0 tests/test_grammar.py -k table` prints what becomes of every statement and expression.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from functools import cache
from types import FrameType
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontend import tree
from mlc.frontend.script.origin import codes_of
from mlc.ir.diag import UserError
from mlc.ir.interp import run_function
from tests import grammar_expressions, grammar_programs, grammar_statements
from tests.grammar_programs import PROGRAMS

MODULES = (grammar_programs, grammar_statements, grammar_expressions)
"""Importing them fills PROGRAMS."""
INPUTS = [np.array(v, np.float32) for v in (
    [0, 1, 2], [3, 4, 1], [1, 0, 0.5], [2, 3, 5], [0, 1, 0], [8, 8, 8])]
LEFT_OUT = {
    "Interactive": "a mode of the parser", "Expression": "a mode of the parser", "FunctionType": "a mode of the parser",
    "Module": "files", "AsyncFor": "only coroutines have it", "AsyncWith": "only coroutines have it",
    "Await": "only coroutines have it", "TryStar": "exception groups: as Try", "TypeAlias": "declares a type",
    "TemplateStr": "of Python 3.14", "Interpolation": "of Python 3.14",
}
"""Nodes without a program, each with the reason."""


def flat(x: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(leaf.numpy() if isinstance(leaf, mlc.Tensor) else leaf) for leaf in tree.leaves(x)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_python_or_refused(name: str) -> None:
    f, becomes = PROGRAMS[name]
    before = grammar_programs.COUNTER
    if becomes != "compiled":
        with pytest.raises(UserError) as info:
            mlc.compile(f).compiled.recording([INPUTS[0]], {})
        assert info.value.code == becomes, info.value
        return
    recorded = mlc.compile(f).compiled.recording([INPUTS[0]], {}).recorded
    for v in INPUTS:
        want = flat(f(mlc.tensor(v)))
        results = run_function(recorded.trace.module, "main", [v])
        got = flat(recorded.result([np.asarray(r) for r in results]))
        assert len(got) == len(want)
        for a, b in zip(got, want):
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-6)
    grammar_programs.COUNTER = before


@pytest.mark.parametrize("name", [name for name, (_, becomes) in PROGRAMS.items() if becomes == "compiled"])
def test_the_inputs_reach_every_line(name: str) -> None:
    f = PROGRAMS[name][0]
    codes, reached = set(codes_of(f.__code__)), set[int]()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code in codes and event == "line":
            reached.add(frame.f_lineno)
        return trace

    for v in INPUTS:
        around = sys.gettrace()
        sys.settrace(trace)
        try:
            f(mlc.tensor(v))
        finally:
            sys.settrace(around)
    lines = {line for code in codes for _, _, line in code.co_lines() if line is not None}
    assert not lines - reached - {code.co_firstlineno for code in codes}


@cache
def nodes(name: str) -> set[str]:
    """The kinds of nodes in a program."""
    text = textwrap.dedent(inspect.getsource(PROGRAMS[name][0]))
    return {type(n).__name__ for n in ast.walk(ast.parse(text))}


def grammar() -> set[str]:
    """All kinds of statements, expressions, operators and patterns."""
    kinds = (ast.stmt, ast.expr, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.pattern)
    deprecated = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis"}
    return {n for n in dir(ast) if isinstance(getattr(ast, n), type) and issubclass(getattr(ast, n), kinds)
            and getattr(ast, n) not in kinds and not n.startswith("_")} - deprecated


def test_every_kind_of_node_has_a_program() -> None:
    used = set().union(*map(nodes, PROGRAMS))
    assert grammar() - used - LEFT_OUT.keys() == set()


def test_table() -> None:
    for kind in sorted(grammar() - LEFT_OUT.keys()):
        found = sorted({PROGRAMS[name][1] for name in PROGRAMS if kind in nodes(name)})
        print(f"{kind:16} {', '.join(found)}")
        assert found, kind
