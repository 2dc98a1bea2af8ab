"""Call patterns: which arguments of a Python call become which arguments of compiled code.

A pattern describes calls of a public operation by their structure: an argument is an array, a Python number that
becomes an array without dimensions, a constant that the code was compiled for, or a list of such. Calls of one pattern,
whose arrays have the types of the code's interface, differ only in the elements and in the sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Array:
    """A tensor or an array, the next input of the code.

    read  whether the code reads its elements; if not, only the sizes matter
    """

    read: bool = True


@dataclass(frozen=True)
class Number:
    """A Python number of exactly this type, the next input of the code: a float64 or an int64."""

    type: type[int] | type[float]


@dataclass(frozen=True)
class Constant:
    """A value that calls have in common, down to the types of what it consists of."""

    value: Any


@dataclass(frozen=True)
class Items:
    """A list or a tuple of arguments."""

    items: tuple[Argument, ...]


Argument = Array | Number | Constant | Items


@dataclass(frozen=True)
class CallPattern:
    """The arguments by position, followed by those by keyword.

    keywords  the names of the latter
    in_tuple  whether the results are in a tuple although there may be one
    finished  whether they are given to a function in any case, and not only to record the call for autograd
    distinct  whether the symbols of the code stand for different sizes, and for none that it has as a number
    """

    arguments: tuple[Argument, ...]
    keywords: tuple[str, ...] = ()
    in_tuple: bool = False
    finished: bool = False
    distinct: bool = True
