"""Keys of the leaves of trees: equal only for what no program can distinguish."""

from __future__ import annotations

import sys
import types
from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from mlc.frontend.symint import SymInt, plain


class Same:
    """Wrapper that compares an object by identity, whatever its `__eq__`."""

    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.x is other.x

    def __hash__(self) -> int:
        return id(self.x)


_BY_VALUE = frozenset({int, bool, str, bytes, type(None), types.MethodType})
PLAIN = frozenset({int, float, bool, str, type(None)})
"""Immutable classes whose objects have no parts."""
_OURS = ("mlc", "numpy")


def frozen_leaf(x: Any) -> Any:
    """A key that is equal only for leaves that no program can distinguish: 1, 1.0 and True differ, and 0.0 and -0.0.

    Objects of the program's own classes are compared by identity, since their `__eq__` may ignore state that was read
    by a recording. The key of an unhashable, and so possibly mutable, object is unhashable too.
    """
    kind = type(x)
    if kind in _BY_VALUE:
        return kind, x
    if kind is float:
        return kind, x.hex()
    if kind is SymInt:
        return kind, plain(x)
    if kind is complex:
        return kind, x.real.hex(), x.imag.hex()
    if kind is slice or kind is range:
        return kind, frozen_leaf(x.start), frozen_leaf(x.stop), frozen_leaf(x.step)
    if kind is tuple:
        return kind, tuple([frozen_leaf(item) for item in x])
    if kind is frozenset:
        return kind, frozenset([frozen_leaf(item) for item in x])
    if isinstance(x, np.generic):
        return kind, x.dtype, x.tobytes()
    package = str(kind.__module__).partition(".")[0]       # there may be none
    if package in _OURS or kind.__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
        return kind, x
    if package in sys.stdlib_module_names:                 # Decimal("0.0") == Decimal("0.00")
        return kind, x, repr(x)
    return kind, Same(x) if isinstance(x, Hashable) else x


class Keys(tuple[Any, ...]):
    """The keys of a dict, in order; equal keys of different types, as 1 and True, differ."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keys) and [frozen_leaf(key) for key in self] == [frozen_leaf(key) for key in other]

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def make(self, children: Sequence[Any]) -> dict[Any, Any]:
        """The dict of these keys."""
        return dict(zip(self, children))


class KeysOf(Keys):
    """The keys of a dict of another class, of which it makes another one.

    kind     the class
    given    what the class is called with: the factory of a defaultdict
    settled  its attributes that are numbers or texts
    """

    kind: type[dict[Any, Any]]
    given: tuple[Any, ...]
    settled: dict[str, Any]

    @classmethod
    def of(cls, x: dict[Any, Any], names: tuple[Any, ...]) -> KeysOf:
        """Those of a dict."""
        out = cls(names)
        out.kind, out.given = type(x), (x.default_factory,) if isinstance(x, defaultdict) else ()
        out.settled = {name: v for name, v in getattr(x, "__dict__", {}).items() if type(v) in PLAIN}
        return out

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, KeysOf) and self.kind is other.kind and super().__eq__(other)
                and all(a is b for a, b in zip(self.given, other.given))
                and [(n, frozen_leaf(x)) for n, x in self.settled.items()]
                == [(n, frozen_leaf(x)) for n, x in other.settled.items()])

    __hash__ = tuple.__hash__

    def make(self, children: Sequence[Any]) -> dict[Any, Any]:
        out = self.kind.__new__(self.kind)                 # whatever its __init__ takes
        if isinstance(out, defaultdict):
            out.default_factory = self.given[0]
        if self.settled:
            vars(out).update(self.settled)
        put = OrderedDict.__setitem__ if isinstance(out, OrderedDict) else dict.__setitem__
        for key, x in zip(self, children):
            put(out, key, x)
        return out
