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
from mlc.frontend.script.reached_state import Contents, ReachedState, same
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
        tables = [x for x in gc.get_referents(self.x[0]) if type(x) is dict and x is not vars(self.x[0])]
        return words.of_dict(tables[0]) if len(tables) == 1 else None

    def restore(self) -> None:
        pass

    def is_of(self, f: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
        """Whether it is this call."""
        of, known, named = self.x
        return f is of and len(args) == len(known) and all(map(same, args, known)) and [*keywords] == [*named] and all(
            map(same, keywords.values(), named.values()))


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
    if captures is None or any(call.is_of(f, args, keywords) for call in captures.cached):
        with suspended():
            return f(*args, **keywords)
    before, path = Reached({"": inner}), f"{getattr(f, '__name__', 'function')}()"
    with suspended():
        found = f(*args, **keywords)
        if f.cache_info().misses > misses:                 # what it changes is changed, as in a call of Python
            captures.made += [place.x for place in before.places if not place.holds()]
        captures.cached.append(CachedCall(path, (f, args, keywords)))
    captures.hooks.append(Reached({path: found}))
    return found
