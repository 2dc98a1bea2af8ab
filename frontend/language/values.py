"""Values of names during the evaluation of a program, and the state of that evaluation.

A value is a tensor, a compile-time constant (a number, a size, a string, a tuple), a function, a model, or POISON: the
value of an erroneous expression, which causes no further errors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from mlc.frontend import location, tree
from mlc.frontend.dtypes import of_ir
from mlc.frontend.language.diagnostics import Diagnostics, Source
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import Loc, UserError
from mlc.ir.sizes import Size
from mlc.ir.types import TensorType


class Poison:
    """The value of an expression with an error."""

    def __repr__(self) -> str:
        return "<wrong>"


POISON = Poison()


class Poisoned(Exception):
    """A function of the program returned POISON to a library function, which cannot continue."""


class Enough(UserError):
    """The program exceeds a limit, which ends its evaluation."""


@dataclass(frozen=True)
class Missing:
    """Placeholder for the value of an unassigned name, with the reason."""

    why: str


@dataclass(frozen=True)
class Span:
    """first..last, where it is not unrolled."""

    first: Any
    last: Any


@dataclass(frozen=True)
class Zipped:
    """zip(a, b): iterables that a loop iterates over in parallel."""

    parts: tuple[Any, ...]


class Applicable:
    """A function or model of the program."""

    name: str

    def apply(self, args: Sequence[Any], keywords: dict[str, Any], at: int, env: Environment) -> Any:
        """The value of a call at offset `at` of the env's file; arguments may be POISON."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{self.name}>"


class FileScope:
    """The names of a file."""

    source: Source

    def look_up(self, name: str) -> Any:
        """The value of a name of the file; KeyError if it has none."""
        raise NotImplementedError

    def names(self) -> list[str]:
        raise NotImplementedError


@dataclass
class Environment:
    """Evaluation environment: the names of a function, then those of its model and of its file.

    The offset -1 stands for the location of a call from Python.

    unsettled   (type, value, description) of values whose declared sizes have names that other arguments bind
    """

    scope: FileScope
    names: dict[str, Any] = field(default_factory=dict)
    owner: Any = None
    unsettled: list[tuple[Any, Any, str]] = field(default_factory=list)

    def loc(self, at: int) -> Loc:
        return location.user_loc() if at < 0 else self.scope.source.loc(at)

    def copy(self) -> Environment:
        return Environment(self.scope, dict(self.names), self.owner)

    def error(self, at: int, code: str, message: str, hint: str | None = None,
              notes: tuple[str, ...] = ()) -> UserError:
        return UserError(message, code=code, loc=self.loc(at), hint=hint, notes=notes)


# -- state of the evaluation ------------------------------------------------------------------------------------------
DEEPEST = 90
"""Limit on the depth of evaluation, through calls, blocks and expressions: well within Python's own limit."""
MOST_STEPS, MOST_OPERATIONS = 200_000, 20_000
"""Expressions that are evaluated, and operations recorded, while one definition is checked, unrolled loops and calls
included."""


class _Session(threading.local):
    """The reading in progress in this thread; without `diagnostics` the first error is raised.

    general   whether a model is checked for all sizes, so that those of what it holds may be open
    watch     is called with each expression and name that is bound, and its value (an editor shows their types)
    around    is called in place of the function that evaluates a statement, with that, the statement and its
              environment (an editor evaluates again only what an edit has changed)
    """

    diagnostics: Diagnostics | None = None
    general = False
    watch: Callable[[Any, Any], None] | None = None
    around: Callable[[Callable[[Any, Environment], None], Any, Environment], None] | None = None
    depth = 0
    steps = 0

    def __init__(self) -> None:
        self.active = set[tuple[Any, ...]]()               # functions whose bodies are being evaluated


session = _Session()


@contextmanager
def checking(diagnostics: Diagnostics | None, general: bool = False) -> Iterator[None]:
    """Within, errors are collected, of a model for all sizes or of a function."""
    saved = session.diagnostics, session.general
    session.diagnostics, session.general = diagnostics, general
    try:
        yield
    finally:
        session.diagnostics, session.general = saved


@contextmanager
def deeper(env: Environment, at: int, by: int = 1) -> Iterator[None]:
    """Within, evaluation is deeper by one or more levels."""
    if session.depth == 0 and session.diagnostics is None:
        session.steps = 0
    session.depth += by
    session.steps += 1
    try:
        if session.depth > DEEPEST:
            raise env.error(at, "MLC0621", "calls, blocks and expressions are nested too deeply",
                              "name parts of it on lines of their own, or call fewer functions within each other")
        if session.steps > MOST_STEPS:
            raise Enough(f"more than {MOST_STEPS} expressions are evaluated here", code="MLC0621", loc=env.loc(at),
                         hint="use for in place of unroll for, and fewer calls of functions that call others twice")
        yield
    finally:
        session.depth -= by


def report(error: UserError) -> Poison:
    """Collect an error, or raise it if errors are not collected."""
    if session.diagnostics is None or isinstance(error, Enough):
        raise error
    session.diagnostics.add(error)
    return POISON


# -- kinds of value ---------------------------------------------------------------------------------------------------
def is_static_number(x: Any) -> bool:
    return isinstance(x, int | float)


def is_function(x: Any) -> bool:
    """Whether a value is a function or model of the program or of the library."""
    return isinstance(x, Applicable) or (callable(x) and not isinstance(x, Tensor | tree.AttributeTree))


def is_poisoned(x: Any, depth: int = 8) -> bool:
    """Whether a value is or contains POISON."""
    if x is POISON:
        return True
    if depth and isinstance(x, list | tuple):
        return any(is_poisoned(y, depth - 1) for y in x)
    return depth > 0 and isinstance(x, dict) and any(is_poisoned(y, depth - 1) for y in x.values())


def shown(x: Any) -> str:
    """Description of a value for error messages: `f32[B, 16]`."""
    if isinstance(x, Tensor):
        return type_text(TensorType(x.shape, x.dtype.ir))
    if isinstance(x, bool):
        return "true" if x else "false"
    if x is None:
        return "none"
    if isinstance(x, int | float):
        return f"the number {x}"
    if isinstance(x, Size):
        return f"the size {x}"
    if isinstance(x, str):
        return f"the text {x!r}"[:60]
    if isinstance(x, tuple | list):
        inside = ", ".join(map(shown, x[:6])) + (", ..." if len(x) > 6 else "")
        return f"({inside})" if isinstance(x, tuple) else f"[{inside}]"
    if isinstance(x, Applicable):
        return x.name
    if isinstance(x, tree.AttributeTree):
        return f"a {type(x).__name__}"
    if isinstance(x, Span | Zipped):
        return "a range" if isinstance(x, Span) else "a zip"
    return str(getattr(x.func if isinstance(x, partial) else x, "__name__", f"a {type(x).__name__}"))


@lru_cache(4096)
def type_text(type: TensorType) -> str:
    """f32[B, 16]; the element type alone for a number."""
    element = _SHORT[of_ir(type.dtype).name]
    return f"{element}[{', '.join(map(str, type.shape))}]" if type.shape else element


_SHORT = {"bool": "bool", **{f"{long}{bits}": f"{short}{bits}" for long, short in (
    ("int", "i"), ("uint", "u"), ("float", "f")) for bits in (8, 16, 32, 64) if (long, bits) != ("float", 8)},
    "bfloat16": "bf16"}
ELEMENTS = {short: long for long, short in _SHORT.items()}
"""Element types as the language writes them: f32 is float32."""
