"""The modules on which changes of the compiler are compared: the tests' samples, programs and examples."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mlc import lower
from mlc.frontend.language import load
from mlc.ir.core import Op
from mlc.ir.diag import UserError
from mlc.tools.bench import compile_time

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("mlp", "forward-2", "training-2")
"""Of the benchmark of compile times."""


@dataclass(frozen=True)
class Subject:
    """A module of the tensor level, made anew by each call of `module`."""

    name: str
    module: Callable[[], Op]


def subjects(each: int | None = None) -> list[Subject]:
    """All subjects, in a fixed order; at most `each` samples of every operation."""
    return [*_samples(each), *_programs(), *_examples(), *_models()]


def _of_tests(name: str) -> object:
    try:
        return importlib.import_module(f"tests.{name}")
    except ModuleNotFoundError as error:
        if error.name not in ("tests", f"tests.{name}"):
            raise
        raise SystemExit("the samples are in the folder tests of a checkout of mlc: run this there") from None


def _samples(each: int | None) -> Iterator[Subject]:
    met = Counter[str]()
    names = Counter[str]()
    for sample in _of_tests("op_samples").SAMPLES:  # type: ignore[attr-defined]
        met[sample.op] += 1
        if each is None or met[sample.op] <= each:
            name = f"sample {sample}"
            names[name] += 1
            yield Subject(f"{name} {names[name]}" if names[name] > 1 else name,
                          lambda sample=sample: sample.build()[0])  # type: ignore[misc]


def _programs() -> Iterator[Subject]:
    for name, make in _of_tests("corpus").PROGRAMS.items():  # type: ignore[attr-defined]
        yield Subject(f"program {name}", lambda make=make: make()[0])  # type: ignore[misc]


def _examples() -> Iterator[Subject]:
    """The functions of the examples in the text language whose arguments have types."""
    for path in sorted((ROOT / "examples").glob("*.mlc")):
        program = load(path)
        for name in dir(program):
            f = getattr(program, name)
            try:
                lower(f, level="trace")
            except UserError:                              # it needs arguments to tell the types
                continue
            yield Subject(f"example {path.name} {name}", lambda f=f: lower(f, level="trace").module)  # type: ignore[misc]


def _models() -> Iterator[Subject]:
    def module(name: str) -> Op:
        f, args = compile_time.program(name)
        return lower(f, args, level="trace").module

    for name in MODELS:
        yield Subject(f"model {name}", lambda name=name: module(name))  # type: ignore[misc]
