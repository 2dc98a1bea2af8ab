"""Words of memory that change with an object: on every CPython that mlc runs on, and with every change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import mlc.api  # noqa: F401 (hands over the compiler)
from mlc.frontend.compiler import compiler
from mlc.frontend.script import words


class Holder:
    """An object with attributes; those of all its instances share a table of names."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def changes(addresses: list[int] | None, change: Callable[[], object]) -> bool:
    """Whether some of the words are others after a change."""
    assert addresses is not None
    before = [*map(words.word, addresses)]
    change()
    return [*map(words.word, addresses)] != before


def test_the_layout_of_objects_is_known() -> None:
    assert words.known()


@pytest.mark.parametrize("table", [
    {"a": 1, "b": 2}, {1: 1, "a": 1, "b": 2}, {str(i): i for i in range(1000)} | {"a": 1}],
    ids=["names", "others", "many"])
@pytest.mark.parametrize("kind", [dict, OrderedDict])
@pytest.mark.parametrize("change", [
    lambda d: d.update(a=3), lambda d: d.update(z=1), lambda d: d.pop("a"), lambda d: d.clear(),
    lambda d: d.update(a=d.pop("a"))], ids=["value", "new", "gone", "empty", "order"])
def test_dicts(table: dict[Any, int], kind: Callable[[Any], Any], change: Callable[[Any], object]) -> None:
    made = kind({"x": 0, **table})
    assert changes(words.of_dict(made), lambda: change(made))
    assert not changes(words.of_dict(made), lambda: made.get("x"))


def test_the_order_of_an_ordered_dict() -> None:
    made = OrderedDict(a=1, b=2, c=3)
    assert changes(words.of_dict(made), lambda: made.move_to_end("b"))


@pytest.mark.parametrize("change", [
    lambda x: setattr(x, "a", 3), lambda x: setattr(x, "c", 3), lambda x: delattr(x, "a"), lambda x: x.__dict__.clear(),
    lambda x: x.__dict__.update(a=x.__dict__.pop("a")), lambda x: setattr(x, "__dict__", {"a": 1, "b": 2}),
    lambda x: setattr(x, "__class__", type("Other", (Holder,), {}))])
@pytest.mark.parametrize("unguarded", [(), ("b",)])
def test_objects(change: Callable[[Any], object], unguarded: tuple[str, ...]) -> None:
    made = Holder(a=1, b=2)
    others = [Holder(a=1, b=2) for _ in range(3)]
    found = words.of_object(made, unguarded)
    assert not changes(found, lambda: setattr(others[0], "a", 5))
    assert changes(found, lambda: setattr(made, "b", 5)) is not bool(unguarded)
    assert changes(found, lambda: change(made))


def test_classes() -> None:
    kind = type("Kind", (), {"a": 1})
    for change in (lambda: setattr(kind, "a", 2), lambda: setattr(kind, "b", 2), lambda: delattr(kind, "a")):
        assert changes(words.of_class(kind), change)
    assert not changes(words.of_class(kind), lambda: kind().b)


class Entries:
    """A place: the entries of a dict."""

    def __init__(self, table: dict[str, int]) -> None:
        self.table = table
        self.renew()

    def renew(self) -> None:
        self.kept = dict(self.table)

    def holds(self) -> bool:
        return self.table == self.kept

    def words(self) -> list[int]:
        return words.of_dict(self.table)


def test_a_dict_whose_table_grows_is_guarded_on() -> None:
    places = [Entries({"a": 1, "b": 2}), Entries({"c": 3})]
    watch = words.Watch(places, compiler().first_changed())
    for i in range(100):
        places[0].table[f"new {i}"] = 1
        del places[0].table[f"new {i}"]
        assert watch.holds() and watch.rows() is not None and watch.holds()
    places[1].table["c"] = 4
    assert not watch.holds() and not watch.holds()
    places[1].table["c"] = 3
    assert watch.holds()
    places[0].table["a"] = 5
    assert not watch.holds()
