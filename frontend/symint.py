"""Symbolic sizes in the user's program: `x.shape[0]` of a tensor that is being recorded for many sizes.

The IR compares sizes structurally, with the possible answer "not provably equal". A program needs a definite answer, so
it gets a `SymInt`, which answers only questions that have the same answer for all sizes. Any other raises a UserError
that names the symbols, and `generalize` records the function again with these sizes as numbers. So no comparison, no
look-up in a dict or set and no text silently specializes the code to one size, whether it comes from the user's own
line, an operator function, or the C code of a container.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from numbers import Number
from typing import Any, NoReturn

import numpy as np

from mlc.frontend.location import is_ours, user_loc
from mlc.frontend.refusals import refused
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim, Size


@contextmanager
def asked(*about: Any) -> Iterator[None]:
    """Context for questions about sizes that may have no answer until run time, which then ends the recording."""
    try:
        yield
    except UserError as error:
        error.symbols = frozenset(name for x in about if isinstance(x, Size) for name in sizes.symbols(x))
        raise refused(error) from None


class SymInt(Size):
    """A symbolic size that supports arithmetic, and comparisons with the same result for all its values."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, float) and other.is_integer():
            other = int(other)
        if isinstance(other, Size | int | np.integer):
            with asked(self, other):
                return sizes.is_equal(plain(self), plain(other) if isinstance(other, Size) else int(other))
        if isinstance(other, float):
            return False
        if isinstance(other, Number | Decimal):
            self._unknown("equality of")
        return NotImplemented

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """int, so that isinstance() and `match` behave as in eager execution."""
        return SymInt if is_ours(sys._getframe(1).f_globals.get("__name__", "")) else int

    def __getattr__(self, name: str) -> Any:
        if hasattr(int, name) and not name.startswith("__"):
            self._unknown(f"{name} of")
        raise AttributeError(f"a size has no attribute {name!r}", name=name, obj=self)

    def __hash__(self) -> int:
        self._unknown("the hash of")                       # a dict or set would compare it with numbers

    def __add__(self, other: Any) -> Any: return _computed(Size.__add__, self, other)
    def __sub__(self, other: Any) -> Any: return _computed(Size.__sub__, self, other)
    def __rsub__(self, other: Any) -> Any: return _computed(Size.__rsub__, self, other)
    def __neg__(self) -> Any: return 0 - self
    def __mul__(self, other: Any) -> Any: return _computed(Size.__mul__, self, other)
    def __floordiv__(self, other: Any) -> Any: return _computed(Size.__floordiv__, self, other)
    def __rfloordiv__(self, other: Any) -> Any: return _computed(Size.__rfloordiv__, self, other)
    def __mod__(self, other: Any) -> Any: return _computed(Size.__mod__, self, other)
    def __rmod__(self, other: Any) -> Any: return _computed(Size.__rmod__, self, other)
    def __pos__(self) -> SymInt: return self

    __radd__, __rmul__ = __add__, __mul__

    def __bool__(self) -> bool:
        with asked(self):
            return Size.__bool__(self)

    def __lt__(self, other: Any) -> bool: return _compared(Size.__lt__, self, _bound(other, math.ceil))
    def __ge__(self, other: Any) -> bool: return _compared(Size.__ge__, self, _bound(other, math.ceil))
    def __gt__(self, other: Any) -> bool: return _compared(Size.__gt__, self, _bound(other, math.floor))
    def __le__(self, other: Any) -> bool: return _compared(Size.__le__, self, _bound(other, math.floor))

    def __index__(self) -> int: self._unknown("the number of")

    __int__ = __float__ = __index__

    def __divmod__(self, other: Dim) -> Any:
        return self // other, self % other

    def __pow__(self, power: Any) -> Any:
        if type(power) is not int or not 0 <= power <= 8:
            self._unknown(f"the power {power!r} of")
        out: Any = 1
        for _ in range(power):
            out = out * self
        return out

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __str__(self) -> str:
        return self._text(Size.__str__(self))

    def __repr__(self) -> str:
        return self._text(Size.__str__(self))

    def __format__(self, spec: str) -> str:
        return self._text(format(Size.__str__(self), spec))

    def _text(self, text: str) -> str:
        """Its symbols, for messages of this package; UserError if the program asks, which expects digits."""
        frame = sys._getframe(2)
        if not is_ours(frame.f_globals.get("__name__", "")):
            self._unknown("the text of")
        return text

    def _unknown(self, what: str) -> NoReturn:
        raise refused(UserError(
            f"{what} the size {plain(self)} is known only when the compiled function runs", code="MLC0408",
            loc=user_loc(), hint="give the sizes as numbers (dynamic=False), or compute with them as tensors",
            symbols=sizes.symbols(plain(self))))


def plain(x: Size) -> Size:
    """Convert a size to one of the IR."""
    return Size(x.terms)


def symbolic(x: Dim) -> Dim:
    """Convert a size to one for the user's program."""
    return SymInt(x.terms) if isinstance(x, Size) else x


def plain_sizes(x: Any) -> Any:
    """Convert the sizes in an argument of an operation, also in sequences and slices, to sizes of the IR."""
    if isinstance(x, SymInt):
        return plain(x)
    if type(x) in (tuple, list):
        return type(x)(map(plain_sizes, x)) if any(map(_may_hold, x)) else x
    if type(x) is slice:
        return slice(plain_sizes(x.start), plain_sizes(x.stop), plain_sizes(x.step))
    return x


def symbolic_sizes(x: Any) -> Any:
    """Convert the sizes in a result of an operation, also in tuples and lists, to sizes for the user's program."""
    if isinstance(x, Size):
        return symbolic(x)
    if type(x) in (tuple, list) and any(isinstance(d, Size) for d in x):
        return type(x)(map(symbolic_sizes, x))
    return x


def _bound(x: Any, round: Callable[[float], int]) -> Any:
    """Round a float to the integer that a size may be compared with instead."""
    return round(x) if isinstance(x, float) and math.isfinite(x) else x


def _may_hold(x: Any) -> bool:
    return isinstance(x, SymInt) or type(x) in (tuple, list, slice)


def _unanswered(name: str) -> Callable[..., Any]:
    def operator(self: SymInt, *others: Any) -> Any:
        if not all(isinstance(x, Number | Decimal) for x in others):
            return NotImplemented                          # let the other operand, such as a tensor, handle it
        return self._unknown(f"{name} of")
    return operator


for _name in ("truediv", "rtruediv", "lshift", "rshift", "and", "or", "xor", "invert", "round", "trunc", "ceil",
              "floor", "rdivmod", "rpow", "rlshift", "rrshift", "rand", "ror", "rxor"):
    setattr(SymInt, f"__{_name}__", _unanswered(_name))       # the remaining operators of int


def _compared(compare: Callable[[Size, Any], bool], x: SymInt, y: Any) -> bool:
    with asked(x, y):
        return compare(x, y)


def _computed(compute: Callable[[Size, Any], Any], x: SymInt, y: Any) -> Any:
    """Result of the IR's arithmetic on symbolic sizes."""
    if isinstance(y, np.integer):
        y = int(y)
    elif not isinstance(y, Size) and isinstance(y, Number | Decimal) and not isinstance(y, int):
        x._unknown(f"arithmetic with {y!r} and")
    found = compute(plain(x), plain(y) if isinstance(y, Size) else y)
    return symbolic(found) if isinstance(found, Size) else found
