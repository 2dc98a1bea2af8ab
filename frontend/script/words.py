"""Guards that are words of memory: whether objects have changed, asked without touching them one by one.

CPython keeps pointers in dicts, cells, slots and lists, up to 3.12 a version in each dict that every change replaces,
and from 3.12 on one in each class that is asked for it. A guard is the address of such a word, with its value; native
code compares thousands of them in microseconds. A word that differs says that the object may have changed, and is then
looked at. Where this process lays objects out differently, there are no addresses, and every object is looked at in
each call.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from functools import cache
from types import CellType
from typing import Any, NamedTuple

WORD = 8
TYPE, CELL, DICT_VERSION, LIST_SIZE, LIST_ITEMS, DICT_OF_OBJECT = 8, 16, 24, 16, 24, -24
"""Offsets in objects: of their type, the contents of cells, the version of dicts, size and items of lists, and the dict
that holds the attributes of an object, which is before it."""
HAS_VERSIONS = sys.version_info < (3, 13)
"""Whether every change of a dict replaces its version."""
DICT_COUNT, DICT_KEYS, DICT_VALUES, ORDER_STATE = 16, 32, 40, 88
"""Offsets of the length and the table of a dict, and of its values, if other dicts share the table; and in an
OrderedDict of a word that changes with the order."""
KEYS_INDEX_BYTES, KEYS_KIND, KEYS_COUNT, KEYS_INDICES, KIND_OF_NAMES, KIND_SHARED = 9, 10, 24, 32, 1, 2
"""Offsets in a table of the logarithm of the bytes of its indices, of its kind, of the number of entries, and of the
indices, before the entries; and the kinds whose keys are all strings, of one dict, or of all objects of a class."""
VALUES = 0 if HAS_VERSIONS else WORD
"""Offset of the first of the values, behind their number and that of their places in bytes; behind them are the
numbers of the places in the order in which they were filled, in bytes, too."""
CLASS_VERSION = 384
"""Offset in a class of its version: 0 if nobody has asked for one since the last change."""
FUNCTION = {"__code__": 48, "__defaults__": 56, "__kwdefaults__": 64}
"""Offsets in functions."""


def word(address: int) -> int:
    """The word of memory at an address."""
    return ctypes.c_uint64.from_address(address).value


def rows_of(addresses: Sequence[int]) -> array[int]:
    """Rows of an address and the word there; words that lie side by side are read at once."""
    words, start = array("Q"), 0
    for i, address in enumerate(addresses, 1):
        if i == len(addresses) or addresses[i] != address + WORD:
            words.frombytes(ctypes.string_at(addresses[start], WORD * (i - start)))
            start = i
    rows = array("Q", bytes(2 * WORD * len(words)))
    rows[::2], rows[1::2] = array("Q", addresses), words
    return rows


class _Sample:
    a: Any
    b: Any


def _sample(x: int = 1, *, y: int = 2) -> int:
    return x + y


@cache
def known() -> bool:
    """Whether the offsets are those of this process."""
    version = sys.version_info[:2]
    if sys.implementation.name != "cpython" or not (3, 11) <= version <= (3, 14) or sys.maxsize != 2**63 - 1 or (
            "t" in sys.abiflags):
        return False
    cell, items, x = CellType(table_of := [1]), [object(), object()], _Sample()
    x.a, x.b = 1, items
    own = vars(x)
    return (word(id(cell) + CELL) == id(table_of) and all(map(_is_guarded, (dict, OrderedDict)))
            and word(id(items) + LIST_SIZE) == 2 and word(word(id(items) + LIST_ITEMS) + WORD) == id(items[1])
            and [*map(word, of_entry(named := {"p": 1, "q": items}, "q") or ())][1:] == [id([*named][1]), id(items)]
            and [*map(word, of_entries(named, {"q"}) or ())][4:] == [id(1), id([*named][1])]
            and word((of_object(x, {"a"}) or [0])[-1]) == id(items)
            and (HAS_VERSIONS or (id(items) in map(word, _of_contents(own)) and _has_class_versions()))
            and all(word(id(_sample) + at) == id(getattr(_sample, name)) for name, at in FUNCTION.items())
            and word(id(x) + TYPE) == id(_Sample) and word(id(x) + DICT_OF_OBJECT) == id(own))


def _is_guarded(kind: Callable[[Any], Any]) -> bool:
    """Whether changes of a dict of a class change its words: another value, another key, and another order."""
    changes: list[Callable[[Any], Any]] = [
        lambda d: d.update(b=3), lambda d: d.update(c=3), lambda d: d.pop("a"), lambda d: d.update({"a": d.pop("a")}),
        lambda d: d.move_to_end("a") if kind is OrderedDict else d.clear()]
    for change in changes:
        for table in (kind({"a": 1, "b": 2}), kind({1: 1, "a": 1, "b": 2})):
            addresses = of_dict(table)
            before = rows_of(addresses)
            change(table)
            if rows_of(addresses) == before:
                return False
    return True


def _has_class_versions() -> bool:
    """Whether classes have versions, which every change of theirs and of their bases replaces."""
    base = type("base", (), {"a": 1})
    derived = type("derived", (base,), {})
    for changed in (derived, base):
        found = _of_version(derived)
        if found is None or not word(found[0]):
            return False
        before = word(found[0])
        changed.b = 1  # type: ignore[attr-defined]
        if word(found[0]) == before:
            return False
    return True


def of_dict(x: dict[Any, Any]) -> list[int]:
    """The addresses of the words that change with a dict or an OrderedDict."""
    of_order = [id(x) + ORDER_STATE] if type(x) is OrderedDict else []
    return [*([id(x) + DICT_VERSION] if HAS_VERSIONS else _of_contents(x)), *of_order]


def _of_contents(table: dict[Any, Any]) -> list[int]:
    """The addresses of the words of all entries of a dict, behind those that say where they are."""
    keys, values = word(id(table) + DICT_KEYS), word(id(table) + DICT_VALUES)
    found = [*(id(table) + at for at in (DICT_COUNT, DICT_KEYS, DICT_VALUES)), keys + KEYS_COUNT]
    if values:
        places = ctypes.c_uint8.from_address(values).value
        return [*found, *range(values + VALUES, values + VALUES + WORD * places, WORD), *_of_order(values)]
    first = keys + KEYS_INDICES + (1 << ctypes.c_uint8.from_address(keys + KEYS_INDEX_BYTES).value)
    of_names = ctypes.c_uint8.from_address(keys + KEYS_KIND).value == KIND_OF_NAMES
    return [*found, *range(first, first + (2 if of_names else 3) * WORD * word(keys + KEYS_COUNT), WORD)]


def _of_order(values: int) -> list[int]:
    """The addresses of the words that say in which order the attributes of an object were set."""
    if HAS_VERSIONS:
        return []
    places = ctypes.c_uint8.from_address(values).value
    end = values + VALUES + WORD * places
    return [values, *range(end, end + places, WORD)]


def of_class(x: type) -> list[int] | None:
    """The addresses of the words that change with the attributes of a class; None if that cannot be told."""
    if not HAS_VERSIONS:
        return _of_version(x)
    inside = gc.get_referents(vars(x))                     # the dict, which is behind a proxy
    return of_dict(inside[0]) if inside and type(inside[0]) is dict else None


def _of_version(x: type) -> list[int] | None:
    """The address of the version of a class; None if it can have none any more, after very many changes."""
    assign = ctypes.pythonapi.PyUnstable_Type_AssignVersionTag
    return [id(x) + CLASS_VERSION] if assign(ctypes.py_object(x)) else None


def of_function(x: Any, name: str) -> list[int] | None:
    """The address of a slot of a function: its code, or defaults."""
    return [id(x) + FUNCTION[name]] if name in FUNCTION else None


def of_entry(table: dict[str, Any], name: str) -> list[int] | None:
    """The addresses of the words that change with what a dict has under a name: those of its table, and of the key and
    the value there; None if the dict has no such table."""
    first, numbers = _entries(table)
    if word(id(table) + DICT_VALUES) or id(name) not in numbers:       # it may be there as another string, too
        return None
    entry = first + 2 * WORD * numbers[id(name)]
    return [id(table) + DICT_KEYS, entry, entry + WORD]


def of_keys(table: dict[str, Any]) -> list[int]:
    """The addresses of the words that change with another key in a dict: those of its table, and of their number
    there, holes included; where other dicts share the table, all words of the dict."""
    if word(id(table) + DICT_VALUES):
        return of_dict(table)
    return [id(table) + DICT_KEYS, word(id(table) + DICT_KEYS) + KEYS_COUNT]


def of_entries(table: dict[str, Any], unguarded: Collection[str]) -> list[int] | None:
    """The addresses of the words that change with a dict, but for the values under some keys; None if the dict has no
    such table."""
    first, numbers = _entries(table)
    if not numbers.keys() >= {*map(id, table)}:
        return None
    found, values = [id(table) + at for at in (DICT_COUNT, DICT_KEYS, DICT_VALUES)], word(id(table) + DICT_VALUES)
    if values:                                             # of keys that all objects of a class share
        ignored = {id(name) for name in table if name in unguarded}
        return [*found, word(id(table) + DICT_KEYS) + KEYS_COUNT, *_of_order(values),
                *(values + VALUES + WORD * number for name, number in numbers.items() if name not in ignored)]
    for name in table:
        entry = first + 2 * WORD * numbers[id(name)]
        found += [entry] if name in unguarded else [entry, entry + WORD]
    return found


def _entries(table: dict[str, Any]) -> tuple[int, dict[int, int]]:
    """The address of the entries of a dict, and their numbers by the ids of the keys; none if its table is of another
    kind."""
    keys = word(id(table) + DICT_KEYS)
    if ctypes.c_uint8.from_address(keys + KEYS_KIND).value not in (KIND_OF_NAMES, KIND_SHARED):
        return 0, {}
    first = keys + KEYS_INDICES + (1 << ctypes.c_uint8.from_address(keys + KEYS_INDEX_BYTES).value)
    names = (ctypes.c_uint64 * (2 * word(keys + KEYS_COUNT))).from_address(first)[::2]
    return first, {name: number for number, name in enumerate(names) if name}


def of_list(x: Any) -> list[int] | None:
    """The addresses of the words that change with a list."""
    if type(x) is not list:
        return None
    start = word(id(x) + LIST_ITEMS)
    return [id(x) + LIST_SIZE, id(x) + LIST_ITEMS, *range(start, start + WORD * len(x), WORD)]


def of_object(x: Any, unguarded: Collection[str] = ()) -> list[int] | None:
    """The addresses of the words that change with the class and the attributes of an object, but for some of them."""
    own = vars(x)
    if type(own) is not dict or word(id(x) + DICT_OF_OBJECT) != id(own):
        return None
    entries = of_entries(own, unguarded) if unguarded else None
    return [id(x) + TYPE, id(x) + DICT_OF_OBJECT, *(entries or of_dict(own))]


def of_slots(x: Any, names: Sequence[str]) -> list[int] | None:
    """The addresses of slots of an object."""
    kind: Any = type(x)
    offsets = [_offset(kind, name) for name in names]
    return [id(x) + at for at in offsets if at is not None] if None not in offsets else None


class _Member(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("offset", ctypes.c_ssize_t)]
    offset: int


_MEMBER = 40
"""Offset of the definition in the descriptor of a slot."""


@cache
def _offset(kind: Any, name: str) -> int | None:
    """The offset of a slot in the instances of a class; None for what is no slot."""
    descriptor = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    if type(descriptor).__name__ != "member_descriptor":
        return None
    return _Member.from_address(word(id(descriptor) + _MEMBER)).offset


class _Guarded(NamedTuple):
    """Places and their words: what a `Watch` has at one time.

    rows       of addresses and values, and where these are
    owner      per row: the number of the place
    places     each with the first and the last of its rows
    looked_at  those that have no words
    """

    rows: array[int]
    address: int
    owner: list[int]
    places: list[tuple[Any, int, int]]
    looked_at: list[Any]

    @staticmethod
    def of(found: Sequence[tuple[Any, list[int] | None]]) -> _Guarded:
        """Places with the addresses of their words, which are read now."""
        rows, owner, places = array("Q"), list[int](), list[tuple[Any, int, int]]()
        for place, addresses in found:
            if addresses is not None:
                rows += rows_of(addresses)
                places.append((place, len(owner), len(owner) + len(addresses)))
                owner += [len(places) - 1] * len(addresses)
        return _Guarded(rows, rows.buffer_info()[0], owner, places, [place for place, a in found if a is None])


class Watch:
    """Places whose state is guarded by words of memory, and those that are looked at in each call.

    `first_changed` is native: the number of the first word from one on that differs, of rows of addresses and values.
    It is None if there is no native code.
    """

    def __init__(self, places: Sequence[Any], first_changed: Callable[[int, int, int], int] | None) -> None:
        usable = first_changed is not None and known()
        self._first_changed: Any = first_changed
        self._now = _Guarded.of([(place, place.words() if usable else None) for place in places])

    def rows(self) -> tuple[int, int, Any] | None:
        """The address and number of the rows, and what they are in; None if some places have to be looked at."""
        now = self._now
        return None if now.looked_at else (now.address, len(now.owner), now.rows)

    def holds(self) -> bool:
        """Whether nothing has changed."""
        now = self._now
        rows, count, at = now.rows, len(now.owner), 0
        others = dict[int, list[int] | None]()             # the words of places that have another number than before
        while at < count and (at := self._first_changed(now.address, at, count)) < count:
            number = now.owner[at]
            place, start, at = now.places[number]
            if not place.holds():
                return False
            place.renew()                                  # the rows have the addresses of what it keeps
            addresses = place.words()
            if addresses is None or len(addresses) != at - start:
                others[number] = addresses
            else:
                rows[2 * start:2 * at] = rows_of(addresses)
        if not all(place.holds() for place in now.looked_at):
            return False
        if others:                                         # new rows, as native code may be reading those of before
            found = [(place, others[n] if n in others else rows[2 * start:2 * end:2].tolist())
                     for n, (place, start, end) in enumerate(now.places)]
            self._now = _Guarded.of([*found, *((place, None) for place in now.looked_at)])
        return True
