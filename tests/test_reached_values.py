"""Kinds of values that a compiled function reaches, each of which may change: a call then gives what Python gives."""

from __future__ import annotations

import configparser
import ctypes
import dataclasses
import functools
import io
import itertools
import queue
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import mlc
from mlc.models.layers import RMSNorm
from mlc.models.parameters import Drawn, Place

X = np.arange(1, 5, dtype=np.float32).reshape(2, 2)
RATE = 2.0


@pytest.fixture(autouse=True)
def _same_rate() -> Iterator[None]:
    before = dict(globals())
    yield
    for name in globals().keys() - before.keys():
        del globals()[name]
    globals().update(before)


def check(f: Callable[..., Any], change: Callable[[], Any], *given: Any) -> None:
    """Compiled before a change, a function gives after it what it gives as Python, which is something else."""
    compiled, x = mlc.compile(f), mlc.tensor(X)
    first = compiled(x, *given).numpy()
    np.testing.assert_array_equal(first, f(x, *given).numpy())
    change()
    for _ in range(2):
        np.testing.assert_allclose(compiled(x, *given).numpy(), f(x, *given).numpy(), rtol=1e-6)
    assert not np.array_equal(compiled(x, *given).numpy(), first)


def sets(name: str, value: Any) -> Callable[[], None]:
    """A change of a global."""
    return lambda: globals().__setitem__(name, value)


# -- objects of this package ------------------------------------------------------------------------------------------
def test_a_layer_of_a_language_model() -> None:
    norm = RMSNorm(Place(Drawn(0, trained=False)), 2, 0.0)
    check(lambda x: norm(x), lambda: setattr(norm, "epsilon", 100.0))
    check(lambda x: norm(x), lambda: setattr(norm, "weight", mlc.full((2,), 9.0)))


def test_a_distribution() -> None:
    normal = mlc.distributions.Normal(mlc.tensor(0.0), mlc.tensor(1.0))
    check(lambda x: normal.log_prob(x), lambda: setattr(normal, "loc", mlc.tensor(5.0)))


@pytest.mark.parametrize("change", [
    lambda s: s.zero_(), lambda s: s.mul_(2.0),
    lambda s: s.copy_(mlc.tensor([[5.0, 0.0], [0.0, 7.0]]).to_sparse())])
def test_a_sparse_tensor(change: Callable[[Any], Any]) -> None:
    s = mlc.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    check(lambda x: mlc.sparse.mm(s, x), lambda: change(s))


# -- classes ----------------------------------------------------------------------------------------------------------
@dataclasses.dataclass
class Data:
    x: Any
    factor = 3.0

    def scaled(self) -> Any:
        return self.x * RATE

    def by_class(self) -> Any:
        return self.x * self.factor


class Named(NamedTuple):
    x: Any

    @property
    def rate(self) -> Any:
        return RATE


class Table(dict[str, Any]):
    def scaled(self) -> Any:
        return self["x"] * RATE


def test_what_the_classes_of_arguments_read(monkeypatch: pytest.MonkeyPatch) -> None:
    x = mlc.tensor(X)
    check(lambda _, d: d.scaled(), sets("RATE", 7.0), Data(x))
    check(lambda y, d: y * d.rate, sets("RATE", 8.0), Named(x))
    check(lambda _, d: d.scaled(), sets("RATE", 9.0), Table(x=x))
    check(lambda _, d: d.by_class(), lambda: monkeypatch.setattr(Data, "factor", 5.0), Data(x))
    check(lambda _, d: d.scaled(), lambda: monkeypatch.setattr(Data, "scaled", lambda self: self.x - 100.0), Data(x))


# -- functions behind others ------------------------------------------------------------------------------------------
class Settings:
    def __init__(self) -> None:
        self.rate, self.table = 1.0, [1.0]


@functools.cache
def settings() -> Settings:
    return Settings()


@functools.lru_cache(maxsize=4)
def rate(times: float = 1.0) -> float:
    MADE.append(times)
    return RATE * times


@functools.cache
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@functools.cache
def scaled(x: Any, by: float) -> Any:
    return x * by * RATE


MADE: list[float] = []


def test_what_a_function_keeps_in_its_cache_is_what_a_call_gets() -> None:
    settings().rate = 5.0
    check(lambda x: x * settings().rate, lambda: setattr(settings(), "rate", 7.0))
    check(lambda x: x * len(settings().table), lambda: settings().table.append(2.0))

    def cleared() -> None:
        sets("RATE", 9.0)()
        rate.cache_clear()
    rate.cache_clear()
    check(lambda x: x * rate() + rate(times=2.0), cleared)
    compiled = mlc.compile(lambda x: x * rate())
    compiled(X)
    sets("RATE", 3.0)()
    assert compiled(mlc.tensor(X).double()).tolist() == (X * 9.0).tolist() and rate() == 9.0
    assert mlc.compile(lambda x: x * float(fibonacci(80) % 1000))(X).tolist() == (X * 685.0).tolist()


def test_a_cache_keeps_no_tensors_of_a_recording() -> None:
    compiled = mlc.compile(lambda x: scaled(x, 2.0))
    assert compiled(X).tolist() == (X * 4).tolist() and scaled.cache_info().currsize == 0
    sets("RATE", 5.0)()
    assert compiled(X).tolist() == (X * 10).tolist() and scaled.cache_info().currsize == 0

    def f(x: Any) -> Any:
        @functools.cache
        def twice() -> Any:
            return x * 2
        return twice() + twice()
    assert mlc.compile(f)(X).tolist() == (X * 4).tolist()


def test_a_function_of_numpy() -> None:
    ones, of_numpy = np.ones(2, np.float32), np.vectorize(lambda k: k * RATE)
    check(lambda x: x * mlc.tensor(of_numpy(ones)).float(), sets("RATE", 4.0))


class Partial:
    scaled = functools.partialmethod(lambda self, k, x: x * RATE * k, 2.0)

    @functools.singledispatchmethod
    def by(self, k: Any) -> float:
        return RATE


def test_a_method_behind_a_descriptor() -> None:
    partial = Partial()
    check(lambda x: partial.scaled(x), sets("RATE", 4.0))
    check(lambda x: x * partial.by(1), sets("RATE", 5.0))


# -- what Python does not show ----------------------------------------------------------------------------------------
def test_elements_of_a_tensor_of_torch() -> None:
    torch = pytest.importorskip("torch")
    w = torch.ones(2)
    check(lambda x: x * w, lambda: w.mul_(3))
    check(lambda x: x * float(w[0]), lambda: w.data.mul_(3))


ITERATORS: dict[str, Callable[[], Iterator[Any]]] = {
    "islice": lambda: itertools.islice([1.0, 2.0, 3.0], 3),
    "takewhile": lambda: itertools.takewhile(lambda v: v < 9, [1.0, 2.0, 3.0]),
    "filterfalse": lambda: itertools.filterfalse(lambda v: v < 0, [1.0, 2.0, 3.0]),
    "starmap": lambda: itertools.starmap(lambda a: a, [(1.0,), (2.0,), (3.0,)]),
    "accumulate": lambda: itertools.accumulate([1.0, 1.0, 1.0]),
    "accumulate from": lambda: itertools.accumulate([1.0, 1.0, 1.0], initial=1.0),
    "pairwise": lambda: itertools.pairwise([1.0, 2.0, 3.0]),
    "product": lambda: itertools.product([1.0, 2.0, 3.0]),
    "permutations": lambda: itertools.permutations([1.0, 2.0, 3.0], 1),
    "calls": lambda: iter(iter([1.0, 2.0, 3.0]).__next__, 9.0),
    "finditer": lambda: re.finditer(r"\d", "123"),
}


@pytest.mark.parametrize("name", ITERATORS)
@pytest.mark.filterwarnings("ignore:Pickle, copy, and deepcopy")
def test_an_iterator_that_goes_on_is_refused(name: str) -> None:
    it = ITERATORS[name]()
    with pytest.raises(mlc.UserError, match="MLC0615"):
        mlc.compile(lambda x: (next(it), x)[1])(X)

    def loops(x: Any) -> Any:
        for _ in others:
            x = x + 1
        return x
    others = ITERATORS[name]()
    with pytest.raises(mlc.UserError, match="MLC0615"):
        mlc.compile(loops)(X)
    unused: Any = ITERATORS[name]()
    for _ in range(2):
        assert mlc.compile(lambda x: x if unused else -x)(X).tolist() == X.tolist()


def test_what_is_read_and_queued_outside_is_refused() -> None:
    lines, numbers = io.StringIO("1\n2\n"), queue.Queue[float]()
    numbers.put(1.0)

    def puts(x: Any) -> Any:
        numbers.put(2.0)
        return x
    for f in (lambda x: x * float(lines.readline()), lambda x: x * numbers.get(), puts):
        with pytest.raises(mlc.UserError, match=r"MLC0616.*called while the function is recorded"):
            mlc.compile(f)(X)
    assert lines.tell() == 0 and numbers.qsize() == 1

    def within(x: Any) -> Any:
        own: queue.Queue[float] = queue.Queue()
        own.put(float(io.StringIO("3").readline()))
        return x * own.get()
    assert mlc.compile(within)(X).tolist() == (X * 3).tolist()


# -- what is read otherwise than by its name --------------------------------------------------------------------------
class Own:
    def __init__(self) -> None:
        self.pace = 2.0

    @property
    def shown(self) -> str:
        return str(self.pace)


FORMAT, FORMATS = "{0.pace}", {"a": "{0.pace}", "b": "{0.shown}"}
LATER = types.ModuleType("later_of_test_reached_values")
sys.modules[LATER.__name__] = LATER


@pytest.mark.parametrize("read", [
    lambda o: FORMAT.format(o), lambda o: FORMATS["a"].format(o), lambda o, text=FORMAT: text.format(o),
    lambda o, show=FORMAT.format: show(o), lambda o: FORMATS["b"].format(o)])
def test_an_attribute_that_a_text_names(read: Callable[[Own], str]) -> None:
    own = Own()
    check(lambda x: x * float(read(own)), lambda: setattr(own, "pace", 7.0))


APPEARS: float
MADE_LATER: float


def appears(x: Any) -> Any:
    try:
        return x * APPEARS
    except NameError:
        return x


def makes(x: Any) -> Any:
    global MADE_LATER
    try:
        return x * MADE_LATER
    except NameError:
        MADE_LATER = 3.0
        return x * MADE_LATER


def test_a_global_that_is_not_there_yet() -> None:
    check(appears, sets("APPEARS", 7.0))
    compiled = mlc.compile(makes)
    assert [compiled(X).tolist() for _ in range(3)] == [(X * 3).tolist()] * 3


@pytest.mark.parametrize(("f", "name"), [
    (lambda x: x * getattr(LATER, "RATE", 1.0), "RATE"),
    (lambda x: x * LATER.SCALE if hasattr(LATER, "SCALE") else x, "SCALE"),
    (lambda x: x * (LATER.OTHER if "OTHER" in vars(LATER) else 1.0), "OTHER")])
def test_an_attribute_of_a_module_that_is_not_there_yet(f: Callable[[Any], Any], name: str) -> None:
    check(f, lambda: setattr(LATER, name, 7.0))


LAZY = types.ModuleType("lazy_of_test_reached_values")
RATES = {"rate": 2.0}


def of_table(name: str) -> float:
    if name not in RATES:
        raise AttributeError(name)
    return RATES[name]


LAZY.__getattr__ = of_table  # type: ignore[method-assign]


class Meta(type):
    depth = 2.0

    @property
    def rate(cls) -> float:
        return RATE


class Config(metaclass=Meta):
    pass


class Kind(types.ModuleType):
    @property
    def rate(self) -> float:
        return RATE


KIND = Kind("kind_of_test_reached_values")


def test_attributes_that_classes_and_modules_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    check(lambda x: x * LAZY.rate, lambda: RATES.update(rate=7.0))
    check(lambda x: x * Config.rate, sets("RATE", 8.0))
    check(lambda x: x * Config.depth, lambda: monkeypatch.setattr(Meta, "depth", 9.0))
    check(lambda x: x * KIND.rate, sets("RATE", 10.0))


KEYS = ["l" + "r"]


@pytest.mark.parametrize("read", [
    lambda g: next(v for v in g.values() if isinstance(v, float)), lambda g: g[KEYS[0]],
    lambda g: dict(g)["".join(("l", "r"))]])
def test_a_learning_rate_that_is_read_without_its_name(read: Callable[[dict[str, Any]], float]) -> None:
    w = mlc.nn.Parameter(mlc.tensor([1.0, -2.0]))
    optimizer = mlc.optim.SGD([w], lr=0.5)
    group = optimizer.param_groups[0]

    @mlc.compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        (w * w * x).sum().backward()
        optimizer.step()
        return x * read(group)
    for rate in (0.5, 0.25, 0.125):
        group["lr"] = rate
        assert step(X).tolist() == (X * rate).tolist()


def test_a_property_that_is_computed_once_is_computed_once() -> None:
    class Computed:
        rate = 2.0

        @functools.cached_property
        def doubled(self) -> float:
            return self.rate * 2

    computed = Computed()
    compiled = mlc.compile(lambda x: x * computed.doubled)
    assert compiled(X).tolist() == (X * 4).tolist() and vars(computed) == {"doubled": 4.0}
    computed.rate = 5.0
    assert compiled(X).tolist() == (X * 4).tolist()
    del computed.doubled
    assert compiled(X).tolist() == (X * 10).tolist()


# -- objects of Python and numpy --------------------------------------------------------------------------------------
POLYNOMIAL, NUMBER, PAIR = np.poly1d([2.0, 0.0]), ctypes.c_double(2.0), (ctypes.c_int * 2)(2, 3)
BYTES, PARSER = bytearray(b"\x02\x03"), configparser.ConfigParser()
VIEW = memoryview(BYTES)
PARSER.read_dict({"a": {"rate": "2"}})


@pytest.mark.parametrize(("f", "change"), [
    (lambda x: x * float(POLYNOMIAL(1.0)), lambda: POLYNOMIAL.__setitem__(1, 7.0)),
    (lambda x: x * NUMBER.value, lambda: setattr(NUMBER, "value", 7.0)),
    (lambda x: x * PAIR[0], lambda: PAIR.__setitem__(0, 7)), (lambda x: x * VIEW[0], lambda: BYTES.__setitem__(0, 7)),
    (lambda x: x * float(PARSER["a"]["rate"]), lambda: PARSER.set("a", "rate", "7"))])
def test_an_object_of_python_or_numpy(f: Callable[[Any], Any], change: Callable[[], Any]) -> None:
    check(f, change)


def test_the_arguments_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    check(lambda x: x * len(sys.argv), lambda: sys.argv.append("a"))


def test_the_cache_of_a_transform_is_no_change() -> None:
    transform = mlc.distributions.transforms.ExpTransform(cache_size=1)
    assert mlc.compile(lambda x: transform.inv(transform(x)))(X).tolist() == X.tolist()
