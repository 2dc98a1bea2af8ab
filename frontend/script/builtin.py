"""Replacements for Python's built-ins on tensors: range, enumerate, zip, reversed, and conversions to numbers."""

from __future__ import annotations

import builtins
import datetime
import functools
import io
import logging
import os
import pathlib
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.dialects.tensor import control
from mlc.frontend import control as functions
from mlc.frontend.abstract_values import SourceConstruct, is_array
from mlc.frontend.functionalization import linked
from mlc.frontend.location import user_loc
from mlc.frontend.operands import tracer
from mlc.frontend.python_arithmetic import on_numbers
from mlc.frontend.refusals import refusal, unknown
from mlc.frontend.script import changes
from mlc.frontend.symint import plain_sizes, symbolic
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.trace import current
from mlc.frontend.tracer import Tracer, as_number
from mlc.ir.core import Value, located
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Size


@dataclass
class Steps:
    """Iteration domain of a loop on tensors: `item(i)` for i in range(length), where length is a number or a tensor.

    known    the items, if the length is known
    once     whether it is an iterator, as enumerate(x) is, and so can be consumed only once
    sources  the iterables that an iterator consumes
    begun    of an iterator, its remaining items; `taken` is the number of items consumed
    """

    length: Any
    item: Callable[[Any], Any]
    known: Callable[[], Iterable[Any]] | None = None
    once: bool = True
    sources: tuple[Steps, ...] = ()
    begun: Iterator[Any] | None = None
    taken: int = 0

    def __iter__(self) -> Iterator[Any]:
        return self if self.once else self._items()

    def __next__(self) -> Any:
        if self.begun is None:
            self.begun = self._items()
        item = next(self.begun)
        self.taken += 1
        return item

    def __length_hint__(self) -> int:
        return self.length - self.taken if isinstance(self.length, int) else NotImplemented

    def __bool__(self) -> bool:
        return self.once or bool(self.length if isinstance(self.length, int) else [*self._items()])

    def __getitem__(self, i: Any) -> Any:
        if self.once:
            raise TypeError("an iterator is not subscriptable")
        return [*self._items()][i]

    def __getattr__(self, name: str) -> Any:
        """An attribute of a range whose length depends on a tensor; those of its numbers are had by asking for them."""
        if not self.once and hasattr(range, name) and not name.startswith("__"):
            self._items()
        raise AttributeError(f"an iterable of steps has no attribute {name!r}")

    def _items(self) -> Iterator[Any]:
        if self.known is None:
            raise unknown(self.length.value if isinstance(self.length, Tracer) else None, "the length of this iterable "
                          "depends on a tensor, so only a `for` loop can iterate over it", code="MLC0609",
                          loc=user_loc(), hint="write a `for` loop, or use mlc.scan or mlc.map")
        return iter(self.known())

    def iterators(self) -> Iterator[Steps]:
        """This and its sources, if they are iterators."""
        if self.once:
            yield self
        for source in self.sources:
            yield from source.iterators()

    def leave(self, stopped: bool) -> None:
        """Mark as consumed by a recorded loop; a tensor may have ended the loop early."""
        for x in self.iterators():
            x.begun = iter(_unknown_rest, None) if stopped else iter(())
            x.taken = x.length


def _unknown_rest() -> None:
    raise refusal("what a loop with `break` leaves of this iterator depends on tensors", code="MLC0609", loc=user_loc(),
                  hint="iterate over the tensor itself, or a slice of it")


def steps(x: Any) -> Steps | None:
    """An iterable as steps of a loop on tensors; None if Python iterates over it, or over its remaining items."""
    if isinstance(x, Steps):
        return x if all(y.begun is None for y in x.iterators()) else None
    if not isinstance(x, Tracer):
        return None
    if not x.shape:
        raise UserTypeError(f"a {x.type} has no rows to iterate over", code="MLC0606", loc=user_loc())
    return _rows(x)


def _rows(x: Tracer) -> Steps:
    n = x.shape[0]

    def item(i: Any) -> Any:
        if isinstance(n, Size):                            # may be 0, which only the compiled function can check
            return x[i]
        with located(user_loc()):
            return linked(x, functions.row(x, tracer(i), n), lambda y: functions.row(tracer(y), tracer(i), n))
    return Steps(n, item, (lambda: iter(x)) if isinstance(n, int) else None, once=False)


def counted(numbers: Sequence[int]) -> Steps:
    """Steps of the remaining part of a range, of at least two numbers."""
    first, step = numbers[0], numbers[1] - numbers[0]
    return Steps(len(numbers), lambda i: first + i * step, once=False)


def bounds(s: Steps, site: SourceConstruct) -> tuple[Value, Value]:
    with located(site.loc):
        return control.as_index(0), functions.bound(s.length, site)


def index(i: Value, site: SourceConstruct) -> Tracer:
    return functions.counter(i, site)


# -- replacements for built-ins ---------------------------------------------------------------------------------------
def replaced(f: Any) -> Any:
    """Replacement for a built-in function during recording; None if it may be called itself."""
    if isinstance(f, types.BuiltinMethodType) and f.__name__ in changes.MUTATORS:
        if isinstance(f.__self__, changes.CONTAINERS):
            changes.check(f.__self__, f"a {type(f.__self__).__name__} is changed by {f.__name__}()")
        return None
    if current().in_region and _acts_outside(f):
        raise refusal(f"{f.__name__}() in a loop or branch that depends on a tensor happens while that is recorded, "
                      "whether or not it will run", code="MLC0608", loc=user_loc(),
                      hint="return what decides it, and call it outside of the function")
    if isinstance(f, types.BuiltinFunctionType | types.MethodType | types.FunctionType) and _differs_each_time(f):
        owner = getattr(f, "__self__", None) or sys.modules[f.__module__]
        home = getattr(owner, "__name__", type(owner).__name__)
        name = f"{_PUBLIC.get(home, home)}.{f.__name__}"
        how = "that would happen once, not" if f.__name__.startswith("put") else "its result would be the same"
        raise refusal(f"{name}() is called while the function is recorded: {how} in every call",
                      code="MLC0616", loc=user_loc(),
                      hint="call it outside and pass its result; for random numbers pass a key to mlc.random")
    if isinstance(f, functools.partial):
        return functools.partial(found, *f.args, **f.keywords) if (found := replaced(f.func)) is not None else None
    if isinstance(f, types.MethodDescriptorType) and f.__name__ in changes.MUTATORS:
        return lambda x, *args, **keywords: replaced_method(f, x)(*args, **keywords)
    try:
        return _REPLACED.get(f)
    except TypeError:
        return None


def _acts_outside(f: Any) -> bool:
    """Whether a function ends the program, warns, logs, or writes to a file."""
    owner = getattr(f, "__self__", None)
    if isinstance(owner, logging.Logger | logging.LoggerAdapter):
        return f.__name__ in _LOGS
    if isinstance(owner, io.IOBase):
        return f.__name__ in ("write", "writelines", "flush", "close", "truncate", "seek")
    return any(f is x for x in (sys.exit, os._exit, os.abort, warnings.warn, warnings.warn_explicit)) or (
        isinstance(f, types.FunctionType) and f.__module__ == "logging" and f.__name__ in _LOGS)


_LOGS = frozenset({"debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log"})


def _differs_each_time(f: types.BuiltinFunctionType | types.MethodType | types.FunctionType) -> bool:
    """Whether a function of Python or numpy depends on more than its arguments: the time, random state or files.
    """
    if isinstance(f, types.FunctionType):
        return f.__name__ in _OUTSIDE.get(f.__module__, ())
    owner = f.__self__
    if isinstance(owner, types.ModuleType):
        return f.__name__.removesuffix("_ns") in _OUTSIDE.get(owner.__name__, ())
    if isinstance(owner, type):
        return issubclass(owner, datetime.date) and f.__name__ in ("now", "today", "utcnow")
    if isinstance(owner, pathlib.Path):
        return f.__name__ in _OUTSIDE["pathlib"]
    if isinstance(owner, io.IOBase):
        in_memory = isinstance(owner, io.StringIO | io.BytesIO)
        return f.__name__.startswith("read") and f.__name__ != "readable" and (
            not in_memory or changes.is_from_outside(owner))
    if type(owner).__module__ in _QUEUES:
        return f.__name__ in ("get", "get_nowait", "put", "put_nowait") and changes.is_from_outside(owner)
    return isinstance(owner, random.Random | np.random.RandomState | np.random.Generator)


_OUTSIDE = {
    "time": ("time", "perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime", "localtime", "gmtime",
             "ctime", "asctime", "strftime"),
    "builtins": ("input",), "io": ("open",), "_io": ("open",),
    "pathlib": ("read_text", "read_bytes", "open", "exists", "is_file", "is_dir", "stat", "iterdir", "glob", "rglob"),
    "numpy": ("load", "loadtxt", "genfromtxt"),
    "genericpath": ("exists", "isfile", "isdir", "lexists", "getsize", "getmtime", "getatime", "getctime", "samefile"),
    "posixpath": ("exists", "isfile", "isdir", "islink", "lexists", "ismount", "getsize", "getmtime", "realpath"),
    "glob": ("glob", "iglob", "glob0", "glob1"), "tempfile": ("mkdtemp", "mkstemp", "mktemp"),
    "posix": ("urandom", "getrandom", "times", "getcwd", "getpid", "listdir", "scandir", "stat"),
    "uuid": ("uuid1", "uuid4"), "secrets": ("randbelow", "token_bytes", "token_hex", "token_urlsafe"),
    "_thread": ("get_ident", "get_native_id"), "threading": ("current_thread",)}
"""Impure functions of the standard library, by module."""
_QUEUES = ("queue", "_queue", "multiprocessing.queues")
_PUBLIC = {"genericpath": "os.path", "posixpath": "os.path", "posix": "os", "_thread": "threading"}
"""Names under which programs know some of these modules."""


def replaced_method(f: Any, x: Any) -> Any:
    """The method f of x, as `x.f` would be called."""
    bound = f.__get__(x)
    return replaced(bound) or bound


def _setattr(x: Any, name: str, *value: Any) -> None:
    """setattr or delattr"""
    changes.check(x, f"a {type(x).__name__} is changed by setattr() or delattr()")
    setattr(x, name, *value) if value else delattr(x, name)


def _isinstance(x: Any, kind: Any) -> bool:
    """isinstance, for which symbolic sizes and tracers of Python numbers are numbers, as in eager execution."""
    if isinstance(x, Size) or _is_number(x):
        x = _type(x)()
    return isinstance(x, kind)


def _type(x: Any, *rest: Any) -> Any:
    """The type of a value: int for a symbolic size, that of eager execution for a tracer."""
    return type(x, *rest) if rest else int if isinstance(x, Size) else (
        x.python_class if isinstance(x, Tracer) else type(x))


def _hasattr(x: Any, name: str) -> bool:
    """hasattr, for which tracers of Python numbers have what numbers have, and no shape, for example."""
    return hasattr(_type(x) if _is_number(x) else x, name)


def _getattr(x: Any, name: str, *default: Any) -> Any:
    """getattr, likewise."""
    if _is_number(x) and not hasattr(_type(x), name):
        return getattr(_type(x)(), name, *default)         # the default, or Python's error
    if name == "__class__":
        return _type(x)
    found = getattr(x, name, *default)
    return tuple(map(symbolic, found)) if name == "shape" and isinstance(x, Tracer) else found


def _is_number(x: Any) -> bool:
    return isinstance(x, Tracer) and x.python_class is not Tensor


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tracer | Size)


def _tensor(x: Any) -> Tracer:
    with located(user_loc()):
        return tracer(x)


def _range(*given: Any) -> Any:
    args = [plain_sizes(x) for x in given]
    if not any(map(_is_tensor, args)) or len(args) > 3 or not args:
        return range(*args)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    if type(step) is int and step == 0:
        return range(0, 1, step)                           # Python's error
    for x in (start, stop, step):
        if isinstance(x, Tensor) and (x.dtype.is_floating_point or x.dtype.ir.is_bool):
            raise UserTypeError(f"a bound of range() is a tensor of {x.dtype}, not of integers", code="MLC0605",
                                loc=user_loc())
    if type(start) is int and start == 0 and type(step) is int and step == 1:
        return Steps(stop, lambda i: i, once=False)
    start, stop, step = (x if type(x) is int else _REPLACED[int](_tensor(x)) for x in (start, stop, step))
    if type(step) is int and step == 1:
        return Steps(stop - start, lambda i: start + i, once=False)
    return Steps(-((start - stop) // step), lambda i: start + i * step, once=False)


def _enumerate(iterable: Any, start: Any = 0) -> Any:
    if (s := steps(iterable)) is None:
        return enumerate(iterable, start)
    return Steps(s.length, lambda i: (i if type(start) is int and start == 0 else start + i, s.item(i)),
                 (lambda: enumerate(s, start)) if s.known is not None else None, sources=(s,))


def _zip(*iterables: Any, strict: bool = False) -> Any:
    found = [steps(x) for x in iterables]
    iterators = [id(y) for s in found if s is not None for y in s.iterators()]
    if all(s is None for s in found) or len(set(iterators)) < len(iterators):    # zip(it, it) makes pairs
        return zip(*iterables, strict=strict)
    every = [s if s is not None else steps(tracer(x)) if is_array(x) else None for s, x in zip(found, iterables)]
    lengths = [s.length for s in every if s is not None]
    if len(lengths) != len(every) or any(
            n is not lengths[0] and (isinstance(n, Tensor) or isinstance(lengths[0], Tensor) or n != lengths[0])
            for n in lengths):
        raise UserError("zip() needs tensors of equal length", code="MLC0609", loc=user_loc(),
                        hint="slice them to equal length, or convert the other arguments to tensors")
    parts = [s for s in every if s is not None]
    return Steps(lengths[0], lambda i: tuple(s.item(i) for s in parts),
                 (lambda: zip(*parts)) if all(s.known is not None for s in parts) else None, sources=tuple(parts))


def _reversed(x: Any) -> Any:
    if (s := steps(x)) is None:
        return reversed(x)
    return Steps(s.length, lambda i: s.item(s.length - 1 - i),
                 (lambda: reversed(list(s))) if s.known is not None else None, sources=(s,))


def _len(x: Any) -> Any:
    """len(), which gives a symbolic size for a tracer."""
    if isinstance(x, Steps) and not x.once:
        x = [*x]
    return x.size(0) if isinstance(x, Tracer) and x.shape else len(x)


def _next(iterator: Any, *default: Any) -> Any:
    changes.check_position(iterator)
    changes.check(iterator, f"a {type(iterator).__name__} goes on by next()")
    return next(iterator, *default)


def _print(*args: Any, **keywords: Any) -> None:
    if current().in_region:
        raise UserError("print() in a loop or branch that depends on a tensor would print once, while it is recorded",
                        code="MLC0608", loc=user_loc(), hint="return what you want to see")
    print(*(repr(x) if isinstance(x, Tracer) else plain_sizes(x) for x in args), **keywords)


def _converted(plain: Any, dtype: str) -> Callable[..., Any]:
    """int, float or bool of a tensor: a weakly typed tracer in place of the number."""
    def convert(*args: Any, **keywords: Any) -> Any:
        if len(args) != 1 or keywords or not isinstance(args[0], Tracer):
            return plain(*args, **keywords)
        x = args[0]
        if any(d != 1 for d in x.shape):
            raise UserTypeError(f"{plain.__name__}() of a {x.type}, which has more than one element", code="MLC0602",
                                loc=user_loc(), hint="pick an element, or use x.float() and the like for all of them")
        return as_number(OPERATIONS["reshape"](OPERATIONS["cast"](x, dtype), ()))
    return convert


def _least(which: str) -> Callable[..., Any]:
    plain = getattr(builtins, which)

    def least(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) < 2 or not any(isinstance(x, Tracer) for x in args) or any(
                getattr(x, "shape", ()) not in ((), None) for x in args):
            return plain(*args, **keywords)
        out = args[0]
        with on_numbers():
            for x in args[1:]:                             # the first of equal ones, as Python does
                out = OPERATIONS["where"](x < out if which == "min" else x > out, x, out)
        return out
    return least


_REPLACED: dict[Any, Any] = {
    range: _range, enumerate: _enumerate, zip: _zip, reversed: _reversed, len: _len, print: _print,
    setattr: _setattr, delattr: _setattr, isinstance: _isinstance, hasattr: _hasattr,
    getattr: _getattr, type: _type, next: _next,
    min: _least("min"), max: _least("max"),
    int: _converted(int, "int64"), float: _converted(float, "float64"), bool: _converted(bool, "bool"),
}
