"""Rewrites a user's function to one that records its control flow, once for each code object.

The new function shares the globals, closure cells, defaults and attributes of the old one.
"""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import sys
import types
from pathlib import Path
from types import CellType, CodeType
from typing import Any

from mlc.frontend.location import is_ours
from mlc.frontend.script import rewrite, source
from mlc.frontend.script.jumps import NotRecordable

_FUTURE = functools.reduce(int.__or__, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))
_FACTORY, _FUNCTION = "_mlc_factory", "_mlc_function"

_made: dict[tuple[CodeType, str], CodeType | str] = {}
"""By code and file: the rewritten code, or the reason why there is none."""
_results: set[CodeType] = set()


def captured(f: Any, runtime: CellType) -> Any:
    """Callable to use in place of `f` during recording: `f` itself if it is not the user's, or cannot be rewritten.

    runtime  the module runtime.py, which rewritten functions call
    """
    if isinstance(f, types.FunctionType):
        return _function(f, runtime)
    if isinstance(f, types.MethodType):
        inner = captured(f.__func__, runtime)
        return f if inner is f.__func__ else types.MethodType(inner, f.__self__)
    if isinstance(f, functools.partial):
        inner = captured(f.func, runtime)
        return f if inner is f.func else functools.partial(inner, *f.args, **f.keywords)
    if isinstance(f, type):
        return _constructor(f, runtime)
    call = inspect.getattr_static(type(f), "__call__", None)
    if isinstance(call, types.FunctionType) and (inner := _function(call, runtime)) is not call:
        return types.MethodType(inner, f)
    return f


def _constructor(kind: Any, runtime: CellType) -> Any:
    """Callable to use in place of a class, whose `__init__` it rewrites; the class where objects are made otherwise."""
    init = inspect.getattr_static(kind, "__init__", None)
    if type(kind).__call__ is not type.__call__ or kind.__new__ is not object.__new__ or not isinstance(
            init, types.FunctionType) or (inner := _function(init, runtime)) is init:
        return kind

    def make(*args: Any, **keywords: Any) -> Any:
        made = kind.__new__(kind)
        inner(made, *args, **keywords)
        return made

    return make


def is_users(f: types.FunctionType) -> bool:
    """Whether a function belongs neither to this package, nor numpy, nor the standard library."""
    module = str(f.__globals__.get("__name__", ""))
    if is_ours(module):
        return False
    root = module.partition(".")[0]
    return root == "__main__" or (root not in sys.stdlib_module_names and root != "numpy")


def way_out() -> str:
    """Hint for a line that uses the truth of a tensor where that cannot be recorded."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    code = frame.f_code
    reason = _made.get((code, code.co_filename))
    if isinstance(reason, str):
        return f"{reason}, and then its `if`, loops, `and` and so on are Python's"
    if code in _results:
        return ("write it as an `if` statement or a loop: in comprehensions, `in`, `match` and beside `:=` they are "
                "Python's")
    return ""


def _function(f: types.FunctionType, runtime: CellType) -> types.FunctionType:
    code = f.__code__
    if code in _results or not is_users(f):
        return f
    key = code, code.co_filename
    if (made := _made.get(key)) is None:
        made = _made[key] = _make(code, f.__globals__)
    if isinstance(made, str):
        return f
    cells = dict(zip(code.co_freevars, f.__closure__ or ()))
    cells[rewrite.RUNTIME] = runtime
    out = types.FunctionType(made, f.__globals__, f.__name__, f.__defaults__,
                             tuple(cells[n] for n in made.co_freevars))
    out.__kwdefaults__ = f.__kwdefaults__
    out.__qualname__, out.__module__, out.__doc__ = f.__qualname__, f.__module__, f.__doc__
    out.__dict__.update(f.__dict__)
    return out


def _uses_us(code: CodeType, known: dict[str, Any]) -> bool:
    """Whether a function may work on tensors, judging by the contents of its module: an installed package may if it
    uses this one."""
    if not {"site-packages", "dist-packages"}.intersection(Path(code.co_filename).parts):
        return True
    return any(is_ours(str(getattr(x, "__module__", None) or getattr(x, "__name__", ""))) for x in known.values())


def _make(code: CodeType, known: dict[str, Any]) -> CodeType | str:
    """The code of the rewritten function, or the reason why there is none."""
    kinds = {inspect.CO_GENERATOR: "a generator", inspect.CO_COROUTINE: "a coroutine",
             inspect.CO_ASYNC_GENERATOR: "a generator"}
    for flag, name in kinds.items():
        if code.co_flags & flag:
            return f"let {code.co_name} return a list or use mlc.scan: it is {name}"
    if not _uses_us(code, known):
        return f"{code.co_name} belongs to a library"
    if (found := source.find(code)) is None:
        return f"define {code.co_name} in a file: its source is not at hand"
    node, owner = found
    for part in (node.args.defaults, node.args.kw_defaults):
        part[:] = [None if x is None else ast.Constant(None) for x in part]  # type: ignore[misc]
    for arg in ast.walk(node.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    body: ast.stmt
    try:
        body = _rewritten(node)
    except NotRecordable as reason:
        return f"write {code.co_name} more plainly: {reason}"
    free = [n for n in code.co_freevars if n != rewrite.RUNTIME]
    factory = rewrite.define(_FACTORY, [*free, rewrite.RUNTIME], [body])
    outer: ast.stmt = ast.ClassDef(owner, [], [], [factory], []) if owner else factory
    if owner:
        outer.type_params = []  # type: ignore[attr-defined]
    module = ast.Module([ast.copy_location(outer, node)], [])
    ast.fix_missing_locations(module)
    try:
        compiled = compile(module, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    except SyntaxError as error:
        return f"write {code.co_name} more plainly: {error.msg} when its control flow is taken apart"
    made = _inner(_inner(compiled, _FACTORY), _FUNCTION if isinstance(node, ast.FunctionDef) else code.co_name)
    made = made.replace(co_name=code.co_name, co_qualname=code.co_qualname)
    _remember(made)
    return made


def _rewritten(node: source.Function) -> ast.stmt:
    """The definition of the rewritten function, or of a function that returns it."""
    if isinstance(node, ast.FunctionDef):
        node.decorator_list, node.returns, node.name = [], None, _FUNCTION    # must not shadow a name it refers to
        return rewrite.rewrite_function(node)
    return ast.Return(rewrite.rewrite_lambda(node))


def _inner(code: CodeType, name: str) -> CodeType:
    """The code of a function that is defined in `code`, or in a class there."""
    inside = [c for c in code.co_consts if isinstance(c, CodeType)]
    return next((c for c in inside if c.co_name == name), None) or next(_inner(c, name) for c in inside)


def _remember(code: CodeType) -> None:
    _results.add(code)
    for c in code.co_consts:
        if isinstance(c, CodeType):
            _remember(c)

