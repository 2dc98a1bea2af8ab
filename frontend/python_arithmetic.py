"""Python's operators on numbers of a program that is recorded: their results are numbers, too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mlc.frontend.operators import Operators

ON_BOOLS = ("and", "rand", "or", "ror", "xor", "rxor", "eq", "ne", "lt", "le", "gt", "ge")
"""Operators that are the same on bools; for others a bool is an integer."""
ON_NUMBERS = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod",
              "rmod", "pow", "rpow", "lshift", "rlshift", "rshift", "rrshift", "neg", "pos", "abs", "invert", *ON_BOOLS)


class _Numbers(threading.local):
    """Whether results of operations on Python numbers are numbers: of public functions they are tensors."""

    kept = False


numbers = _Numbers()


@contextmanager
def on_numbers(kept: bool = True) -> Iterator[None]:
    """Context in which the results of operations on Python numbers are numbers, or tensors as of public functions."""
    saved, numbers.kept = numbers.kept, kept
    try:
        yield
    finally:
        numbers.kept = saved


def _operator(name: str) -> Callable[..., Any]:
    """The operator of tensors of this name, for numbers as well."""
    of_tensors = getattr(Operators, name)
    calculates = name.strip("_") not in ON_BOOLS

    def operator(self: Any, *other: Any) -> Any:
        if not self.weak:
            return of_tensors(self, *other)
        with on_numbers():
            return of_tensors(self.as_operand(name, *other) if calculates else self, *other)

    return operator


class PythonArithmetic(Operators):
    """Base of tracers, some of which stand for numbers."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __divmod__(self: Any, other: Any) -> Any:
        return (self // other, self % other) if self.weak else NotImplemented

    def __rdivmod__(self: Any, other: Any) -> Any:
        return (other // self, other % self) if self.weak else NotImplemented


for _name in ON_NUMBERS:
    setattr(PythonArithmetic, f"__{_name}__", _operator(f"__{_name}__"))
