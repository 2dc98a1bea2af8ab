"""Evaluation of expressions, by calls of the library's functions on the values of their operands.

While a program is checked, tensors are tracers of the declared types; so types are inferred, and shapes checked, by the
same rules as in Python programs. An error is reported at its location, and its value is POISON.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend import tree
from mlc.frontend.dtypes import DType
from mlc.frontend.language import library
from mlc.frontend.language import syntax as S
from mlc.frontend.language.diagnostics import is_in_text, suggestion
from mlc.frontend.language.library import call_library
from mlc.frontend.language.operators import LARGEST, binary, compare
from mlc.frontend.language.terms import in_text
from mlc.frontend.language.values import (
    POISON,
    Applicable,
    Environment,
    Missing,
    Span,
    Zipped,
    deeper,
    is_poisoned,
    is_static_number,
    report,
    session,
    shown,
)
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.ir.diag import UserError
from mlc.ir.sizes import Size

PROPERTIES = frozenset({"T", "mT", "shape", "ndim", "dtype"})
LONGEST = 10_000
"""Limit on the trip count of unrolled loops and on the length of lists."""


def evaluate(node: S.Node, env: Environment) -> Any:
    """The value of an expression; POISON on an error, if errors are collected."""
    with deeper(env, node.at):
        try:
            value = EVALUATE[type(node)](node, env)
        except UserError as error:                         # comparisons of sizes are placed in Python
            return report(error if is_in_text(error.loc) else in_text(error, env.loc(node.at)))
        if session.watch is not None:
            session.watch(node, value)
        return value


def known(node: S.Node, env: Environment, what: str) -> Any:
    """The value of an expression that must be a compile-time constant, not a tensor."""
    value = evaluate(node, env)
    if isinstance(value, Tensor):
        raise env.error(node.at, "MLC0631", f"{what} is {shown(value)}, which is known only when the program runs",
                          "use a number, or a size of a declared type")
    return value


# -- names ------------------------------------------------------------------------------------------------------------
def look_up(name: str, env: Environment) -> Any:
    """The value of a name of the function, its model, the file or the library, which may be Missing; KeyError."""
    if name in env.names:
        return env.names[name]
    if env.owner is not None and name in env.owner.member_names():
        return getattr(env.owner, name)
    try:
        return env.scope.look_up(name)
    except KeyError:
        if (found := library.find(name)) is None:
            raise
        return found


def _name(node: S.Name, env: Environment) -> Any:
    try:
        found = look_up(node.name, env)
    except KeyError:
        raise env.error(node.at, "MLC0622", f"there is no {node.name} here", _near(node.name, env)) from None
    if isinstance(found, Missing):
        raise env.error(node.at, "MLC0623", f"{node.name} {found.why}",
                          f"give {node.name} a value before")
    return found


_FOREIGN = {"True": "write true", "False": "write false", "None": "write none", "len": "use x.shape[0]",
            "range": "write first..last", "print": "return what you want to see", "self": "leave it out: a model's own "
            "names stand alone", "float": "write f32", "int": "write i64", "enumerate": "write zip(0..n, xs)",
            "torch": "leave it out: functions stand alone", "mlc": "leave it out: functions stand alone",
            "np": "leave it out: functions stand alone", "F": "leave it out: functions stand alone",
            "lambda": "write x => value"}


def _near(name: str, env: Environment) -> str | None:
    if name in _FOREIGN:
        return _FOREIGN[name]
    own = [n for n, v in env.names.items() if not isinstance(v, Missing)]
    members = list(env.owner.member_names()) if env.owner is not None else []
    return (suggestion(name, [*own, *members, *env.scope.names()]) or suggestion(name, library.names())
            or (f"it may be {library_path}" if (library_path := _in_a_namespace(name)) else
                "define it above, or give it as a parameter"))


def _in_a_namespace(name: str) -> str | None:
    return next((f"{path}.{name}" for path in library.NAMESPACES if library.find(f"{path}.{name}") is not None), None)


def _attribute(node: S.Attribute, env: Environment) -> Any:
    value = evaluate(node.value, env)
    if value is POISON:
        return POISON
    name = node.name
    if isinstance(value, library.Namespace):
        if (found := library.find(f"{value.path}.{name}")) is not None:
            return found
        raise env.error(node.at, "MLC0622", f"{value.path} has no {name} for programs",
                          suggestion(name, library.names_in(value.path))
                          or "it has " + ", ".join(library.names_in(value.path)[:8]) + ", ...")
    if isinstance(value, Tensor):
        if name in PROPERTIES:
            return call_library(lambda: getattr(value, name), name, (), {}, node.at, env)
        if hasattr(Tensor, name) and name in OPERATIONS and name not in library.WITHHELD:
            return getattr(value, name)
        function = library.find(name)
        if function is not None and callable(function):
            return functools.partial(function, value)
        raise env.error(node.at, "MLC0624", f"{shown(value)} has no {name}",
                          suggestion(name, [*PROPERTIES, *library.names()])
                          or "it has T, mT, shape, ndim, dtype, and the functions of the library: x.f() is f(x)")
    if isinstance(value, Scoped):
        return value.member(name, node.at, env)
    if isinstance(value, tree.AttributeTree):
        return _member(value, name, node.at, env)
    if isinstance(value, Applicable) or not hasattr(value, "__dict__"):
        raise env.error(node.at, "MLC0624", f"{shown(value)} has no {name}", "leave it out")
    if isinstance(value, library.package("optim.Optimizer")) and name in ("init", "update"):
        return getattr(value, name)
    raise env.error(node.at, "MLC0624", f"{shown(value)} has no {name} for programs",
                      "optimisers have init and update")


class Scoped:
    """An imported file."""

    def member(self, name: str, at: int, env: Environment) -> Any:
        raise NotImplementedError


def _member(value: Any, name: str, at: int, env: Environment) -> Any:
    """A parameter, layer, size or function of a model, or an attribute of a library layer."""
    names = value.member_names() if hasattr(value, "member_names") else [
        n for n, x in vars(value).items() if (not n.startswith("_") and not callable(x)) or isinstance(
            x, tree.AttributeTree)]
    if name in names:
        return getattr(value, name)
    raise env.error(at, "MLC0624", f"a {type(value).__name__} has no {name}",
                      suggestion(name, names) or "it has " + (", ".join(names) or "nothing"))


# -- literals and containers ------------------------------------------------------------------------------------------
def _literal(node: S.Literal, env: Environment) -> Any:
    if type(node.value) is int and not -LARGEST - 1 <= node.value <= LARGEST:
        raise env.error(node.at, "MLC0630", f"{str(node.value)[:40]} does not fit in 64 bits", "write a float: 1e30")
    return node.value


def _tuple(node: S.Tuple, env: Environment) -> Any:
    values = [evaluate(x, env) for x in node.items]
    return values if node.brackets else tuple(values)


def _comprehension(node: S.Comprehension, env: Environment) -> Any:
    source, out = evaluate(node.source, env), []
    if nothing_is_known(source):
        inner = env.copy()
        bind(node.target, POISON, inner)
        evaluate(node.value, inner)                        # reports its errors
        return POISON
    for value in unrolled(source, node.source.at, env):
        inner = env.copy()
        bind(node.target, value, inner)
        out.append(evaluate(node.value, inner))
    return out


def nothing_is_known(source: Any) -> bool:
    """Whether the source of a loop has an error, so that its trip count is unknown."""
    return is_poisoned(source) or (isinstance(source, Zipped) and is_poisoned(source.parts))


def unrolled(source: Any, at: int, env: Environment) -> Sequence[Any]:
    """The values that an unrolled loop iterates over."""
    if isinstance(source, Zipped):
        return list(zip(*(unrolled(part, at, env) for part in source.parts)))
    if isinstance(source, Span):
        for x in (source.first, source.last):
            if type(x) is not int:
                raise env.error(at, "MLC0631", f"an unrolled loop goes from {shown(source.first)} to "
                                  f"{shown(source.last)}, which is known only when the program runs",
                                  "leave unroll out, or use numbers")
        source = range(source.first, source.last)
    if isinstance(source, Tensor):
        if not source.shape or not isinstance(source.shape[0], int):
            raise env.error(at, "MLC0631", f"{shown(source)} has no number of rows that is known", "leave unroll out")
        source = range_of(source, at, env)
    if not isinstance(source, range | list | tuple) and not hasattr(source, "__iter__"):
        raise env.error(at, "MLC0632", f"{shown(source)} is nothing to go through",
                          "use a range first..last, a tensor, or a list")
    values = source if isinstance(source, range | list | tuple) else list(source)
    if len(values) > LONGEST:
        raise env.error(at, "MLC0621", f"a loop of {len(values)} steps is unrolled, at most {LONGEST} may be",
                          "leave unroll out")
    return values


def range_of(source: Tensor, at: int, env: Environment) -> Sequence[Any]:
    """The rows of a tensor."""
    if source.shape[0] > LONGEST:
        raise env.error(at, "MLC0621", f"a loop of {source.shape[0]} steps is unrolled, at most {LONGEST} may be",
                          "leave unroll out")
    return [call_library(OPERATIONS["getitem"], "getitem", (source, i), {}, at, env)
            for i in range(source.shape[0])]


def bind(target: S.Node, value: Any, env: Environment) -> None:
    """Assign a value to a name or a tuple of names."""
    if isinstance(target, S.Name):
        env.names[target.name] = value
        if session.watch is not None:
            session.watch(target, value)
        return
    assert isinstance(target, S.Tuple)
    if value is POISON:
        for x in target.items:
            bind(x, POISON, env)
        return
    if isinstance(value, Tensor) and value.shape and isinstance(value.shape[0], int):
        value = range_of(value, target.at, env)
    if not isinstance(value, tuple | list) or len(value) != len(target.items):
        for x in target.items:
            bind(x, POISON, env)
        found = f"{len(value)} values" if isinstance(value, tuple | list) else shown(value)
        raise env.error(target.at, "MLC0633", f"{len(target.items)} names are given {found}",
                          "write as many names as there are values")
    for x, part in zip(target.items, value):
        bind(x, part, env)


def names_in(target: S.Node) -> list[str]:
    """The names that a target binds."""
    out, work = [], [target]
    while work:
        x = work.pop(0)
        if isinstance(x, S.Name):
            out.append(x.name)
        elif isinstance(x, S.Tuple):
            work[:0] = x.items
    return out


# -- operators --------------------------------------------------------------------------------------------------------
def _chain(node: S.Chain, env: Environment) -> Any:
    value = evaluate(node.first, env)
    for op, at, operand in node.rest:
        other = evaluate(operand, env)
        try:
            value = binary(op, value, other, at, env)
        except UserError as error:
            value = report(error)
    return value


def _prefix(node: S.Prefix, env: Environment) -> Any:
    value = evaluate(node.operand, env)
    if value is POISON:
        return POISON
    if node.operator == "not":
        if isinstance(value, bool):
            return not value
        return call_library(OPERATIONS["logical_not"], "not", (_truth(value, node, env),), {}, node.at, env)
    if isinstance(value, int | float | Size):
        return -value if node.operator == "-" else value
    if isinstance(value, tree.AttributeTree | tuple | list | dict):
        return binary("*", -1 if node.operator == "-" else 1, value, node.at, env)
    if not isinstance(value, Tensor):
        raise env.error(node.at, "MLC0634", f"{node.operator} is not defined on {shown(value)}", "use a tensor")
    return call_library(OPERATIONS["neg" if node.operator == "-" else "positive"], node.operator, (value,), {},
                        node.at, env)


def _truth(value: Any, node: S.Node, env: Environment) -> Any:
    """An operand of and, or, not: a bool, or a tensor."""
    if isinstance(value, bool | Tensor):
        return value
    raise env.error(node.at, "MLC0634", f"{shown(value)} is neither true nor false", "compare it: x != 0")


def _logical(node: S.Logical, env: Environment) -> Any:
    out: Any = None
    for item in node.items:
        if out is (node.operator == "or"):
            break                                          # as in n != 0 and m / n > 1
        value = evaluate(item, env)
        if value is POISON or out is POISON:
            out = POISON
            continue
        value = _truth(value, item, env)
        if out is None:
            out = value
        elif isinstance(out, bool) and isinstance(value, bool):
            out = (out and value) if node.operator == "and" else (out or value)
        else:
            out = call_library(OPERATIONS[f"logical_{node.operator}"], node.operator, (out, value), {}, node.at, env)
    return out


def _compared(node: S.Compared, env: Environment) -> Any:
    left, out = evaluate(node.first, env), None
    for op, at, operand in node.rest:
        right = evaluate(operand, env)
        try:
            found = compare(op, left, right, at, env)
        except UserError as error:
            found = report(error)
        if out is None or found is POISON or out is POISON:
            out = POISON if out is POISON else found
        elif isinstance(out, bool) and isinstance(found, bool):
            out = out and found
        else:
            out = call_library(OPERATIONS["logical_and"], op, (out, found), {}, at, env)
        left = right
    return out


def _range(node: S.Range, env: Environment) -> Any:
    first, last = evaluate(node.first, env), evaluate(node.last, env)
    if first is POISON or last is POISON:
        return POISON
    for x, part in ((first, node.first), (last, node.last)):
        if isinstance(x, bool) or not isinstance(x, int | Size | Tensor):
            raise env.error(part.at, "MLC0632", f"a range has the bound {shown(x)}", "use integers")
    return Span(first, last)


# -- indices ----------------------------------------------------------------------------------------------------------
def _indexed(node: S.Indexed, env: Environment) -> Any:
    value = evaluate(node.value, env)
    parts = [_index(x, env) for x in node.indices]
    if value is POISON or is_poisoned(parts):
        return POISON
    if isinstance(value, Tensor):
        key = parts[0] if node.alone else tuple(parts)
        return call_library(OPERATIONS["getitem"], "indexing", (value, key), {}, node.at, env)
    if not node.alone or (not isinstance(value, tuple | list | dict) and not hasattr(value, "__getitem__")):
        raise env.error(node.at, "MLC0634", f"{shown(value)} cannot be indexed", "index tensors, tuples and lists")
    key = parts[0]
    if isinstance(key, Tensor | float | Size) or key is None or key is ...:
        raise env.error(node.indices[0].at, "MLC0631", f"{shown(value)} is indexed with {shown(key)}",
                          "use a number that is known: in a loop, unroll it")
    try:
        return value[key]
    except (IndexError, KeyError, TypeError, ValueError):
        count = f" has {len(value)} parts, and" if hasattr(value, "__len__") else ""
        part = ":".join("" if x is None else str(x) for x in (key.start, key.stop, key.step)) if isinstance(
            key, slice) else key
        raise env.error(node.indices[0].at, "MLC0635", f"{shown(value)}{count} has no part {part}",
                          "count from 0, or from -1 at the end") from None


def _index(node: S.Node, env: Environment) -> Any:
    if not isinstance(node, S.Slice):
        return evaluate(node, env)
    bounds = [None if x is None else evaluate(x, env) for x in node.parts]
    return POISON if is_poisoned(bounds) else slice(*bounds)


# -- calls ------------------------------------------------------------------------------------------------------------
def arguments(node: S.Call, env: Environment) -> tuple[list[Any], dict[str, Any]]:
    """The values of a call's arguments, which may be POISON."""
    return [evaluate(x, env) for x in node.arguments], {name: evaluate(x, env) for name, _, x in node.keywords}


def _call(node: S.Call, env: Environment) -> Any:
    function = evaluate(node.function, env)
    args, keywords = arguments(node, env)
    if function is POISON:
        return POISON
    at = node.function.at
    if isinstance(function, Applicable):
        return function.apply(args, keywords, at, env)
    if isinstance(function, tree.AttributeTree) and hasattr(function, "model") and "forward" not in (
            function.model.functions()) and not function.model.is_whole:
        return POISON
    name = _called(node.function)
    if not callable(function):
        raise env.error(at, "MLC0625", f"{shown(function)} is no function", "leave the brackets out, or write *")
    if isinstance(function, DType):
        raise env.error(at, "MLC0625", f"{name} is an element type and no function",
                          f"write cast({', '.join(map(shown, args)) if len(args) == 1 else 'x'}, {name})")
    numeric = library.of_numbers(function) if args and not keywords else None
    if numeric in (max, min) and len(args) > 1 and all(
            isinstance(x, int | float | Size) for x in args) and any(isinstance(x, Size) for x in args):
        function, numeric = OPERATIONS["maximum" if numeric is max else "minimum"], None
    if numeric is not None and all(map(is_static_number, args)):
        try:
            return numeric(*args)
        except (ArithmeticError, ValueError, TypeError) as error:
            why = "is not defined" if isinstance(error, ValueError) else f"has no result: {error}"
            raise env.error(at, "MLC0630", f"{name} of {', '.join(map(str, args))} {why}",
                              "change the number") from None
    args = [_spread(x, at, env) for x in args]
    keywords = {k: _spread(v, at, env) for k, v in keywords.items()}
    return call_library(function, name, args, keywords, at, env)


def _called(node: S.Node) -> str:
    return str(node.name) if isinstance(node, S.Name | S.Attribute) else "the function"


def _spread(x: Any, at: int, env: Environment) -> Any:
    """A range as an argument is the tensor of its numbers."""
    if isinstance(x, Span):
        return call_library(OPERATIONS["arange"], "arange", (x.first, x.last), {}, at, env)
    return x


def _derivative(node: S.Derivative, env: Environment) -> Any:
    function = evaluate(node.function, env)
    if function is POISON:
        return POISON
    if not callable(function):
        raise env.error(node.at, "MLC0625", f"{shown(function)} is no function, and has no derivative",
                          "put ' after the name of a function")
    return call_library(library.find("grad"), "grad", (function,), {}, node.at, env)


EVALUATE: dict[type, Callable[[Any, Environment], Any]] = {
    S.Name: _name, S.Literal: _literal, S.Tuple: _tuple, S.Comprehension: _comprehension, S.Logical: _logical,
    S.Chain: _chain, S.Compared: _compared, S.Prefix: _prefix, S.Range: _range, S.Call: _call, S.Indexed: _indexed,
    S.Attribute: _attribute, S.Derivative: _derivative,
}
"""By the kind of node; functions.py and control.py add theirs."""
