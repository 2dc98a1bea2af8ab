"""The documentation of public names: whole, naming what the signature and the table of codes have, with examples that
run."""
from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import linecache
import math
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.checked import Meaning
from mlc.dialects.builtin import Module
from mlc.frontend import eager, in_place_methods
from mlc.frontend.compiler import compiler
from mlc.frontend.tensor import OPERATIONS
from mlc.tools import codes
from mlc.tools.site import names

ROOT = Path(__file__).parent.parent
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+)")
LINES = 4
"""A sentence, and an example with its heading and its result, are no shorter."""
HEADING = re.compile(r"(?m)^(Args|Shape|Attributes|Returns|Raises|Example):$")


# -- public names -----------------------------------------------------------------------------------------------------
def sections(text: str) -> dict[str, str]:
    """The parts of a docstring by their headings; that before the first one is ''."""
    parts = HEADING.split("\n" + inspect.cleandoc(text))
    return {"": parts[0].strip(), **dict(zip(parts[1::2], parts[2::2]))}


def faults(name: str, value: Any) -> list[str]:
    """The parts that the documentation of a public name lacks."""
    text = value.__doc__ or ""
    if inspect.isclass(value) and text == (value.__base__.__doc__ if value.__base__ else None):
        text = ""
    parts, signature = sections(text), signature_of(value)
    out = [] if parts[""] and not parts[""].startswith("What") else ["no first sentence, or one that begins with What"]
    out += [] if len(re.findall(r"(?m)^.*\S", text)) >= LINES else [f"fewer than {LINES} lines"]
    listed = set(re.findall(r"\w+", " ".join(re.findall(r"(?m)^    ([\w*, ]+):", parts.get("Args", "")))))
    out += [f"argument {p} is not under Args" for p in signature.parameters if p not in listed]
    out += [f"{p} under Args is no argument" for p in listed - set(signature.parameters)]
    if inspect.isroutine(value) and signature.return_annotation not in (None, "None") and "Returns" not in parts:
        out.append("no Returns")
    out += [] if ">>> " in parts.get("Example", "") else ["no Example"]
    named = re.findall(r"MLC\d+", text)
    out += [f"{code} is no code" for code in named if code not in codes.load()]
    if "Raises" in parts and not re.search(r"MLC\d", parts["Raises"]):
        out.append("Raises names no code")
    return out


def signature_of(value: Any) -> inspect.Signature:
    if inspect.ismodule(value):
        return inspect.Signature()
    if inspect.isclass(value) and {"__new__", "__init__"} <= vars(value).keys():      # __new__ passes all on
        return inspect.signature(functools.partial(value.__init__, None))
    try:
        return inspect.signature(value)
    except ValueError:                                     # of a class that is written in C
        return inspect.Signature()


PUBLIC = names.public_names()


def test_documentation_is_whole() -> None:
    found = {f"mlc.{name}": missing for name in PUBLIC if (missing := faults(name, PUBLIC[name]))}
    assert not found, "\n".join(f"{name}: {'; '.join(missing)}" for name, missing in found.items())


def test_every_method_of_a_tensor_is_documented() -> None:
    """Those that are functions have the functions' documentation; of what is not for users, a sentence is enough."""
    inner = {"array", "autograd_meta", "backing_array", "composite", "replace_elements", "shared"}
    assert not [name for name in dir(mlc.Tensor) if not name.startswith("_") and name not in inner
                and len(re.findall(r"(?m)^.*\S", inspect.getattr_static(mlc.Tensor, name).__doc__ or "")) < LINES]
    assert mlc.Tensor.softmax.__doc__ == mlc.softmax.__doc__


@pytest.mark.parametrize("name", [*in_place_methods.FUNCTIONS, *in_place_methods.RESHAPING])
def test_methods_in_place_are_documented(name: str) -> None:
    """With the sentence of the function, its arguments but the tensor itself, and its errors and those of the write."""
    method, function = getattr(mlc.Tensor, f"{name}_"), OPERATIONS[name]
    parts = sections(method.__doc__)
    listed = re.findall(r"(?m)^    (\w+):", parts.get("Args", ""))
    assert listed == [p for p in inspect.signature(method).parameters if p != "self"]
    errors = sections(function.__doc__ or "").get("Raises", "")
    assert parts[""].startswith("In place: ") and parts["Raises"].startswith(errors.rstrip()) and (
        "MLC0439" in parts["Raises"])
    report, runner = list[str](), doctest.DocTestRunner(Numbers(), verbose=False)
    with eager.compiled_by(interpreted):
        runner.run(doctest.DocTestParser().get_doctest(method.__doc__, {"mlc": mlc}, name, None, 0), out=report.append)
    assert not report and (runner.tries > 0) == (name in in_place_methods.EXAMPLES), "".join(report)


def test_faults_are_found() -> None:
    assert faults("m", ModuleType("m", "Functions.")) == ["fewer than 4 lines", "no Example"]

    def f(x: int, y: int) -> int:
        """MLC9999.

        Args:
            x: A number.
            z: Another.
        """
        return x + y
    f.__doc__ = f"What it is: {f.__doc__}"
    assert faults("f", f) == [
        "no first sentence, or one that begins with What", "argument y is not under Args",
        "z under Args is no argument", "no Returns", "no Example", "MLC9999 is no code"]


# -- examples ---------------------------------------------------------------------------------------------------------
class Numbers(doctest.OutputChecker):
    """Compares as doctest does, but for spaces and the last digits of numbers with a point."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        if "".join(NUMBER.sub("#", want).split()) != "".join(NUMBER.sub("#", got).split()):
            return False
        return all(a == b or ("." in a and "." in b and math.isclose(float(a), float(b), rel_tol=1e-5, abs_tol=1e-6))
                   for a, b in zip(NUMBER.findall(want), NUMBER.findall(got)))


class Finder(doctest.DocTestFinder):
    """Finds public functions too, which are wrapped, and properties, which have no module of their own."""

    def _from_module(self, module: ModuleType | None, object: Any) -> bool:
        found: Any = object.fget if isinstance(object, property) else object
        return module is not None and getattr(inspect.unwrap(found), "__module__", None) == module.__name__


@cache
def modules_with_examples() -> list[str]:
    """Every module whose text has an example; the folders of the compiler are packages of mlc."""
    found = []
    for folder in ("ir", "dialects", "passes", "backends", "frontend", "tools", "mlc", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            inside = path.relative_to(ROOT).with_suffix("")
            if any(p.is_symlink() for p in path.parents if p != ROOT) or path == Path(__file__):
                continue
            if re.search(r"(?m)^\s*>>> ", path.read_text(encoding="utf-8")):
                dotted = ".".join(inside.parts).removesuffix(".__init__")
                found.append(dotted if folder in ("mlc", "tests") else f"mlc.{dotted}")
    return found


def interpreted(module: Module, where: str) -> Any:
    """An eager operation by the interpreter; on a mesh by its ranks."""
    return Meaning(module) if where == "cpu" else compiler().compile(module, where)


LONG = ("mlc.models.drafting", "mlc.models.perplexity")
"""Modules whose examples compile models of languages, as those of mlc.models.language_model do in the default run."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG))
                                  for n in modules_with_examples()])
def test_examples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linecache, "checkcache", lambda filename=None: None)       # doctest has it look at every file
    module, report = importlib.import_module(name), list[str]()
    runner = doctest.DocTestRunner(Numbers(), verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE
                                   | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    names = {"mlc": mlc, "nn": nn, "np": np, "xp": mlc.array_api}
    with eager.compiled_by(interpreted):                # which takes less time than machine code
        for test in Finder(exclude_empty=True).find(module, name, extraglobs=names):
            runner.run(test, out=report.append)
    assert not report, "".join(report)
    assert runner.tries, f"no example of {name} is found"


def test_numbers_are_compared_as_numbers() -> None:
    same = Numbers().check_output
    assert same("tensor([0.5, 1.0000001])", "tensor([0.5, 1.])", 0) and same("1e-08.5", "1e-08.5", 0)
    assert not same("tensor([0.5])", "tensor([0.51])", 0) and not same("3", "4", 0) and not same("1.0", "1.0, 2.0", 0)
