"""Implementations of operations for sparse tensors, by the name of the operation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from mlc.frontend.location import user_loc
from mlc.ir.diag import Error, UserTypeError

IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {}
F = TypeVar("F", bound=Callable[..., Any])


def implements(*names: str) -> Callable[[F], F]:
    """Decorator of the implementation of operations for sparse operands; it has the parameters of the operation."""
    def decorate(f: F) -> F:
        for name in names:
            IMPLEMENTATIONS[name] = _located(f)
        return f

    return decorate


def _located(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, whose errors are at the user's line."""
    @functools.wraps(f)
    def run(*args: Any, **keywords: Any) -> Any:
        try:
            return f(*args, **keywords)
        except Error as error:
            if not error.loc.file:
                error.loc = user_loc()
            raise

    return run


def implementation_of(name: str, args: tuple[Any, ...]) -> Callable[..., Any]:
    """The implementation of an operation; UserTypeError if there is none for sparse operands."""
    found = IMPLEMENTATIONS.get(name)
    if found is None:
        operands = [x for arg in args for x in (arg if isinstance(arg, list | tuple) else (arg,))]
        layouts = dict.fromkeys(str(x.layout) for x in operands if getattr(x, "composite", False))
        raise unsupported(name, " and ".join(layouts) or "a sparse layout")
    return found


def unsupported(name: str, layouts: Any, why: str = "", hint: str = "call to_dense() first") -> UserTypeError:
    """The error for an operation that is not defined for operands of these layouts."""
    return UserTypeError(f"{name.removeprefix('Tensor.').strip('_')} is not defined for tensors of layout {layouts}"
                         + (f": {why}" if why else ""), code="MLC0772", loc=user_loc(), hint=hint)
