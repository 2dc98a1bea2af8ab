"""No native code reads or writes outside of its memory, whatever the vector width, the threads and the alignment."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends.cpu.targets import host
from mlc.backends.executable import Entry, build
from mlc.dialects.builtin import Module
from mlc.ir.parser import parse_module
from mlc.passes import pipeline
from mlc.tools.redzones import FencedEntry, Memory, Pages
from tests import corpus, op_sample
from tests.arrays import Array, difference
from tests.op_samples import ONCE_COMPOSITES, SAMPLES, Sample
from tests.redzones import THREADS, WIDTHS, check, differences, in_a_child, layouts
from tests.test_insert_checks import DUMP

ODD_SIZES = ({"B": 0, "C": 1}, {"B": 1, "C": 1}, {"B": 13, "C": 17})
"""Besides those of the samples, 3 and 2."""


def sized(monkeypatch: pytest.MonkeyPatch, sample: Sample, sizes: dict[str, int]) -> list[Array]:
    monkeypatch.setattr(op_sample, "NUMBERS", sizes)
    return sample.arguments()


@pytest.mark.parametrize("sample", SAMPLES[7::190], ids=str)
def test_a_few_operations(sample: Sample) -> None:
    check(lambda: sample.build()[0], [sample.arguments()], WIDTHS[-1:], (2,))


@pytest.mark.slow
@pytest.mark.parametrize("sample", ONCE_COMPOSITES, ids=str)
def test_every_operation(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every width; at sizes of 0, 1 and primes where they are symbols."""
    calls = [sample.arguments()]
    if sample.values is None and any(not t.is_static for t in sample.types):
        calls += [sized(monkeypatch, sample, sizes) for sizes in ODD_SIZES]
    check(lambda: sample.build()[0], calls, WIDTHS, THREADS)


QUICK = ("symbolic_rows_and_columns", "softmax_by_hand")


def program(name: str) -> Module:
    return corpus.PROGRAMS[name]()[0]


@pytest.mark.parametrize("name", QUICK)
def test_a_few_programs(name: str) -> None:
    check(lambda: program(name), [corpus.PROGRAMS[name]()[1]], WIDTHS[-1:], (1, 3))


@pytest.mark.slow
@pytest.mark.parametrize("name", corpus.PROGRAMS)
def test_every_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [corpus.PROGRAMS[name]()[1]]
    for sizes in ({"B": 1, "N": 1}, {"B": 0, "N": 3}, {"B": 101, "N": 67}):
        monkeypatch.setattr(corpus, "SIZES", sizes)
        calls.append(corpus.PROGRAMS[name]()[1])
    check(lambda: program(name), calls, WIDTHS, THREADS)


PUBLIC: dict[str, Callable[..., Any]] = {
    "sum of products": lambda x, y: (x * y).sum(),
    "product": lambda x, y: x @ y.T,
    "running sum": lambda x, y: (mlc.cumsum(x, 0) + y, mlc.softmax(y, dim=1)),
}


def views(x: Array) -> Iterator[tuple[str, Array]]:
    """The numbers of a matrix in other memory than its own."""
    memory = Pages(True)
    fenced = memory.array("x", x.shape, x.dtype)
    fenced[...] = x
    yield "before a page", fenced
    yield "transposed", np.asfortranarray(x)
    yield "backwards", np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]
    yield from ((name, arrays[0]) for name, arrays in layouts([x]))


@pytest.mark.parametrize("name", PUBLIC)
def test_public_calls_take_any_memory(name: str) -> None:
    """The emitted wrapper takes what it can as it is; both arguments may be one array."""
    f = mlc.compile(PUBLIC[name])
    x = np.random.default_rng(0).standard_normal((13, 7)).astype(np.float32)

    def call(x: Array, y: Array) -> list[Array]:
        found = f(x, y)
        return [r.numpy() for r in (found if isinstance(found, tuple) else (found,))]

    wanted = call(x, x.copy())

    def steps() -> Iterator[str]:
        for (left, a), (right, b) in itertools.product(views(x), views(x)):
            yield f"{left}, {right}"
            for arrays in ((a, b), (a, a)):
                if any(difference(got, want, "bits") for got, want in zip(call(*arrays), wanted)):
                    yield f"!{left}, {right} give other bits"

    assert in_a_child(steps) is None


# -- that it would be seen --------------------------------------------------------------------------------------------
def edited(old: str, new: str) -> Entry:
    """Code of a low module in which something is edited."""
    assert DUMP.count(old) == 1
    text = DUMP.replace(old, new).replace("  %last = ", "  %under = arith.subi %0, %1 : index\n  %last = ")
    module = pipeline.resume(parse_module(text), "llvm", host().machine)
    return build(module, host()).entry("main")


@pytest.mark.parametrize("old, new, at_end", [
    ("vector.load %x[%at]", "vector.load %x[%N]", True),
    ("memref.load %x[%last]", "memref.load %x[%under]", False),
    ("memref.store %f, %y[%last]", "memref.store %f, %y[%N]", True),
], ids=["reads behind", "reads before", "writes behind"])
def test_what_leaves_its_memory_ends_the_process(old: str, new: str, at_end: bool) -> None:
    entry = edited(old, new)

    def steps() -> Iterator[str]:
        yield "the call"
        FencedEntry(entry, Pages(at_end)).call([np.ones(7, np.float32)])

    assert in_a_child(steps) == "SIGSEGV at: the call"


def test_the_comparison_names_what_differs() -> None:
    entries = {"right": edited("%whole = ", "%whole = "), "wrong": edited("%i = %0 to", "%i = %4 to")}
    found = in_a_child(lambda: differences(entries, [[np.ones(7, np.float32)]], (1,)))
    assert found is not None and found.startswith("wrong, 1 threads, pages behind, arguments 0, result 0: "), found


def test_red_zones_say_whose_they_are() -> None:
    entry = FencedEntry(edited("memref.store %f, %y[%last]", "memref.store %f, %y[%N]"), Memory())
    entry.call([np.ones(7, np.float32)])
    assert entry.damage == "byte 0 behind result 0 is written to"


def test_a_child_that_fails_is_told() -> None:
    assert in_a_child(lambda: iter(["one", "!two"])) == "two"
    assert in_a_child(lambda: iter(["one"])) is None
    assert "ZeroDivisionError" in str(in_a_child(lambda: iter([str(1 // int("0"))])))
