"""Declared types: abstract arguments of these types for checking a program, and type checks of values.

A name among the sizes that stands for nothing else is a size of its own: it is told by the first argument that has it,
and the same in all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend import tree
from mlc.frontend.dtypes import DType, as_dtype
from mlc.frontend.element_types import limits
from mlc.frontend.language import syntax as S
from mlc.frontend.language.diagnostics import suggestion
from mlc.frontend.language.expressions import arguments, evaluate
from mlc.frontend.language.library import call_library
from mlc.frontend.language.values import ELEMENTS, POISON, Applicable, Environment, is_poisoned, shown
from mlc.frontend.signature import Spec
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.trace import current
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import TensorType

REST = "..."
"""The name in an env of the sizes that match `...` in a type."""


class Modelled(Applicable):
    """Interface of a model of the program for types."""

    def template(self, call: tuple[Sequence[Any], dict[str, Any]] | None, at: int, env: Environment) -> Any:
        """An instance with `Spec`s in place of its tensors."""
        raise NotImplementedError

    def accepts(self, value: Any) -> bool:
        raise NotImplementedError


# -- sizes ------------------------------------------------------------------------------------------------------------
def names_of(nodes: Sequence[S.Node]) -> list[S.Name]:
    """The names in sizes."""
    found, work = list[S.Name](), list(nodes)
    while work:
        x = work.pop(0)
        if isinstance(x, S.Name):
            found.append(x)
        elif isinstance(x, S.Chain):
            work += [x.first, *(operand for _, _, operand in x.rest)]
        elif isinstance(x, S.Prefix):
            work.append(x.operand)
    return found


def _open_names(node: S.Node, env: Environment) -> list[str]:
    """The unbound names in a size."""
    return [n for n in dict.fromkeys(x.name for x in names_of([node])) if not _is_known(n, env)]


def _is_known(name: str, env: Environment) -> bool:
    return name in env.names or name in env.scope.names() or (
        env.owner is not None and name in env.owner.member_names())


def _size(node: S.Node, env: Environment) -> Any:
    """The value of a size whose names are all bound; POISON on an error."""
    value = evaluate(node, env)
    if value is POISON:
        return POISON
    if isinstance(value, bool) or not isinstance(value, int | Size):
        raise env.error(node.at, "MLC0637", f"{shown(value)} is no size", "a size is a number of at least 0, or a "
                          "name for one")
    if isinstance(value, int) and not 0 <= value < 2**40:
        raise env.error(node.at, "MLC0637", f"{value} is no size", "a size is a number from 0 to 2 ** 40")
    return value


def _element(node: S.TensorType | S.NamedType, name: str, env: Environment) -> Any:
    if name not in ELEMENTS:
        raise _no_type(name, node, env, [])
    return as_dtype(ELEMENTS[name])


def _no_type(name: str, node: S.Node, env: Environment, models: Sequence[str]) -> UserError:
    """The error for an unknown type name; suggests f32 for `float32`."""
    digits = name.lstrip("abcdefghijklmnopqrstuvwxyz_")
    other = {"float": "f32", "int": "i64", "double": "f64", "long": "i64", "Tensor": "f32[sizes]", "half": "f16",
             "str": "no type at all"}.get(name) or (name[0] + digits if name[0] + digits in ELEMENTS else "")
    hint = f"write {other}" if other else suggestion(name, [*ELEMENTS, *models])
    return env.error(node.at, "MLC0638", f"{name} is no element type and no model",
                       hint or "element types are " + ", ".join(ELEMENTS))


def _is_rest(node: S.Node) -> bool:
    return isinstance(node, S.Literal) and node.value is ...


def is_definite(node: S.Node) -> bool:
    """Whether a declared type determines the rank."""
    if isinstance(node, S.TupleType):
        return all(map(is_definite, node.items))
    return not isinstance(node, S.TensorType) or not any(map(_is_rest, node.shape))


def _shape_nodes(node: S.TensorType | S.NamedType, env: Environment) -> Sequence[S.Node]:
    nodes = node.shape if isinstance(node, S.TensorType) else ()
    if any(map(_is_rest, nodes[1:])):
        raise env.error(node.at, "MLC0637", "... stands among the sizes", "put it before the first of them")
    return nodes


# -- abstract arguments -----------------------------------------------------------------------------------------------
def template(node: S.Node, env: Environment) -> Any:
    """A tree of `Spec`s for a declared type. Unbound sizes become symbols, bound in the env."""
    if isinstance(node, S.TupleType):
        items = tuple(template(x, env) for x in node.items)
        return POISON if is_poisoned(items) else items
    if isinstance(node, S.LikeType):
        return as_specs(evaluate(node.value, env))
    assert isinstance(node, S.TensorType | S.NamedType)
    if isinstance(node, S.NamedType) and (len(node.names) > 1 or node.arguments or node.names[0] not in ELEMENTS):
        return _model(node, env).template(
            arguments(node.arguments, env) if node.arguments is not None else None, node.at, env)
    element = _element(node, node.element if isinstance(node, S.TensorType) else node.names[0], env)
    shape: list[Any] = []
    for x in _shape_nodes(node, env):
        if _is_rest(x):
            shape += env.names.setdefault(REST, (sizes.sym(REST),))
            continue
        for name in _open_names(x, env):
            env.names[name] = sizes.sym(name)
        shape.append(_size(x, env))
    return POISON if is_poisoned(shape) else Spec(TensorType(tuple(shape), element.ir))


def as_specs(value: Any) -> Any:
    """A value with types in place of its tensors."""
    if is_poisoned(value):
        return POISON
    leaves, structure = tree.flatten(value)
    return structure.unflatten([Spec(TensorType(x.shape, x.dtype.ir)) if isinstance(x, Tensor) else x for x in leaves])


def _model(node: S.NamedType, env: Environment) -> Modelled:
    found: Any = S.Name(node.names[0])
    found.at = node.at
    if len(node.names) == 1 and not _is_known(node.names[0], env):
        raise _no_type(node.names[0], node, env, env.scope.names())
    for name in node.names[1:]:
        found = S.Attribute(found, name)
        found.at = node.at
    value = evaluate(found, env)
    if not isinstance(value, Modelled):
        if value is POISON:
            return _Wrong()
        raise env.error(node.at, "MLC0638", f"{'.'.join(node.names)} is {shown(value)}, which is no type",
                          "a type is f32[sizes], a model, or (type, type)")
    return value


class _Wrong(Modelled):
    """Placeholder for a model with errors."""

    def template(self, call: Any, at: int, env: Environment) -> Any:
        return POISON

    def accepts(self, value: Any) -> bool:
        return True


def argument(specs: Any, name: str) -> Any:
    """Arguments of the function being recorded, of these types."""
    leaves, structure = tree.flatten(specs)
    trace = current()
    return structure.unflatten([trace.arg(x.type, name if len(leaves) == 1 else "") if isinstance(x, Spec) else x
                                for x in leaves])


# -- type checks of values --------------------------------------------------------------------------------------------
class Misfit(Exception):
    """A value does not have its declared type: the reason, and a hint."""

    def __init__(self, message: str, hint: str) -> None:
        self.message, self.hint = message, hint


def fit(node: S.Node, value: Any, env: Environment, what: str) -> Any:
    """Convert a value to the declared type: numbers become tensors, unbound sizes are bound. Raises Misfit."""
    if is_poisoned(value):
        return POISON
    if isinstance(node, S.TupleType):
        if not isinstance(value, tuple | list) or len(value) != len(node.items):
            raise Misfit(f"{what} is {shown(value)}, declared {written(node, env)}",
                         f"give {len(node.items)} values")
        return tuple(fit(t, x, env, f"part {i} of {what}") for i, (t, x) in enumerate(zip(node.items, value)))
    if isinstance(node, S.LikeType):
        return _fit_like(node, value, env, what)
    assert isinstance(node, S.TensorType | S.NamedType)
    if isinstance(node, S.NamedType) and (len(node.names) > 1 or node.arguments or node.names[0] not in ELEMENTS):
        model = _model(node, env)
        if not model.accepts(value):
            raise Misfit(f"{what} is {shown(value)}, declared {written(node, env)}", "give it that model")
        return value
    element = _element(node, node.element if isinstance(node, S.TensorType) else node.names[0], env)
    nodes = _shape_nodes(node, env)
    value = _as_tensor(value, element, node, env, what)
    if value.dtype is not element:
        short = next(k for k, v in ELEMENTS.items() if v == element.name)
        raise Misfit(f"{what} is {shown(value)}, declared {written(node, env)}", f"write cast(x, {short})")
    shape = list(value.shape)
    if nodes and _is_rest(nodes[0]) and len(shape) >= len(nodes) - 1:
        count = len(shape) - len(nodes) + 1
        rest = tuple(shape[:count])
        if env.names.setdefault(REST, rest) != rest:
            raise _differs(node, value, env, what)
        nodes, shape = nodes[1:], shape[count:]
    if len(nodes) != len(shape):
        raise Misfit(f"{what} is {shown(value)}, declared {written(node, env)}",
                     f"give it {len(nodes)} dimension{'s' * (len(nodes) != 1)}")
    for x, found in zip(nodes, shape):
        fits = _fits(x, found, env)
        if fits is None:
            env.unsettled.append((node, value, what))
        elif not fits:
            raise _differs(node, value, env, what)
    return value


def settle(env: Environment) -> None:
    """Compare the sizes whose names were bound only after their turn. Raises Misfit."""
    unsettled, env.unsettled = env.unsettled, []
    for node, value, what in unsettled:
        fit(node, value, env, what)
    env.unsettled = []                                     # nothing binds the names of those that are left


def _differs(node: S.Node, value: Any, env: Environment, what: str) -> Misfit:
    names = dict.fromkeys(x.name for x in names_of(node.shape)) if isinstance(node, S.TensorType) else {}
    values = {n: env.names.get(n, getattr(env.owner, n, None)) for n in names}
    known = [f"{n} is {v}" for n, v in values.items() if isinstance(v, int | Size) and str(v) != n]
    return Misfit(f"{what} is {shown(value)}, declared {written(node, env)}"
                  + (f", where {', '.join(known)}" if known else ""), "change the value or the declared type")


def _fits(node: S.Node, found: Dim, env: Environment) -> bool | None:
    """Whether a size matches the declared one; binds an unbound name. None if it does not determine the names."""
    names = _open_names(node, env)
    if not names:
        wanted = _size(node, env)
        return wanted is POISON or bool(wanted == found)
    inner = env.copy()
    for name in names:
        inner.names[name] = sizes.sym(name)
    wanted = _size(node, inner)
    if wanted is POISON:
        return True
    if len(names) > 1:
        return None
    name = names[0]
    rest = sizes.substitute(wanted, {name: 0})
    factor = sizes.substitute(wanted, {name: 1}) - rest
    if wanted != factor * sizes.sym(name) + rest or not isinstance(factor, int) or factor < 1:
        return None
    value = found - rest
    if sizes.modulo(value, factor) != 0 or (isinstance(value, int) and value < 0):
        return False
    env.names[name] = sizes.divide(value, factor)
    return True


def _as_tensor(value: Any, element: Any, node: S.Node, env: Environment, what: str) -> Any:
    """A number as a tensor of the declared element type."""
    if isinstance(value, Tracer) and value.weak and not (value.dtype.is_floating_point
                                                         and not element.is_floating_point):
        return call_library(OPERATIONS["cast"], "cast", (value, element), {}, node.at, env)
    if isinstance(value, Tensor):
        return value
    if isinstance(value, int | float | Size):
        if not holds(element, value):
            raise Misfit(f"{what} is {shown(value)}, declared {written(node, env)}", in_range(element, value))
        if isinstance(value, Size):
            return call_library(OPERATIONS["cast"], "cast", (value, element), {}, node.at, env)
        return call_library(OPERATIONS["full"], "full", ((), value), {"dtype": element}, node.at, env)
    raise Misfit(f"{what} is {shown(value)}, declared {written(node, env)}", "give it a tensor")


def holds(element: DType, value: Any) -> bool:
    """Whether a number that is known, or a size, is one of an element type, apart from how floats are rounded."""
    if element.is_floating_point or isinstance(value, Size):
        return True
    first, last = limits(element)
    return isinstance(value, int) and first <= value <= last


def in_range(element: DType, value: Any) -> str:
    """The hint for a number that an element type does not have."""
    if isinstance(value, float):
        return "give it a whole number"
    first, last = limits(element)
    return f"give it a number from {first} to {last}"


def _fit_like(node: S.LikeType, value: Any, env: Environment, what: str) -> Any:
    wanted = as_specs(evaluate(node.value, env))
    found = as_specs(value)
    if wanted is POISON or found is POISON:
        return value
    (a, s), (b, t) = tree.flatten(found), tree.flatten(wanted)
    if s != t or a != b:
        raise Misfit(f"{what} is not of the type it is declared to be like", "give it a value of that type")
    return value


# -- as text ----------------------------------------------------------------------------------------------------------
def written(node: S.Node, env: Environment) -> str:
    """Source text of a type or size."""
    if isinstance(node, S.TensorType):
        return f"{node.element}[{', '.join(written(x, env) for x in node.shape)}]"
    if isinstance(node, S.NamedType):
        given = ", ".join(written(x, env) for x in node.arguments.arguments) if node.arguments else ""
        return ".".join(node.names) + (f"({given})" if node.arguments else "")
    if isinstance(node, S.TupleType):
        return f"({', '.join(written(x, env) for x in node.items)})"
    if isinstance(node, S.Name):
        return node.name
    if isinstance(node, S.Literal):
        return "..." if node.value is ... else str(node.value)
    if isinstance(node, S.Chain):
        return written(node.first, env) + "".join(f" {op} {written(x, env)}" for op, _, x in node.rest)
    return "like ..." if isinstance(node, S.LikeType) else "?"


