"""Python's own functions where tensors are passed: range, enumerate, zip, reversed, and those that make numbers."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mlc.dialects.tensor import control
from mlc.frontend import control as functions
from mlc.frontend.carries import Site, is_array
from mlc.frontend.location import user_loc
from mlc.frontend.operands import tracer
from mlc.frontend.script import changes
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.trace import Tracer, current
from mlc.ir.core import Value, located
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Size


@dataclass(frozen=True)
class Steps:
    """What a loop on tensors goes through: `item(i)` for i in range(length), where length is a number or a tensor."""

    length: Any
    item: Callable[[Any], Any]

    def __iter__(self) -> Iterator[Any]:
        raise UserError("a tensor says how many steps this takes, so only a `for` loop can go through it",
                        code="MLC0609", loc=user_loc(), hint="write a `for` loop, or use mlc.scan or mlc.map")

    __len__ = __getitem__ = __iter__


def steps(x: Any) -> Steps | None:
    """An iterable as steps of a loop on tensors; None if Python goes through it."""
    if isinstance(x, Steps):
        return x
    if not isinstance(x, Tracer):
        return None
    if not x.shape:
        raise UserTypeError(f"a {x.type} has no elements to go through", code="MLC0606", loc=user_loc())
    return _rows(x)


def _rows(x: Tensor) -> Steps:
    n = x.shape[0]

    def item(i: Any) -> Any:
        with located(user_loc()):
            return functions.row(tracer(x), tracer(i), n)
    return Steps(n, item)


def counted(x: range) -> Steps:
    return Steps(len(x), lambda i: x.start + i * x.step if x.step != 1 else x.start + i if x.start else i)


def bounds(s: Steps, site: Site) -> tuple[Value, Value]:
    with located(site.loc):
        return control.as_index(0), functions.bound(s.length, site)


def index(i: Value, site: Site) -> Tracer:
    return functions.counter(i, site)


# -- in place of Python's ---------------------------------------------------------------------------------------------
def replaced(f: Any) -> Any:
    """What stands for a function of Python's while something is recorded; None if it is to be called itself."""
    if isinstance(f, types.BuiltinMethodType) and f.__name__ in changes.MUTATORS:
        if isinstance(f.__self__, changes.CONTAINERS):
            changes.check(f.__self__, f"a {type(f.__self__).__name__} is changed by {f.__name__}()")
        return None
    try:
        return _REPLACED.get(f)
    except TypeError:
        return None


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tracer | Size)


def _range(*args: Any) -> Any:
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
        return Steps(stop, lambda i: i)
    with located(user_loc()):
        start, stop, step = (x if type(x) is int else _number(x) for x in (start, stop, step))
    if type(step) is int and step == 1:
        return Steps(stop - start, lambda i: start + i)
    return Steps(-((start - stop) // step), lambda i: start + i * step)


def _number(x: Any) -> Tracer:
    """A bound as the Python integer that it is in a plain loop."""
    found = OPERATIONS["cast"](tracer(x), "int64")
    found = OPERATIONS["reshape"](found, ())
    return Tracer(found.value, current(), True)


def _enumerate(iterable: Any, start: Any = 0) -> Any:
    if (s := steps(iterable)) is None:
        return enumerate(iterable, start)
    return Steps(s.length, lambda i: (i if type(start) is int and start == 0 else start + i, s.item(i)))


def _zip(*iterables: Any, strict: bool = False) -> Any:
    found = [steps(x) for x in iterables]
    if all(s is None for s in found):
        return zip(*iterables, strict=strict)
    every = [s if s is not None else steps(tracer(x)) if is_array(x) else None for s, x in zip(found, iterables)]
    lengths = [s.length for s in every if s is not None]
    if len(lengths) != len(every) or any(n is not lengths[0] and (isinstance(n, Tensor) or n != lengths[0])
                                         for n in lengths):
        raise UserError("zip() of tensors goes through tensors of one length", code="MLC0609", loc=user_loc(),
                        hint="cut them to one length, or make tensors of the others")
    return Steps(lengths[0], lambda i: tuple(s.item(i) for s in every if s is not None))


def _reversed(x: Any) -> Any:
    if (s := steps(x)) is None:
        return reversed(x)
    return Steps(s.length, lambda i: s.item(s.length - 1 - i))


def _len(x: Any) -> Any:
    """A size of a tensor as the symbol that it is."""
    return x.shape[0] if isinstance(x, Tracer) and x.shape else len(x)


def _print(*args: Any, **keywords: Any) -> None:
    if current().in_region:
        raise UserError("print() in a loop or branch that depends on a tensor would print once, while it is recorded",
                        code="MLC0608", loc=user_loc(), hint="return what you want to see")
    print(*args, **keywords)


def _least(which: str) -> Callable[..., Any]:
    plain = getattr(builtins, which)

    def least(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) < 2 or not any(isinstance(x, Tracer) for x in args) or any(
                getattr(x, "shape", ()) not in ((), None) for x in args):
            return plain(*args, **keywords)
        out = args[0]
        for x in args[1:]:                                 # the first of equal ones, as Python does
            out = OPERATIONS["where"](x < out if which == "min" else x > out, x, out)
        return out
    return least


_REPLACED: dict[Any, Any] = {
    range: _range, enumerate: _enumerate, zip: _zip, reversed: _reversed, len: _len, print: _print,
    min: _least("min"), max: _least("max"),
}
