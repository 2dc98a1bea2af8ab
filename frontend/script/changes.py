"""Side effects on Python objects in a loop or branch on tensors: they would happen only once, during recording.

Objects created in the loop or branch may change; objects that the enclosing functions can reach may not.
"""

from __future__ import annotations

import threading
import types
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from mlc.frontend.location import is_ours, user_loc
from mlc.frontend.refusals import refusal
from mlc.frontend.script.origin import is_foreign
from mlc.frontend.script.reach import Place, Reached
from mlc.frontend.script.reached_outside import Progress
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import current, state
from mlc.ir.diag import Error

CONTAINERS = (list, dict, set, bytearray, deque)
MUTATORS = frozenset({"add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop",
                      "popitem", "popleft", "remove", "reverse", "setdefault", "sort", "update", "rotate"})
LIMIT = 100_000
_CLOSED = (Tensor, type, types.FunctionType, types.ModuleType, str, int, float)

class _Around(threading.local):
    """Variables and globals of the functions that enclose the loops and branches in progress in this thread, and what
    the functions that are recorded reach."""

    def __init__(self) -> None:
        self.functions: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.reached: tuple[Reached, ...] = ()


_around = _Around()


@contextmanager
def recorded_within(around: Sequence[Reached]) -> Iterator[None]:
    """Context in which a function is recorded that reaches, with its arguments, what is `around`."""
    before, _around.reached = _around.reached, (*_around.reached, *around)
    try:
        yield
    finally:
        _around.reached = before


class region:
    """Context in which a loop or branch in the function of `frame` is recorded, which carries variables at these
    places; those of other functions may not change."""

    def __init__(self, frame: FrameType, carried: Collection[Place] = ()) -> None:
        self.variables = dict(frame.f_locals), frame.f_globals
        self.loc = user_loc()
        self.reached = Reached(self.variables[0], buffers=False, carried=carried)

    def __enter__(self) -> None:
        _around.functions.append(self.variables)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        _around.functions.pop()
        if isinstance(error, Exception) and not isinstance(error, Error) and _is_programs(traceback):
            raise _raising("a loop or branch that depends on a tensor", error, self.loc) from error
        captures = state.trace.root.captures if state.trace is not None else None
        for container in captures.made if captures is not None else ():
            self.reached.renew(container)
        if kind is None and (path := self.reached.change()) is not None:
            self.reached.restore()
            raise refusal(f"{path} is changed in a loop or branch that depends on a tensor: while it is recorded that "
                          "happens once, not as often as it will run", code="MLC0608", loc=self.loc,
                          hint="carry what changes in variables of the function, and assign the object after the loop")

    def undone(self) -> bool:
        """Restore all state; False if that is impossible, since iterators cannot be rewound."""
        self.reached.restore()
        return self.reached.holds() and all(p.is_known for p in self.reached.places if isinstance(p, Progress))


def perhaps(part: Callable[[], Any], what: str) -> Any:
    """The value of what Python evaluates only if a tensor says so; it is evaluated anyway."""
    try:
        return part()
    except Exception as error:
        if isinstance(error, Error) or not _is_programs(error.__traceback__):
            raise
        raise _raising(what, error, user_loc()) from error


def _raising(what: str, error: Exception, loc: Any) -> Exception:
    return refusal(f"{what} raises {type(error).__name__}: {error}", code="MLC0611", loc=loc,
                   hint="whether it runs is known only when the compiled function does: choose among values that there "
                   "are")


def _is_programs(traceback: TracebackType | None) -> bool:
    """Whether an error was raised by the program, or by a statement of it, and not within this package."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    name = "" if traceback is None else str(traceback.tb_frame.f_globals.get("__name__", ""))
    return not is_ours(name) or name.startswith("mlc.frontend.script.")


def check(x: Any, how: str) -> None:
    """UserError if x is changed in a loop or branch that did not create it."""
    if state.trace is not None and current().in_region:
        check_here(x, how)


def is_from_outside(x: Any) -> bool:
    """Whether an object was there before the function that is recorded was called, as far as that reaches it."""
    return any(reached.reaches(x) for reached in _around.reached)


def check_position(x: Any) -> None:
    """UserError if an iterator goes on that was there before, and does not show its position."""
    if isinstance(x, Iterator) and not is_foreign(type(x).__module__) and is_from_outside(x) and not (
            Progress("", x).is_known):
        raise refusal(f"a {type(x).__name__} goes on that existed before the call: that happens once, while the "
                      "function is recorded, not in each call", code="MLC0615", loc=user_loc(),
                      hint="take what it gives before, and pass that")


def check_here(x: Any, how: str) -> None:
    """The same at the start of a loop, before anything of it is recorded."""
    if not _around.functions:
        return
    if isinstance(x, Tensor | types.ModuleType) or not _reached(x):
        return
    raise refusal(f"{how} in a loop or branch that depends on a tensor: while it is recorded that happens once, not as "
                  "often as it will run", code="MLC0608", loc=user_loc(), hint=_way_out(x))


def _way_out(x: Any) -> str:
    if isinstance(x, list):
        return ("make an array before the loop, and in it a new one: ys = mlc.dynamic_update_slice(ys, y[None], "
                "[i, 0]); or use mlc.scan, which stacks")
    return "carry what changes in variables of the function, and assign the object after the loop"


def _reached(x: Any) -> bool:
    """Whether the enclosing functions reach an object, by their variables or as a global."""
    for variables, globals in _around.functions:
        if any(v is x for v in globals.values()):
            return True
        seen, work = set[int](), list(variables.values())
        while work and len(seen) < LIMIT:
            v = work.pop()
            if v is x:
                return True
            if id(v) in seen or isinstance(v, _CLOSED):
                continue
            seen.add(id(v))
            if isinstance(v, dict):
                work += v.values()
            elif isinstance(v, list | tuple | set | frozenset | deque):
                work += v
            elif hasattr(v, "__dict__"):
                work += vars(v).values()
    return False
