"""Implementations of operations for sparse tensors, by the name of the operation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from mlc.frontend.location import user_loc
from mlc.frontend.sparse.layout import strided
from mlc.ir.diag import Error, UserTypeError

IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {}
F = TypeVar("F", bound=Callable[..., Any])


def implements(*names: str) -> Callable[[F], F]:
    """Decorator of the implementation of operations for sparse operands; it has the parameters of the operation. If it
    annotates the first one as `SparseTensor`, that operand has to be sparse."""
    def decorate(f: F) -> F:
        for name in names:
            IMPLEMENTATIONS[name] = _located(f, name)
        return f

    return decorate


def _located(f: Callable[..., Any], name: str) -> Callable[..., Any]:
    """f, whose errors are at the user's line."""
    first = next(iter(f.__annotations__.values()), "")

    @functools.wraps(f)
    def run(*args: Any, **keywords: Any) -> Any:
        try:
            if first == "SparseTensor" and args:
                need_sparse(args[0], name)
            return f(*args, **keywords)
        except Error as error:
            if not error.loc.file:
                error.loc = user_loc()
            raise

    return run


def implementation_of(name: str, layout: Any) -> Callable[..., Any]:
    """The implementation of an operation; UserTypeError if there is none for sparse operands."""
    found = IMPLEMENTATIONS.get(name)
    if found is None:
        raise unsupported(name, layout)
    return found


def need_sparse(x: Any, name: str, why: str = "this operand is to be sparse") -> None:
    """UserTypeError unless a value is a sparse tensor."""
    if not getattr(x, "composite", False):
        raise unsupported(name, getattr(x, "layout", strided), why, "call to_sparse() on it")


def unsupported(name: str, layouts: Any, why: str = "", hint: str = "call to_dense() first") -> UserTypeError:
    """The error for an operation that is not defined for operands of these layouts."""
    return UserTypeError(f"{name.removeprefix('Tensor.').strip('_')} is not defined for tensors of layout {layouts}"
                         + (f": {why}" if why else ""), code="MLC0772", loc=user_loc(), hint=hint)
