"""Calls of functions with a cache of Python's, `functools.lru_cache`, while a function is recorded.

What such a function gives does not depend on the call that is recorded, unless its arguments do. So it runs at once, as
it would in Python, and what it gives is what the program has outside, too, such as the only object of its settings. The
recording depends on what the cache has.
"""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable
from typing import Any

from mlc.frontend.script import words
from mlc.frontend.script.held import holds_tracers
from mlc.frontend.script.reach import Reached
from mlc.frontend.script.reached_state import Contents, ReachedState, Variable, same
from mlc.frontend.trace import captured, state, suspended


class CachedCall(ReachedState):
    """The result of a function with a cache: `x` is the function, its arguments, and the keywords."""

    __slots__ = ()

    def contents(self) -> Contents:
        f, args, keywords = self.x
        return (), (f(*args, **keywords),)

    def holds(self) -> bool:
        found, = self.contents()[1]                        # an error is that of the call in Python
        return same(found, self.values[0])

    def words(self) -> list[int] | None:
        """Those of the table of the cache, which changes with every result that is computed."""
        table = _table(self.x[0])
        return None if table is None else words.of_dict(table)

    def restore(self) -> None:
        pass

    def is_of(self, f: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
        """Whether it is this call."""
        of, known, named = self.x
        return f is of and len(args) == len(known) and all(map(same, args, known)) and [*keywords] == [*named] and all(
            map(same, keywords.values(), named.values()))


class CachedEntry(Variable):
    """The entry of a call in the table of a cache, whose result cannot change: native code compares it as a global."""

    __slots__ = ("call",)

    def __init__(self, call: CachedCall, table: dict[Any, Any], key: Any) -> None:
        self.call = call
        super().__init__(call.path, (table, key))

    def holds(self) -> bool:
        return self.call.holds() and super().holds()       # after the call the entry is there

    def restore(self) -> None:
        pass

    def is_of(self, f: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
        """Whether it is this call's."""
        return self.call.is_of(f, args, keywords)


def _table(f: Any) -> dict[Any, Any] | None:
    """The table of a cache, from keys to results or, if it is limited, links that have them."""
    found = [x for x in gc.get_referents(f) if type(x) is dict and x is not vars(f)]
    return found[0] if len(found) == 1 else None


def _guard(call: CachedCall, changes: bool) -> CachedCall | CachedEntry:
    """The guard of a call, whose result may change by itself or not."""
    f, args, keywords = call.x
    table, key = _table(f), args[0] if len(args) == 1 and type(args[0]) in (int, str) else args
    return call if changes or keywords or table is None or key not in table else CachedEntry(call, table, key)


def function_called(f: Any) -> Callable[..., Any] | None:
    """Callable in place of a function or method with a cache; None for any other."""
    if isinstance(f, functools._lru_cache_wrapper):
        return functools.partial(_call, f)
    if isinstance(f, types.MethodType) and isinstance(f.__func__, functools._lru_cache_wrapper):
        return functools.partial(_call, f.__func__, f.__self__)
    return None


def _call(f: Any, *args: Any, **keywords: Any) -> Any:
    """f(*args, **keywords); the cache is left out where it would keep tensors of this recording for later."""
    inner, misses = f.__wrapped__, f.cache_info().misses
    cells = [v for cell in getattr(inner, "__closure__", None) or () for v in gc.get_referents(cell)]
    if f.cache_parameters()["maxsize"] == 0 or holds_tracers([args, keywords, cells]):
        return captured(inner)(*args, **keywords)
    captures = None if state.trace is None else state.trace.root.captures
    known = [call for reached in captures.hooks for call in reached.calls] if captures is not None else []
    if captures is None or any(call.is_of(f, args, keywords) for call in known):
        with suspended():
            return f(*args, **keywords)
    before, path = Reached({"": inner}), f"{getattr(f, '__name__', 'function')}()"
    with suspended():
        found = f(*args, **keywords)
        if f.cache_info().misses > misses:                 # what it changes is changed, as in a call of Python
            captures.made += [place.x for place in before.places if not place.holds()]
        call, within = CachedCall(path, (f, args, keywords)), Reached({path: found})
    within.calls.append(_guard(call, bool(within.places)))
    captures.hooks.append(within)
    return found
