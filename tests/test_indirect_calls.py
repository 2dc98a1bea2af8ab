"""Functions that a recorded function does not call by their names: constructors of classes, and functions that are
arguments of Python's."""
from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import pytest

import mlc
from mlc.ir.diag import UserError

X = mlc.tensor([1.0, 2.0, 3.0])


class Shifted:
    def __init__(self, t: Any, by: float = 1.0) -> None:
        self.value = t + by if type(t) is mlc.Tensor else t - by


class Signed:
    def __init__(self, t: Any) -> None:
        found = t
        if t.sum() > 0:
            found = -t
        self.value = found


class Both(Signed):
    __slots__ = ("more",)

    def __init__(self, t: Any) -> None:
        super().__init__(t)
        self.more = Shifted(t, by=2.0)


@dataclasses.dataclass
class Plain:
    value: Any
    count: int = 2


def in_a_loop(t: Any) -> Any:
    i = 0
    while t.sum() < 50:
        t, i = Shifted(t).value * 2, i + 1
    return t + i


@pytest.mark.parametrize("f", [
    lambda t: Shifted(t).value, lambda t: Signed(t).value, lambda t: Both(t).value * Both(t).more.value,
    lambda t: Plain(t, count=3).value * 3, lambda t: sum(Shifted(t, i).value for i in range(3)),
    lambda t: list(map(Shifted, [t, t]))[1].value, in_a_loop])
def test_constructors_mean_what_they_mean_in_python(f: Any) -> None:
    assert mlc.compile(f)(X).tolist() == f(X).tolist()


def negative(a: Any) -> Any:
    return -a if type(a) is mlc.Tensor else a


def added(a: Any, b: Any) -> Any:
    return a + b if type(b) is mlc.Tensor and (a.sum() > 0) else a - b


@pytest.mark.parametrize("f", [
    lambda t: next(map(negative, [t, 2])), lambda t: next(map(int, [2.5])) + t,
    lambda t: functools.reduce(added, [t, t, -t]), lambda t: next(iter(itertools.starmap(added, [(t, t)]))),
    lambda t: list(itertools.accumulate([t, t], added))[1], lambda t: next(map(functools.partial(added, t), [t])),
    lambda t: sorted([1.0, t], key=lambda v: type(v) is mlc.Tensor)[1] * 2])
def test_functions_that_are_arguments(f: Any) -> None:
    assert mlc.compile(f)(X).tolist() == f(X).tolist()


class Kind:
    priority = 1

    def __init__(self, t: Any = None) -> None:
        self.value = t


class Other(Kind):
    priority = 2


def identity(t: Any) -> Any:
    return t


@pytest.mark.parametrize("f", [
    lambda t: t * max(Kind, Other, key=lambda c: c.priority).priority,
    lambda t: t if max(identity, negative, key=lambda h: h is negative) is negative else -t,
    lambda t: t if functools.reduce(lambda a, b: a, [1, 2], identity) is identity else -t,
    lambda t: t if min([], default=identity) is identity else -t,
    lambda t: t if sorted([Other, Kind], key=lambda c: c.priority)[0] is Kind else -t])
def test_functions_and_classes_that_are_not_called_stay_as_they_are(f: Any) -> None:
    assert mlc.compile(f)(X).tolist() == f(X).tolist()


class Changed:
    def __init__(self, t: Any) -> None:
        self.value = t
        if t.sum() > 0:
            self.value = self.value + 1


def test_an_object_that_is_changed_in_a_branch_is_refused() -> None:
    with pytest.raises(UserError, match="a Changed is changed in a loop or branch"):
        mlc.compile(lambda t: Changed(t).value)(X)
