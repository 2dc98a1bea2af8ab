"""Argument checks of public functions, derived from the annotations of their parameters.

Functions run unchecked. If one fails with a built-in exception, its arguments are checked against the annotations, and
the first mismatch is reported. So a valid call pays nothing for the check.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from mlc.frontend.dtypes import DType, as_dtype
from mlc.frontend.location import user_loc
from mlc.frontend.operators import is_operand
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import Error, Loc, UserMemoryError, UserTypeError
from mlc.ir.sizes import Size

P = ParamSpec("P")
R = TypeVar("R")

OutOfMemoryError = UserMemoryError
"""PyTorch's name of what is raised where a call or a compilation runs out of memory."""
FAILURES = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, MemoryError)
"""Exceptions that Python raises for an argument that a function does not accept."""
NUMPY_NAMES = {"axis": "dim", "axes": "dim", "keepdims": "keepdim"}
"""Parameters with an alias, which PyTorch accepts too."""


def _integer(x: Any) -> bool:
    return isinstance(x, Size) or (not isinstance(x, bool | np.bool_) and not isinstance(x, np.ndarray)
                                   and hasattr(type(x), "__index__"))


def _integers(x: Any) -> bool:
    return isinstance(x, list | tuple) and all(map(_integer, x))


def _number(x: Any) -> bool:
    return isinstance(x, bool | int | float | complex | np.bool_ | np.number | Size)


def _real(x: Any) -> bool:
    return _number(x) and not isinstance(x, complex | np.complexfloating)


def _array(x: Any) -> bool:
    return is_operand(x) and not (isinstance(x, np.ndarray | np.generic) and x.dtype.kind not in "biufcV")


def _pairs(x: Any) -> bool:
    return isinstance(x, list | tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in x)


def _dtype(x: Any) -> bool:
    if isinstance(x, DType):
        return True
    try:
        as_dtype(x)
    except UserTypeError:
        return False
    return True


KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "int": ("an integer", _integer), "Dim": ("a size", _integer), "float": ("a real number", _real),
    "Number": ("a number", _number), "bool": ("True or False", lambda x: isinstance(x, bool | np.bool_ | int)),
    "str": ("a string", lambda x: isinstance(x, str)), "None": ("None", lambda x: x is None),
    "Sequence[int]": ("integers", _integers), "Sequence[Dim]": ("sizes", _integers),
    "tuple[int, ...]": ("integers", _integers), "Iterable[int]": ("integers", _integers),
    "Dims": ("an integer, several, or None", lambda x: x is None or _integer(x) or _integers(x)),
    "Ints": ("an integer, or several", lambda x: _integer(x) or _integers(x)),
    "Padding": ("an integer, several, or a string",
                lambda x: _integer(x) or _integers(x) or isinstance(x, str)),
    "Operand": ("an array", _array), "Tensor": ("a tensor", lambda x: isinstance(x, Tensor)),
    "Sequence[Operand]": ("arrays", lambda x: isinstance(x, list | tuple) and all(map(_array, x))),
    "Sequence[Tensor]": ("tensors", lambda x: isinstance(x, list | tuple) and all(map(_array, x))),
    "DTypeLike": ("an element type", lambda x: x is None or _dtype(x)),
    "init.Generator": ("an mlc.Generator", lambda x: hasattr(x, "next_key")),
    "Generator": ("an mlc.Generator", lambda x: hasattr(x, "next_key")),
    "tuple[float, float]": ("two numbers", lambda x: isinstance(x, list | tuple) and len(x) == 2
                            and all(map(_number, x))),
    "tuple[float | None, float]": ("two numbers", lambda x: isinstance(x, list | tuple) and len(x) == 2
                                   and (x[0] is None or _real(x[0])) and _real(x[1])),
    "Sequence[float]": ("numbers", lambda x: isinstance(x, list | tuple) and all(map(_number, x))),
    "Iterable[Any]": ("an iterable", lambda x: isinstance(x, Iterable)),
    "Sized": ("an object with a length", lambda x: hasattr(x, "__len__")),
    "Sequence[Any]": ("a list or tuple", lambda x: isinstance(x, list | tuple)),
    "Argnums": ("an integer, or several", lambda x: _integer(x) or _integers(x)),
    "Rate": ("a number or a schedule", lambda x: _number(x) or isinstance(x, Tensor) or callable(x)),
    "Schedule": ("a schedule", callable),
    "Sequence[Schedule]": ("schedules", lambda x: isinstance(x, list | tuple) and all(map(callable, x))),
    "Sequence[Group]": ("pairs of a predicate and a dict of settings", lambda x: isinstance(x, list | tuple) and all(
        isinstance(g, list | tuple) and len(g) == 2 and callable(g[0]) and isinstance(g[1], dict) for g in x)),
    "dict[str, Any]": ("a dict", lambda x: isinstance(x, dict)),
    "Mapping[str, Any]": ("a dict", lambda x: isinstance(x, Mapping)),
    "os.PathLike[str]": ("a path", lambda x: isinstance(x, os.PathLike)),
    "Path": ("a path", lambda x: isinstance(x, os.PathLike)),
    "Iterable[Module]": ("modules", lambda x: isinstance(x, Iterable) and not isinstance(x, str | bytes | np.ndarray)),
    "Iterable[Tensor]": ("tensors", lambda x: isinstance(x, Iterable) and not isinstance(x, str | bytes)),
    "Mapping[str, Module]": ("modules by name", lambda x: isinstance(x, Mapping)),
    "Iterable[tuple[str, Module]]": ("pairs of a name and a module", _pairs),
    "Mapping[str, Tensor]": ("tensors by name", lambda x: isinstance(x, Mapping)),
    "Iterable[tuple[str, Tensor]]": ("pairs of a name and a tensor", _pairs),
    "Parameters": ("names or positions of parameters", lambda x: isinstance(x, Iterable) or _integer(x)),
    "Optimizer": ("an optimiser", lambda x: hasattr(x, "update") and hasattr(x, "init")),
}
"""By annotation: description of the expected value, and predicate. Other annotations accept anything."""


def parameters_of(f: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(f).parameters
    except (TypeError, ValueError):                        # a builtin without a signature
        return {}


def check_arguments(f: Callable[..., Any], name: str, args: Iterable[Any], keywords: dict[str, Any],
                    loc: Loc | None = None) -> None:
    """UserTypeError at the user's line if an argument of f(*args, **keywords) does not fit its parameter."""
    args = tuple(args)
    check_call(f, name, args, keywords)
    known = parameters_of(f)
    if not known:
        return
    given = inspect.signature(f).bind(*args, **keywords).arguments
    for parameter, x in given.items():
        many = known[parameter].kind is inspect.Parameter.VAR_POSITIONAL
        for value in x if many else (x,):
            if (expected := misfit(str(known[parameter].annotation), value)) is not None:
                raise UserTypeError(f"{name}: {parameter} is {described(value)}, expected {expected}", code="MLC0421",
                                    loc=loc or user_loc())


def misfit(annotation: str, x: Any) -> str | None:
    """Description of the values that a parameter of this annotation accepts, if x is not one of them."""
    kinds = [k.strip() for k in re.split(r"\|(?![^\[]*\])", annotation)]
    found = [("a function", callable) if "Callable" in k else KINDS[k] for k in kinds if "Callable" in k or k in KINDS]
    if len(found) < len(kinds) or any(fits(x) for _, fits in found):
        return None
    return " or ".join(dict.fromkeys(what for what, _ in found))


def described(x: Any) -> str:
    """Description of a value for error messages."""
    if isinstance(x, Tensor):
        return "a tensor"
    return "None" if x is None else f"{type(x).__name__} {x!r}"[:80].replace("\n", " ")


def with_one_name(known: Mapping[str, Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords with aliases resolved: numpy's `axis` is `dim`, and `out=None` is dropped."""
    if all(n in known for n in keywords):
        return keywords
    out = {n: x for n, x in keywords.items() if n in known or not (n == "out" and x is None)}
    for name, ours in NUMPY_NAMES.items():
        if name in out and name not in known and ours in known and ours not in out:
            out[ours] = out.pop(name)
    return out


def as_coded(error: BaseException, f: Callable[..., Any], name: str, args: Iterable[Any],
             keywords: dict[str, Any], loc: Loc | None = None) -> None:
    """Raise the UserError for the arguments that made f(*args, **keywords) fail with a built-in exception.

    If all arguments match their annotations, nothing is raised: then the exception is a defect of f.
    """
    if isinstance(error, MemoryError):
        raise UserMemoryError(f"{name}: {str(error) or 'beyond all memory'}", code="MLC0328",
                              loc=loc or user_loc()) from None
    check_arguments(f, name, args, keywords, loc)


def coded(f: Callable[P, R], name: str = "") -> Callable[P, R]:
    """Make f report invalid arguments as errors with a code: for public functions that record nothing."""
    name = name or f.__name__
    first = next(iter(f.__annotations__.values()), "")
    transforms = first.startswith("Callable") and "|" not in first

    @functools.wraps(f)
    def public(*args: P.args, **keywords: P.kwargs) -> R:
        if transforms and args and not callable(args[0]):  # otherwise fails only when the result is called
            check_arguments(f, name, args, keywords)
        try:
            return f(*args, **keywords)
        except Error as error:
            if not error.loc.file:
                error.loc = user_loc()
            raise
        except FAILURES as error:
            renamed = with_one_name(parameters_of(f), keywords)
            if renamed is keywords or renamed == keywords:
                as_coded(error, f, name, args, keywords)
                raise
        return public(*args, **renamed)

    return public


def coded_methods(cls: type, names: Iterable[str] = ()) -> None:
    """Make the public methods of a class, or those of these names, report invalid arguments with a code."""
    wrapped: dict[Any, Any] = {}
    for name in names or [n for n in vars(cls) if not n.startswith("_")]:
        if inspect.isfunction(f := vars(cls).get(name)):
            shown = cls.__name__ if name == "__init__" else f.__name__
            setattr(cls, name, wrapped.setdefault(f, coded(f, shown)))


def check_call(f: Callable[..., Any], name: str, args: Sequence[Any], keywords: dict[str, Any]) -> None:
    """UserTypeError at the user's line if the arguments do not fit the parameters of f."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):                        # a builtin without a signature
        return
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        known = signature.parameters
        wrong = next((n for n in keywords if n not in known), None)
        found = error if wrong is None else f"got an unexpected keyword argument {wrong!r}"
        raise UserTypeError(f"{name}: {found}", code="MLC0321", loc=user_loc(),
                            hint=f"it takes {_shown(known.values())}") from None


def _shown(parameters: Iterable[inspect.Parameter]) -> str:
    """Text of a parameter list, without the types."""
    return ", ".join(str(p.replace(annotation=p.empty)) for p in parameters if p.name != "self") or "no arguments"
