"""State that a compiled function reaches: every change of it is detected, and recording makes none."""

from __future__ import annotations

import array
import copy
import dataclasses
import enum
import functools
import itertools
import operator
import os
import random
import sys
import threading
import types
import weakref
from argparse import Namespace
from collections import UserDict, deque
from collections.abc import Callable
from contextvars import ContextVar
from decimal import Decimal
from os import getenv as of_environment
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir.diag import UserError
from mlc.utils.data import DataLoader

X = np.arange(3, dtype=np.float32)


class Options:
    scale = 2.0

    def __init__(self) -> None:
        self.rate = 0.5
        self.table: Any = [1.0, {"a": 2.0}]
        self.drawn: Any = None

    def apply(self, x: Any) -> Any:
        return x * self.scale + self.rate

    def with_rate(self, rate: Any) -> Any:
        out = Options()
        out.rate = rate
        return out


NUMBER = 3.0
SETTLED = Options()
OPTIONS = Options()
CONFIG = types.SimpleNamespace(rate=1.0)
ARRAY = np.ones(3, np.float32)
MODEL = nn.Linear(3, 2)


class Slots:
    __slots__ = ("rate",)

    def __init__(self) -> None:
        self.rate = 2.0


class Decorated:
    def __init__(self, f: Any) -> None:
        functools.update_wrapper(self, f)
        self.f, self.scale = f, 2.0

    def __call__(self, x: Any) -> Any:
        return self.f(x) * self.scale


class Scaled(nn.Module):
    scale = 2.0

    def forward(self, x: Any) -> Any:
        return x * self.scale * NUMBER


SLOTS, SCALED = Slots(), Scaled()
DECORATED = Decorated(lambda x: x + 1)
VIEW = ARRAY.view()
VIEW.flags.writeable = False
TABLE = {"a": 2.0}
LOOK_UP = TABLE.get


def helper(x: Any) -> Any:
    return x + NUMBER


def with_default(x: Any, options: Any = OPTIONS) -> Any:
    return x * options.rate


def stretched(x: Any, by: float = 2.0, *, then: float = 1.0) -> Any:
    return x * by + then * stretched.offset  # type: ignore[attr-defined]


stretched.offset = 1.0  # type: ignore[attr-defined]


class Listed(list[float]):
    rate = 2.0


class Other(Options):
    def apply(self, x: Any) -> Any:
        return x * 11.0


NUMBERS = array.array("d", [2.0])
LISTED, TURNED, KEPT = Listed([1.0]), Options(), UserDict(a=2.0)
CURRENT: ContextVar[float] = ContextVar("current", default=2.0)


ACTIVATION: Any = mlc.relu
LAYER: Any = nn.ReLU
SETTINGS = types.ModuleType("first")
SECOND = types.ModuleType("second")
SETTINGS.RATE, SECOND.RATE = 2.0, 3.0  # type: ignore[attr-defined]
NAME = "NUMBER"
OF_TEXT = sys.modules["settings_of_test_reach"] = types.ModuleType("settings_of_test_reach")
OF_TEXT.RATE = 2.0  # type: ignore[attr-defined]
REFERENCE, PROXY = weakref.ref(OPTIONS), weakref.proxy(OPTIONS)
WEAK = weakref.WeakKeyDictionary({OPTIONS: 2.0})
MADE = dataclasses.make_dataclass("Made", ["rate"])(2.0)
STOPPED = threading.Event()


@functools.wraps(mlc.relu)
def wrapped(x: Any) -> Any:
    return mlc.relu(x) * NUMBER


def changes_global(name: str, value: Any) -> Callable[[], None]:
    return lambda: globals().__setitem__(name, value)


def changes_number() -> None:
    global NUMBER
    NUMBER += 1


def changes_helper() -> None:
    global helper
    helper = lambda x: x * 7


def changes_model() -> None:
    global MODEL
    MODEL = nn.Linear(3, 2)


CHANGES: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "a global": (lambda x: x * NUMBER, changes_number),
    "a global of a helper": (lambda x: helper(x), changes_number),
    "a helper": (lambda x: helper(x), changes_helper),
    "an attribute": (lambda x: x * OPTIONS.rate, lambda: setattr(OPTIONS, "rate", OPTIONS.rate + 1)),
    "a method's attribute": (lambda x: OPTIONS.apply(x), lambda: setattr(OPTIONS, "rate", OPTIONS.rate + 1)),
    "an attribute of a class": (lambda x: OPTIONS.apply(x), lambda: setattr(Options, "scale", Options.scale + 1)),
    "an attribute that hides one": (lambda x: OPTIONS.apply(x), lambda: setattr(OPTIONS, "scale", 9.0)),
    "a list in an object": (lambda x: x * OPTIONS.table[0], lambda: OPTIONS.table.__setitem__(0, 5.0)),
    "a dictionary in a list": (lambda x: x * OPTIONS.table[1]["a"], lambda: OPTIONS.table[1].update(a=6.0)),
    "a namespace": (lambda x: x * CONFIG.rate, lambda: setattr(CONFIG, "rate", 4.0)),
    "elements of an array": (lambda x: x * ARRAY, lambda: ARRAY.__setitem__(1, ARRAY[1] + 1)),
    "a model": (lambda x: MODEL(x), changes_model),
    "a weight": (lambda x: MODEL(x), lambda: setattr(MODEL, "weight", MODEL.weight * 2)),
    "the default of a parameter": (with_default, lambda: setattr(OPTIONS, "rate", OPTIONS.rate + 1)),
    "a slot": (lambda x: x * SLOTS.rate, lambda: setattr(SLOTS, "rate", SLOTS.rate + 1)),
    "an object that decorates": (lambda x: DECORATED(x), lambda: setattr(DECORATED, "scale", DECORATED.scale + 1)),
    "what a view shows": (lambda x: x * VIEW, lambda: ARRAY.__setitem__(2, ARRAY[2] + 1)),
    "a method of a container": (lambda x: x * LOOK_UP("a"), lambda: TABLE.update(a=TABLE["a"] + 1)),
    "a global of a module's forward": (SCALED, changes_number),
    "an attribute of a module's class": (SCALED, lambda: setattr(Scaled, "scale", Scaled.scale + 1)),
    "defaults": (lambda x: stretched(x), lambda: setattr(stretched, "__defaults__", (5.0,))),
    "defaults of keywords": (lambda x: stretched(x), lambda: setattr(stretched, "__kwdefaults__", {"then": 7.0})),
    "an attribute of a function": (lambda x: stretched(x), lambda: setattr(stretched, "offset", 3.0)),
    "an attribute of a list": (lambda x: x * LISTED.rate, lambda: setattr(LISTED, "rate", 3.0)),
    "the class of an object": (lambda x: TURNED.apply(x), lambda: setattr(TURNED, "__class__", Other)),
    "a mapping": (lambda x: x * KEPT["a"], lambda: KEPT.update(a=KEPT["a"] + 1)),
    "a variable of a context": (lambda x: x * CURRENT.get(), lambda: CURRENT.set(4.0)),
    "the environment": (lambda x: x * float(os.environ.get("MLC_TEST_RATE", "2")),
                        lambda: os.environ.update(MLC_TEST_RATE="5")),
    "the environment by another name": (lambda x: x * float(of_environment("MLC_TEST_RATE", "2")),
                                        lambda: os.environ.update(MLC_TEST_RATE="5")),
    "an array of Python's": (lambda x: x * NUMBERS[0], lambda: NUMBERS.__setitem__(0, NUMBERS[0] + 1)),
    "a function of the package": (lambda x: ACTIVATION(x), changes_global("ACTIVATION", mlc.tanh)),
    "a class of the package": (lambda x: LAYER()(x), changes_global("LAYER", nn.Tanh)),
    "a module": (lambda x: x * SETTINGS.RATE, changes_global("SETTINGS", SECOND)),
    "a global of what wraps a function of the package": (lambda x: wrapped(x), changes_number),
    "a later attribute of a function": (lambda x: x * getattr(changes_model, "rate", 2.0),
                                        lambda: setattr(changes_model, "rate", 3.0)),
    "an attribute behind a weak reference": (lambda x: x * REFERENCE().rate,  # type: ignore[union-attr]
                                             lambda: setattr(OPTIONS, "rate", OPTIONS.rate + 1)),
    "an attribute behind a proxy": (lambda x: x * PROXY.rate, lambda: setattr(OPTIONS, "rate", OPTIONS.rate + 1)),
    "an entry of a weak dictionary": (lambda x: x * WEAK[OPTIONS], lambda: WEAK.update({OPTIONS: 5.0})),
    "an object of a class that was made": (lambda x: x * MADE.rate, lambda: setattr(MADE, "rate", 3.0)),
    "an event": (lambda x: x * 2 if STOPPED.is_set() else x, lambda: STOPPED.set()),
    "a global by its name": (lambda x: x * globals()[NAME], changes_number),
    "a global of a module by its name": (lambda x: x * getattr(OF_TEXT, "RATE", 1.0),
                                         lambda: setattr(OF_TEXT, "RATE", 5.0)),
    "a derivative's function": (lambda x: mlc.grad(lambda y: (y * OPTIONS.rate).sum())(x),
                                lambda: setattr(OPTIONS, "rate", OPTIONS.rate + 1)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLC_TEST_RATE", "2")
    f, change = CHANGES[name]
    compiled = mlc.compile(f)
    first = compiled(X)
    change()
    np.testing.assert_array_equal(compiled(X).numpy(), f(mlc.tensor(X)).numpy())
    assert not np.array_equal(compiled(X).numpy(), first.numpy())


def test_a_closure_and_code_for_states_that_come_back() -> None:
    training = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).eval()
    options = Options()
    f = mlc.compile(lambda x: training(x) * options.rate)
    results = []
    for options.rate in (1.0, 2.0, 1.0, 2.0):
        results.append(f(X).numpy())
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_array_equal(results[1], 2 * results[0])
    assert f.report().startswith("function: 2 specialisations")


def test_a_module_goes_by_the_name_of_its_class() -> None:
    class Careless(mlc.nn.Module):
        def forward(self, x: Any) -> Any:
            self.seen = x
            return x

    f = mlc.compile(Careless())
    with pytest.raises(mlc.UserError, match=r"MLC0615.*Careless changes self"):
        f(mlc.ones(2))
    assert f.report().startswith("Careless: 0 specialisations")


def test_variables_are_looked_at_on_the_fast_path() -> None:
    f: Any = mlc.compile(lambda x: helper(x) * NUMBER)
    f(X)
    entry, = f.compiled.entries
    before = entry.calls
    np.testing.assert_array_equal(f(X).numpy(), helper(X) * NUMBER)
    assert f.fast_path == "yes" and entry.calls == before + 1
    changes_number()
    np.testing.assert_array_equal(f(X).numpy(), helper(X) * NUMBER)


@pytest.mark.parametrize("f, argument, change", [
    (lambda x, options: options.apply(x), OPTIONS, lambda: setattr(OPTIONS, "rate", OPTIONS.rate + 1)),
    (lambda x, f: f(x), lambda x: x * NUMBER, changes_number), (lambda x, model: model(x), SCALED, changes_number),
])
def test_a_change_of_what_an_argument_reaches_is_seen(f: Any, argument: Any, change: Any) -> None:
    compiled = mlc.compile(f)
    first = compiled(X, argument)
    change()
    np.testing.assert_array_equal(compiled(X, argument).numpy(), f(mlc.tensor(X), argument).numpy())
    assert not np.array_equal(compiled(X, argument).numpy(), first.numpy())


def test_what_is_computed_once_is_computed_again_outside() -> None:
    class Lazy:
        @functools.cached_property
        def twos(self) -> Any:
            return mlc.ones(3) * 2

    lazy = Lazy()
    assert mlc.compile(lambda x: x * lazy.twos)(X).tolist() == (X * 2).tolist()
    assert lazy.twos.tolist() == [2, 2, 2]


class Cached(nn.Module):
    """Factors that are made when they are first needed, or when more of them are."""

    def __init__(self) -> None:
        super().__init__()
        self.factors: Any = None

    def forward(self, x: Any) -> Any:
        if self.factors is None or self.factors.shape[0] < x.shape[0]:
            self.factors = mlc.arange(x.shape[0]).exp()
        return x * self.factors[:x.shape[0]]


def test_a_cache_is_filled_by_the_first_call() -> None:
    cached = Cached()
    f = mlc.compile(lambda x: cached(x))
    for _ in range(3):
        np.testing.assert_allclose(f(X).numpy(), X * np.exp(np.arange(3)), rtol=1e-6)
    assert len(f.compiled.entries) == 1 and type(cached.factors) is mlc.Tensor
    empty = Cached()
    with pytest.raises(UserError, match=r"MLC0997.*makes empty.factors, which was None"):
        mlc.lower(lambda x: empty(x), (X,))


def test_a_cache_that_is_always_empty() -> None:
    cached = Cached()
    f = mlc.compile(lambda x: cached(x))
    for _ in range(8):
        f(X)
        cached.factors = None
    with pytest.raises(UserError, match="MLC0997"):
        f(X)


@pytest.mark.parametrize("numbers", [
    iter([1.0, 2.0]), itertools.cycle([1.0, 2.0]), itertools.chain([1.0], [2.0]), itertools.count(1.0),
    map(float, [1, 2]), iter(DataLoader([1.0, 2.0])), (x for x in [1.0, 2.0])])
def test_an_iterator_goes_on_in_each_call_or_not_at_all(numbers: Any) -> None:
    with pytest.raises(UserError, match="MLC0615"):
        mlc.compile(lambda x: x * next(numbers))(X)


class Counter(nn.Module):
    def __init__(self) -> None:
        self.calls = 0
        self.seen: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x * self.calls


COUNTER = Counter()
SEEN: list[Any] = []


def appends(x: Any) -> Any:
    SEEN.append(x)
    return x


def writes(x: Any) -> Any:
    ARRAY[0] = 1 - ARRAY[0]
    return x * ARRAY


def sets_a_key(x: Any, d: Any) -> Any:
    d["x"] = x
    return x


@pytest.mark.parametrize(("f", "args", "what"), [
    (COUNTER, (X,), "self.calls"), (lambda x: COUNTER(x), (X,), "COUNTER.calls"),
    (lambda m, x: m(x), (COUNTER, X), "m.calls"), (appends, (X,), "SEEN"), (writes, (X,), "ARRAY"),
    (sets_a_key, (X, {"y": X}), "d"),
])
def test_a_function_that_changes_what_was_there_is_refused(f: Any, args: Any, what: str) -> None:
    calls, array, seen = COUNTER.calls, ARRAY.copy(), list(SEEN)
    with pytest.raises(UserError, match=f"changes {what}, which existed before the call") as info:
        mlc.compile(f)(*args)
    assert info.value.code == "MLC0615"
    assert calls == COUNTER.calls and np.array_equal(array, ARRAY) and seen == SEEN


class Mode(enum.IntEnum):
    SLOW = 1
    FAST = 2


class Named:
    """Equal to others of its name, whatever they hold."""

    def __init__(self, name: str, rate: float) -> None:
        self.name, self.rate = name, rate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


@pytest.mark.parametrize(("read", "values"), [
    (lambda v: v.rate, (Named("a", 2.0), Named("a", 3.0))),
    (lambda v: 7 if v is Mode.FAST else 8, (Mode.SLOW, Mode.FAST, 2)),
    (lambda v: 7 if isinstance(next(iter(v)), bool) else 8, ({1: X}, {True: X}, {1.0: X})),
    (lambda v: 7 if isinstance(next(iter(v)), bool) else 8, (frozenset({1}), frozenset({True}))),
    (lambda v: v.start, (range(0), range(1, 1), slice(0, 2), slice(True, 2))),
    (lambda v: v.step, (slice(0, 6, 2), slice(0, 6, 3), range(0, 6, 2), range(0, 6, 3))),
    (lambda v: len(str(v)), (Decimal("0.0"), Decimal("-0.0"), Decimal("0.00"))),
    (lambda v: next(iter(v))[0].rate, (frozenset({(Named("a", 2.0),)}), frozenset({(Named("a", 3.0),)}))),
    (lambda v: np.copysign(1.0, next(iter(v))), ({np.float64(0.0): X}, {np.float64(-0.0): X})),
])
def test_arguments_that_are_equal_and_not_the_same_share_nothing(read: Callable[[Any], Any],
                                                                 values: tuple[Any, ...]) -> None:
    f = mlc.compile(lambda x, v: x * read(v))
    for v in values * 2:
        assert np.array_equal(f(X, v), X * np.float32(read(v))), v


@pytest.mark.parametrize("values", [(0.0, -0.0), (1, True, 1.0), (complex(0, 0), complex(0, -0.0)), ("1", b"1", 1)])
def test_state_that_is_equal_and_not_the_same_is_seen(values: tuple[Any, ...]) -> None:
    held = {"value": values[0]}
    f = mlc.compile(lambda x: x * len(repr(held["value"])))
    for held["value"] in values * 2:
        assert np.array_equal(f(X), X * len(repr(held["value"])))


def test_what_is_of_no_module() -> None:
    kind = type("Odd", (), {"__eq__": lambda a, b: True, "__hash__": lambda a: 1})
    kind.__module__ = None  # type: ignore[assignment]
    a, b = kind(), kind()
    a.k, b.k = 2.0, 3.0
    f = mlc.compile(lambda x, o: x * o.k + mlc.compile(lambda x: x * a.k)(x))
    assert [f(X, o).tolist() for o in (a, b)] == [(X * 4).tolist(), (X * 5).tolist()]


async def later(x: Any) -> Any:
    return x


def one_by_one(x: Any) -> Any:
    yield x


@pytest.mark.parametrize("f", [lambda x: map(abs, [x]), one_by_one, later], ids=["map", "yield", "async"])
@pytest.mark.filterwarnings("ignore:coroutine")
def test_what_is_used_up_after_the_first_call_is_no_result(f: Any) -> None:
    with pytest.raises(TypeError, match=r"MLC0616.* returns a (map|generator|coroutine)"):
        mlc.compile(f)(X)


@pytest.mark.parametrize("f", [lambda x: types.SimpleNamespace(y=x + 1), lambda x: deque([x + 1]),
                               lambda x: {"y": x + 1}.values(), lambda x: SETTLED.with_rate(x + 1)])
def test_tensors_are_no_results_in_what_is_no_tree(f: Any) -> None:
    with pytest.raises(TypeError, match=r"MLC0616.* that holds tensors of this recording"):
        mlc.compile(f)(X)


def test_each_call_makes_the_collections_that_it_gives() -> None:
    kept = {1}
    f = mlc.compile(lambda x: (x, {1, 2}, bytearray(b"ab"), kept))
    first, second = f(X), f(X)
    first[1].add(3)
    first[2].append(7)
    assert second[1:] == ({1, 2}, b"ab", kept) == f(X)[1:] and first[3] is second[3] is kept


class Drawn:
    def __init__(self) -> None:
        self.rate = random.random()

    @property
    def other(self) -> float:
        return float(np.random.rand())


@pytest.mark.parametrize("f", [
    lambda x: x * Drawn().rate, lambda x: x * SETTLED.drawn.other, lambda x: x * sum(map(noisy, [2.0])),
    lambda x: x * functools.partial(random.uniform, 0.0, 1.0)(),
    lambda x: x if os.path.exists("there") else -x, lambda x: x if Path("there").is_file() else -x])
def test_what_differs_in_each_call_is_refused(f: Any) -> None:
    """The state of random numbers is as before."""
    SETTLED.drawn = Drawn()
    before = random.getstate(), np.random.get_state(legacy=False)["state"]["pos"]
    with pytest.raises(UserError, match="MLC0616"):
        mlc.compile(f)(X)
    assert before == (random.getstate(), np.random.get_state(legacy=False)["state"]["pos"])


def noisy(x: float) -> float:
    return x + random.random()


def test_a_deep_copy_is_one() -> None:
    def f(x: Any) -> Any:
        parts = {"y": x * 2}
        copied = copy.deepcopy([x, parts])
        copied[0].add_(1)
        parts["y"].mul_(10)
        return copied, x, parts

    x = mlc.tensor([1.0, 2.0])
    assert str(mlc.compile(f)(x)) == str(f(mlc.tensor([1.0, 2.0]))) and x.tolist() == [1.0, 2.0]


class Counting:
    """An object with a counter, which functions read in some way or not at all."""

    def __init__(self) -> None:
        self.rate, self.count, self.model = 2.0, 0, None

    @property
    def next(self) -> int:
        return self.count + 1

    def seen(self) -> int:
        return self.next

    def log(self) -> None:
        self.count += 1


class Indexed(Counting):
    """One that is read by a method which no name calls."""

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]


class Copy:
    """Made of one."""

    def __init__(self, o: Counting) -> None:
        self.k = o.count


class Everything(Namespace):
    """One of a class whose methods read all attributes."""

    def __init__(self) -> None:
        super().__init__(count=0, rate=2.0)

    def log(self) -> None:
        self.count += 1


GET, READ, COMPUTED = operator.attrgetter("count"), getattr, "".join(["co", "unt"])


def matched(o: Any) -> Any:
    match o:
        case Counting(count=c):
            return c
    return 0


@pytest.mark.parametrize("make, read, matters", [
    (Counting, lambda o, x: x * o.rate, False), (Counting, lambda o, x: x * float(len([o.rate, 1])), False),
    (Counting, lambda o, x: x * o.count, True), (Counting, lambda o, x: x * o.seen(), True),
    (Counting, lambda o, x: x * getattr(o, COMPUTED), True), (Counting, lambda o, x: x * vars(o)[COMPUTED], True),
    (Counting, lambda o, x: x * len(str(o.__dict__)), True), (Counting, lambda o, x: x * copy.copy(o).rate, True),
    (Counting, lambda o, x: x * GET(o), True), (Counting, lambda o, x: x * READ(o, COMPUTED), True),
    (Counting, lambda o, x: x * sum(map(GET, [o])), True), (Counting, lambda o, x: x * Copy(o).k, True),
    (Counting, lambda o, x: x * float(f"{o.count}"), True), (Counting, lambda o, x: x * matched(o), True),
    (Counting, lambda o, x: x * globals()["RE" + "AD"](o, COMPUTED), True),
    (Indexed, lambda o, x: x * o[COMPUTED], True),
    (Everything, lambda o, x: x * len(repr(o)), True),
])
def test_attributes_that_are_not_read_may_change(make: Any, read: Any, matters: bool) -> None:
    o, x = make(), mlc.ones(2)
    f = mlc.compile(lambda x: read(o, x))
    for _ in range(4):
        np.testing.assert_array_equal(f(x).numpy(), np.ones(2) * read(o, 1))
        o.log()
    assert f.compiled.cache.states == (4 if matters else 1)


def test_a_counter_is_guarded_once_an_argument_reads_it() -> None:
    o, x = Counting(), mlc.ones(2)
    f = mlc.compile(lambda x, read: x * o.rate + read(x))
    ways: list[Callable[[Any], Any]] = [lambda x: x, lambda x: x * o.count]
    for read in ways * 3:
        np.testing.assert_array_equal(f(x, read).numpy(), np.ones(2) * (o.rate + read(1)))
        o.log()


def test_a_number_at_the_address_of_an_equal_one_that_is_gone() -> None:
    o, x = Counting(), mlc.ones(2)
    f = mlc.compile(lambda x: x * o.rate)
    for k in range(20):
        o.rate = float(f"{k}.5")
        for _ in range(3):
            assert f(x).tolist() == [o.rate] * 2
            o.log()
        o.rate = float(f"{k}.5")                           # another object, and equal
        f(x)
        o.rate *= 2
        o.rate *= 2
        assert f(x).tolist() == [o.rate] * 2


def test_a_key_that_takes_the_place_of_a_counter() -> None:
    class Own(Counting):
        scale = 2.0

    other, o, x = Own(), Own(), mlc.ones(2)
    other.scale = 7.0                                      # so that objects of the class have a place for it
    f = mlc.compile(lambda x: x * o.scale)
    for _ in range(3):
        f(x)
        o.log()
    del o.count
    o.scale = 9.0
    assert f(x).tolist() == [9.0, 9.0]


def test_hooks_of_all_modules_are_seen() -> None:
    model, x = nn.Linear(2, 2), mlc.ones(1, 2)
    f = mlc.compile(lambda x: model(x))
    with mlc.no_grad():
        for _ in range(3):
            f(x)
        with nn.modules.module.register_module_forward_hook(lambda m, args, out: out + 1):
            assert mlc.equal(f(x), model(x))
        assert mlc.equal(f(x), model(x))
