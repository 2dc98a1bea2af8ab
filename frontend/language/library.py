"""The library in the language: functions by name, layers of nn, optimisers, random, linalg, fft.

Only pure computations are accessible, nothing that reads files, changes the process or creates foreign objects, since
programs may be untrusted.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import mlc.frontend.functions  # noqa: F401 (fills OPERATIONS)
from mlc.frontend import dtypes, location, tree
from mlc.frontend.arguments import FAILURES, check_call
from mlc.frontend.language.diagnostics import is_in_text
from mlc.frontend.language.terms import hint, in_terms, in_text
from mlc.frontend.language.values import (
    ELEMENTS,
    MOST_OPERATIONS,
    POISON,
    Applicable,
    Enough,
    Environment,
    Poisoned,
    Zipped,
    is_poisoned,
    session,
    shown,
)
from mlc.frontend.recorded_draws import drawn_once
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.trace import TooMany
from mlc.ir.diag import BackendError, Error, InternalError, UserError
from mlc.ir.sizes import Size

PACKAGE = __name__.partition(".")[0]
"""Root package in which the programs' names of layers and optimisers are looked up. They are found by name at run time,
since the package imports this module and not the other way round."""
WITHHELD = frozenset({"from_numpy", "from_dlpack", "frombuffer", "asarray", "as_tensor", "_getitem", "getitem",
                      "Tensor.unfold", "equal", "allclose"})
TRANSFORMS = frozenset({"grad", "value_and_grad", "vjp", "jvp", "vmap", "jacfwd", "jacrev", "hessian", "hvp",
                        "linearize", "checkpoint"})
"""Functions of the package that take functions."""
NAMESPACES = {"nn": ("nn",), "nn.functional": ("nn", "functional"), "optim": ("optim",),
              "optim.schedules": ("optim", "schedules"), "random": ("random",), "linalg": ("linalg",), "fft": ("fft",)}
INITIALISERS = frozenset({"uniform", "normal", "trunc_normal", "constant", "zeros", "ones", "kaiming_uniform",
                          "kaiming_normal", "xavier_uniform", "xavier_normal", "orthogonal", "eye", "dirac", "sparse"})


class Namespace:
    """nn, optim, random and so on."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return self.path


def package(path: str) -> Any:
    """Something of the package by its dotted name."""
    found: Any = importlib.import_module(PACKAGE)
    for part in path.split("."):
        found = getattr(found, part)
    return found


@functools.cache
def find(name: str) -> Any:
    """Object that a name of the library denotes, dotted or not; None if programs have nothing of this name."""
    if name in ELEMENTS:
        return dtypes.as_dtype(ELEMENTS[name])
    if name in CONSTANTS:
        return CONSTANTS[name]
    if name in NAMESPACES:
        return Namespace(name)
    if name == ZIP.name:
        return ZIP
    if name in TRANSFORMS:
        try:
            return package(name)
        except AttributeError:
            return None
    if name in OPERATIONS and name not in WITHHELD:
        return OPERATIONS[name]
    folder, _, last = name.rpartition(".")
    if not folder or folder not in NAMESPACES or last.startswith("_") or last.endswith("_"):
        return None                                        # those of a last underscore change their arguments
    if folder in ("random", "nn.functional") and last in OPERATIONS and last not in WITHHELD:
        return OPERATIONS[last]
    found = getattr(package(folder), last, None)
    if not _is_for_programs(found):
        return None
    return Layer(found) if isinstance(found, type) else found


def _is_for_programs(x: Any) -> bool:
    """Whether an object is a layer, an optimiser, or a pure function."""
    if isinstance(x, type):
        bases = package("nn.Module"), package("optim.Optimizer")
        return issubclass(x, bases) and x not in bases
    return inspect.isfunction(x) and x.__module__.startswith((f"{PACKAGE}.optim", f"{PACKAGE}.frontend.functions"))


# -- calling ----------------------------------------------------------------------------------------------------------
def call_library(function: Callable[..., Any], name: str, args: Sequence[Any], keywords: dict[str, Any], at: int,
                 env: Environment) -> Any:
    """Call function(*args, **keywords) at a location of the text."""
    if is_poisoned(args) or is_poisoned(keywords):
        return POISON
    loc = env.loc(at)
    _check_count(name, args, at, env)
    _check_pure(function, name, args, keywords, at, env)
    saved, location.text.loc = location.text.loc, loc
    try:
        return function(*args, **keywords)
    except Poisoned:
        return POISON
    except Enough:
        raise
    except TooMany:
        raise Enough(f"{name}: more than {MOST_OPERATIONS} operations are recorded here", code="MLC0621", loc=loc,
                     hint="use for in place of unroll for, and whole tensors in place of their parts") from None
    except (InternalError, BackendError):
        raise
    except Error as error:
        if is_in_text(error.loc) and error.loc != loc and isinstance(error, UserError):
            raise                                          # of a function of the program that the library called
        raise in_text(error, loc, hint(function, name, args)) from None
    except RecursionError:
        raise env.error(at, "MLC0621", f"{name} is nested too deeply") from None
    except MemoryError:
        raise env.error(at, "MLC0629", f"{name}: there is not enough memory for this") from None
    except FAILURES as error:
        if isinstance(error, TypeError):
            _check_call(function, name, args, keywords, env, at)
        given = ", ".join([*map(shown, args), *(f"{k}={shown(v)}" for k, v in keywords.items())])
        raise env.error(at, "MLC0629", f"{name} does not take ({given}): {error}"[:300],
                          hint(function, name, ())) from error
    finally:
        location.text.loc = saved


_MOVED = "leave running_mean and running_var out, and assign the statistics to buffers; nn.BatchNorm1d does so"
_SCALED = "leave max_norm out, and use the rows divided by maximum(1, their norm / max_norm)"
WRITTEN = {"batch_norm": (("running_mean", "training"), _MOVED), "native_batch_norm": (
               ("running_mean", "training"), _MOVED), "instance_norm": (("running_mean", "use_input_stats"), _MOVED),
           "embedding": (("max_norm",), _SCALED), "embedding_bag": (("max_norm",), _SCALED)}
"""Functions that write to an argument if all of these parameters are given, by name."""
MOST_KNOWN = 2**24
"""Elements of a tensor that is computed while the program is read."""
KNOWN = {
    **dict.fromkeys(("arange", "linspace", "hann_window", "hamming_window", "blackman_window", "bartlett_window",
                     "kaiser_window", "fftfreq", "rfftfreq", "fft.fftfreq", "fft.rfftfreq"),
                    lambda *n: max(n, default=0)),
    **dict.fromkeys(("eye", "tril_indices", "triu_indices"), lambda n, m=None, *_: n * (n if m is None else m)),
}
"""How many elements these make, by their integer arguments."""


def _check_count(name: str, args: Sequence[Any], at: int, env: Environment) -> None:
    """UserError for a tensor of numbers that is too large to be computed at compile time."""
    count = 0
    if name in KNOWN and args and all(isinstance(x, int | float) for x in args):
        count = KNOWN[name](*args)
    elif name == "combinations" and args and isinstance(args[0], Tensor) and len(args[0].shape) == 1 and isinstance(
            args[0].shape[0], int):
        r = args[1] if len(args) > 1 and isinstance(args[1], int) else 2
        count = math.comb(args[0].shape[0] + r, r) if 0 <= r < 64 else MOST_KNOWN + 1
    if count > MOST_KNOWN:
        raise env.error(at, "MLC0621", f"{name} makes {count} numbers while the program is read, at most "
                          f"{MOST_KNOWN} may be", "make it smaller, or compute it from a smaller one")


def _check_pure(function: Callable[..., Any], name: str, args: Sequence[Any], keywords: dict[str, Any], at: int,
                env: Environment) -> None:
    """UserError if a call would change an argument: the values of a program never change."""
    of = function.func if isinstance(function, functools.partial) else function
    written, hint = WRITTEN.get(getattr(of, "__name__", ""), ((), ""))
    given = dict(keywords)
    if written or any(x is True for x in args):
        parameters = inspect.signature(function).parameters
        given = {n: p.default for n, p in parameters.items() if n in written} | dict(zip(parameters, args)) | given
    for parameter in ("inplace", "out"):
        if given.get(parameter) not in (None, False):
            raise env.error(at, "MLC0629", f"{name} takes no {parameter} here: the values of a program never change",
                            f"use what {name} returns")
    if written and all(given.get(p) is not None and given.get(p) is not False for p in written):
        raise env.error(at, "MLC0629", f"{name} with {' and '.join(written)} changes what it is given: the values of "
                        "a program never change", hint)


def _check_call(function: Callable[..., Any], name: str, args: Sequence[Any], keywords: dict[str, Any],
                env: Environment, at: int) -> None:
    """UserError if the arguments do not fit the parameters."""
    try:
        check_call(function, name, args, keywords)
    except UserError as error:
        raise env.error(at, error.code, in_terms(error.message), in_terms(error.hint or "")) from None


class Layer(Applicable):
    """A class of layers or optimisers."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.name = cls.__name__

    def apply(self, args: Sequence[Any], keywords: dict[str, Any], at: int, env: Environment) -> Any:
        """Create an instance. While a program is checked, its parameters are types only and take no memory."""
        _check_pure(self.cls, self.name, args, keywords, at, env)
        for x in (*args, *keywords.values()):
            if isinstance(x, Size):
                if session.general:
                    return POISON                          # checked where a model of that size is made
                raise env.error(at, "MLC0631", f"{self.name} is made with {shown(x)}, which is known only when the "
                                  "program runs", "use a number, or give the layer's model as an argument")
        if session.diagnostics is None:
            return call_library(self.cls, self.name, args, keywords, at, env)
        with package("nn.init.shapes_only")(), drawn_once():           # for keys, which are drawn nevertheless
            made = call_library(self.cls, self.name, args, keywords, at, env)
        return made if made is POISON else abstract(made)


class Zip(Applicable):
    """A loop over zip(a, b) goes through a and b together."""

    name = "zip"

    def apply(self, args: Sequence[Any], keywords: dict[str, Any], at: int, env: Environment) -> Any:
        if keywords:
            raise env.error(at, "MLC0627", f"zip has no parameter {next(iter(keywords))}",
                            "give it what is gone through, alone")
        return POISON if is_poisoned(args) else Zipped(tuple(args))


def abstract(made: Any) -> Any:
    """A layer whose tensors are replaced by recorded zeros."""
    leaves, structure = tree.flatten(made)
    if not isinstance(made, tree.AttributeTree):
        return made
    zeros = OPERATIONS["zeros"]
    return structure.unflatten([zeros(x.shape, dtype=x.dtype) if isinstance(x, Tensor) else x for x in leaves])


# -- names for suggestions --------------------------------------------------------------------------------------------
@functools.cache
def names() -> tuple[str, ...]:
    """Names without dots, for suggestions."""
    plain = {n for n in OPERATIONS if "." not in n and n not in WITHHELD}
    return tuple(sorted(plain | {*ELEMENTS, *CONSTANTS, *TRANSFORMS, ZIP.name} | {
        n for n in NAMESPACES if "." not in n}))


def names_in(path: str) -> list[str]:
    """The names of a namespace."""
    own = [n.rpartition(".")[2] for n in OPERATIONS if n.startswith(path + ".")]
    return sorted({*own, *(n for n in dir(package(path)) if find(f"{path}.{n}") is not None)})


# -- compile-time constants ------------------------------------------------------------------------------------------
CONSTANTS = {"pi": math.pi, "inf": math.inf, "nan": math.nan}
ZIP = Zip()
NUMERIC: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log2": math.log2, "sin": math.sin, "cos": math.cos,
    "tan": math.tan, "tanh": math.tanh, "floor": math.floor, "ceil": math.ceil, "abs": abs, "max": max, "min": min,
    "round": round,
}
"""Evaluation of these functions on plain numbers: numbers again, known before anything runs."""


def of_numbers(function: Any) -> Callable[..., Any] | None:
    """The function of plain numbers that belongs to one of the library, whatever name a program has for that."""
    return next((numeric for name, numeric in NUMERIC.items() if OPERATIONS[name] is function), None)
