"""The functions of a user's file, and the specifications of their arguments."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mlc.frontend import location
from mlc.ir.diag import Loc, UserError
from mlc.tools import formats, report


def check_count(function: Callable[..., Any], specs: Sequence[Any], where: str) -> None:
    """Usage error if --args has too few or too many types."""
    import inspect
    try:
        inspect.signature(function).bind(*specs)
    except TypeError as error:
        raise report.usage_error(f"--args: {where}: {error}", "give one type for each parameter", "MLC0397") from None


FUNCTIONS = (".py", ".mlc", *formats.ENDINGS)
"""Endings of files that functions come from."""


def load(path: str, name: str) -> Callable[..., Any]:
    """An attribute of the user's file, imported by its path."""
    if not os.path.isfile(path):
        raise report.usage_error(f"cannot read {path}: no such file", "give the path of a .py, .mlc or .mlir file",
                                 "MLC0392")
    if path.endswith(".mlc"):
        return load_program(path, name)
    if (kind := formats.format_of(path)) is not None:
        if name:
            raise report.usage_error(f"{path} is one model, and has no function {name}", "leave the name out",
                                     "MLC0399")
        return kind.load(path)  # type: ignore[no-any-return]
    stem = Path(path).stem
    spec = importlib.util.spec_from_file_location(stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(stem, loaded)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    ended: SystemExit | None = None
    try:
        definition = _definition(path, name)
        with contextlib.redirect_stdout(sys.stderr):        # what the file prints is no part of the output
            spec.loader.exec_module(loaded)
    except SystemExit as stop:                              # a program ends itself; what it has defined is there
        ended = stop
    except Exception as error:
        raise report.users_fault(error, path) from error
    found: Any = loaded
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None and ended is not None:
        raise ended
    code = getattr(inspect.unwrap(found), "__code__", None) if callable(found) else None
    if code is not None and not location.is_ours(str(getattr(found, "__module__", ""))):
        definition = Loc(os.path.abspath(code.co_filename), code.co_firstlineno)
    location.command.function = definition
    if not callable(found) or isinstance(found, type):
        raise _no_function(path, name, [n for n, v in vars(loaded).items()
                                        if callable(v) and not isinstance(v, type) and not n.startswith("_")])
    return found  # type: ignore[no-any-return]


def _definition(path: str, name: str) -> Loc:
    """Where a file defines or assigns a name; its first line if it does so in another way."""
    body, line = ast.parse(Path(path).read_bytes(), path).body, 1
    for part in name.split("."):
        found = [s for s in body if getattr(s, "name", None) == part or any(
            isinstance(n, ast.Name) and n.id == part and isinstance(n.ctx, ast.Store) for n in ast.walk(s)
            if isinstance(s, ast.Assign | ast.AnnAssign))]
        if not found:
            break
        line, body = found[-1].lineno, getattr(found[-1], "body", [])
    return Loc(os.path.abspath(path), line)


def load_program(path: str, name: str) -> Callable[..., Any]:
    """A function of a program in the text language."""
    from mlc.frontend import language
    program = language.load(path)
    known = language.functions_of(program)
    if name not in known:
        raise _no_function(path, name, known)
    return getattr(program, name)  # type: ignore[no-any-return]


def name_of_only(path: str) -> str:
    """The function of a file where none is named: main, or the only one; usage error if there are several."""
    if path.endswith(".mlc"):
        from mlc.frontend import language
        known = language.functions_of(language.load(path))
        if "main" in known or len(known) == 1:
            return "main" if "main" in known else known[0]
    else:                                                  # which may have a program in it, so it is not executed
        known = _defined(path)
        if len(known) == 1:
            return known[0]
    raise report.usage_error(f"{path}: which function?", f"write {path}:FUNCTION; it " + (
        "has " + ", ".join(known) if known else "defines none"), "MLC0399")


def _defined(path: str) -> list[str]:
    """The public functions that a Python file defines."""
    try:
        return [s.name for s in ast.parse(Path(path).read_bytes(), path).body
                if isinstance(s, ast.FunctionDef) and not s.name.startswith("_")]
    except OSError as error:
        raise report.usage_error(f"cannot read {path}: {error.strerror}", "give the path of a .py, .mlc or .mlir file",
                                 "MLC0392") from None
    except (SyntaxError, ValueError) as error:
        raise report.users_fault(error, path) from error


def _no_function(path: str, name: str, known: Sequence[str]) -> UserError:
    from difflib import get_close_matches
    near = get_close_matches(name, known, 1)
    return report.usage_error(f"{path} has no function {name}", f"did you mean {path}:{near[0]}?" if near else
                              "it has " + (", ".join(known) or "none"), "MLC0399")


def annotated(function: Any, where: str) -> list[Any]:
    """The specification of each parameter, by annotation."""
    import inspect

    import mlc.api as api
    compiled = api.compiled_function(function)
    if compiled is not None and (args := compiled.signature.specified()) is not None:
        return args
    known = compiled.signature.specs if compiled is not None else {}
    f = function.signature.f if isinstance(function, api.Compiled) else function
    specs, missing = list[Any](), list[str]()
    try:
        parameters = inspect.signature(f, eval_str=True).parameters
    except Exception as error:                   # an annotation that does not evaluate
        raise report.users_fault(error) from error
    for name, p in parameters.items():
        if name in known:
            specs.append(known[name])
        elif isinstance(p.annotation, api.Spec):
            specs.append(p.annotation)
        elif p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            missing.append(name)
    if missing:
        if ".mlc:" in where:
            raise report.usage_error(f"{where}: no type is given for {', '.join(missing)}",
                                     f"declare it, {missing[0]}: f32[N], or give it a default", "MLC0388")
        raise report.usage_error(f"{where}: no type is given for {', '.join(missing)}",
                                 f'annotate it, def {f.__name__}({missing[0]}: mlc.spec("B", 16)), or give --args',
                                 "MLC0388")
    return specs
