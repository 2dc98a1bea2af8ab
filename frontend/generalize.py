"""Dynamic shapes: finds out by trial which sizes of the arguments can be symbolic, so that one recording serves many.

Every size that may vary becomes a symbol, and the function is recorded. If that requires two symbols to be equal, or
one to be a number, recording fails with an error that carries them (`Error.symbols`). They are then unified if their
current values are equal, and replaced by these values otherwise, and the function is recorded again. So the symbols are
as general as the function allows, and a call with sizes that violate its constraints finds no code.
An error that the program itself raises, such as a TypeError of a function that takes no symbol, names no size, so all
sizes become numbers. Any other error of this package is a defect, and no reason to record again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from mlc.frontend.location import programs_line, user_loc
from mlc.ir import sizes
from mlc.ir.diag import Error, IRError, Loc, UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType

R = TypeVar("R")
Note = tuple[Loc, str, str]
"""(location, kind, text): an entry of `Trace.notes`."""
Axis = tuple[int, int]
"""The number of an array and one of its axes."""


def record_for_sizes(record: Callable[[list[TensorType]], R], types: Sequence[TensorType], axes: Sequence[Axis],
                     names: Sequence[str], notes: list[Note]) -> tuple[R, list[TensorType]]:
    """Result of `record` for `types` with symbols at as many of the `axes` as can be, and those types.

    The symbol of axis 0 of the array x is `x_0`. An error that persists with static sizes is raised. `notes` gets an
    entry for each size that could not remain an independent symbol, with the reason.
    """
    taken = {n for t in types for d in t.shape for n in sizes.symbols(d)}
    symbols = dict(zip(_symbols(axes, names, taken), axes))
    numbers = {name: types[i].shape[axis] for name, (i, axis) in symbols.items()}
    means: dict[str, Dim] = {name: sizes.sym(name) for name in symbols}
    while True:
        shapes = [list(t.shape) for t in types]
        for name, (i, axis) in symbols.items():
            shapes[i][axis] = means[name]
        now = [t.with_shape(tuple(shape)) for t, shape in zip(types, shapes)]
        try:
            with programs_errors():
                return record(now), now
        except Error as error:
            if not asks_for_numbers(error):
                raise
            live = [name for name in symbols if means[name] == sizes.sym(name)]
            if not live:
                raise
            found = [name for name in live if name in error.symbols] or live
            _join(found, numbers, means)
            notes.append(note_of(error, "; so there is " + ", ".join(f"{name} = {means[name]}" for name in found)))


def asks_for_numbers(error: Error) -> bool:
    """Whether static sizes may resolve the error: it is a UserError, or an operation in the expansion of another one
    requires static sizes. Any other error is a defect."""
    return isinstance(error, UserError) or (isinstance(error, IRError) and error.code == "MLC0688")


@contextmanager
def programs_errors() -> Iterator[None]:
    """Context in which an exception that the program raises becomes a UserError caused by it; defects of mlc do not."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        if (loc := programs_line(error)) is None:
            raise
        raise UserError(f"{type(error).__name__}: {error}", code="MLC0686", loc=loc,
                        hint="the code is for one size then; see Compiled.report") from error


def note_of(error: Error, more: str = "") -> Note:
    """Note for a report about an error that made sizes static."""
    return error.loc if error.loc.file else user_loc(), "value", f"{error.message}{more}"


def _symbols(axes: Sequence[Axis], names: Sequence[str], taken: set[str]) -> Iterator[str]:
    for i, axis in axes:
        base = re.sub(r"\W+", "_", names[i]).strip("_") if i < len(names) else ""
        name = f"{base if base[:1].isalpha() else f'arg{i}'}_{axis}"
        while name in taken:
            name += "_"
        taken.add(name)
        yield name


def _join(found: Sequence[str], numbers: dict[str, Dim], means: dict[str, Dim]) -> None:
    """Unify symbols of equal values; if no two are equal, replace each by its value."""
    first: dict[Dim, str] = {}
    env: dict[str, Dim] = {}
    for name in found:
        if first.setdefault(numbers[name], name) != name:
            env[name] = sizes.sym(first[numbers[name]])
    if not env:
        env = {name: numbers[name] for name in found}
    for name, meaning in means.items():
        means[name] = sizes.substitute(meaning, env)


def fits(types: Sequence[TensorType], shapes: Sequence[tuple[int, ...]], constraints: Sequence[Dim]) -> bool:
    """Whether arrays of these shapes have the types, and all constraints are at least 0."""
    env: dict[str, int] = {}
    for type, shape in zip(types, shapes):
        for d, n in zip(type.shape, shape):
            if (name := sizes.symbol_name(d)) is not None:
                env.setdefault(name, n)
    try:
        return all(len(t.shape) == len(s) and all(sizes.evaluate(d, env) == n for d, n in zip(t.shape, s))
                   for t, s in zip(types, shapes)) and all(sizes.evaluate(c, env) >= 0 for c in constraints)
    except (KeyError, ZeroDivisionError):
        return False
