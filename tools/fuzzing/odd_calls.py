"""Calls of public functions with arbitrary arguments: each must succeed, or be rejected with a code."""

from __future__ import annotations

import inspect
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

import mlc
from mlc.frontend import eager
from mlc.frontend.trace import state
from mlc.ir.diag import Error, InternalError

SECONDS = 10
"""A call that takes longer hangs."""

# Written to a file, or about the process.
LEFT_OUT = frozenset({"compile", "load", "save", "set_num_threads", "get_num_threads", "native_entries", "lower",
                      "Compiled", "DType", "Error", "Tensor", "UserError", "manual_seed", "seed", "set_printoptions",
                      "set_rng_state"})
MODULES = ("nn.functional", "linalg", "fft", "random", "sparse")
METHODS_LEFT_OUT = frozenset({"__init__", "__new__", "__class__", "__init_subclass__", "__subclasshook__", "__dir__",
                              "__getattribute__", "__getattr__", "__setattr__", "__delattr__", "__reduce__",
                              "__reduce_ex__", "__getstate__", "__sizeof__", "__array__", "__dlpack__", "__hash__",
                              "__class_getitem__", "__array_ufunc__", "__copy__", "_repr_html_",
                              "__deepcopy__", "__format__", "__iter__", "__str__"})


class Odd:
    """An object of the user's own."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        pass

    def __repr__(self) -> str:
        return "Odd()"


def identity(*args: Any) -> Any:
    """A function for those that take one."""
    return args[0] if len(args) == 1 else args


TENSORS: tuple[tuple[str, Callable[[], np.ndarray[Any, Any]]], ...] = (
    ("f32[]", lambda: np.array(1.5, np.float32)), ("f32[0]", lambda: np.zeros(0, np.float32)),
    ("f32[3]", lambda: np.arange(3, dtype=np.float32)), ("f32[2,3]", lambda: np.ones((2, 3), np.float32)),
    ("f32[2,0,3]", lambda: np.ones((2, 0, 3), np.float32)), ("f32[1,2,4,4]", lambda: np.ones((1, 2, 4, 4), np.float32)),
    ("i64[]", lambda: np.array(1)), ("i64[3]", lambda: np.arange(3)), ("i32[2,3]", lambda: np.ones((2, 3), np.int32)),
    ("bool[3]", lambda: np.array([True, False, True])), ("u8[2]", lambda: np.array([1, 255], np.uint8)),
    ("f16[3]", lambda: np.ones(3, np.float16)), ("f64[3,3]", lambda: np.eye(3)),
    ("f32[3,3]", lambda: np.eye(3, dtype=np.float32)), ("u32[2]", lambda: np.array([0, 7], np.uint32)),
)
VALUES: tuple[Any, ...] = (
    None, True, False, "", "sum", "float32", "tpu", 0, 1, 2, -1, -7, 1 << 40, 1 << 70, -(1 << 63), 0.0, -1.5, 0.5,
    1e400, float("nan"), (), [], [1], [1, 2], (0, 1), (1, 0), [[1], [2, 3]], [None], ["a"], (-1, 0), (3, 3), [1.5, 2.5],
    {}, {"a": 1}, {1, 2}, Odd(), Odd, identity, 1 + 2j, np.float64(0.5), np.int8(3), np.bool_(True), np.complex64(1j),
    np.array(["a"]), np.array([1 + 1j]), np.array([None]), slice(None), slice(3, 1, 0), ..., b"x", range(3), mlc.int32,
    mlc.bfloat16,
)


@dataclass(frozen=True)
class Tensor:
    """Stands for a tensor that is made, or recorded, when the call is."""

    name: str
    make: Callable[[], np.ndarray[Any, Any]]

    def __repr__(self) -> str:
        return self.name


@dataclass
class Call:
    """f(*args, **keywords)"""

    name: str
    f: Callable[..., Any]
    args: list[Any]
    keywords: dict[str, Any]

    def __str__(self) -> str:
        given = [repr(x) for x in self.args] + [f"{n}={x!r}" for n, x in self.keywords.items()]
        return f"{self.name}({', '.join(given)})"[:400]


def public_functions() -> dict[str, Callable[..., Any]]:
    """Every public function, constructor and method, by name."""
    out: dict[str, Callable[..., Any]] = {}
    for name in mlc.__all__:
        x = getattr(mlc, name)
        if callable(x) and name not in LEFT_OUT and not isinstance(x, type):
            out[f"mlc.{name}"] = x
    for path in MODULES:
        module: Any = mlc
        for part in path.split("."):
            module = getattr(module, part)
        names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        out |= {f"mlc.{path}.{n}": getattr(module, n) for n in names if inspect.isfunction(getattr(module, n))}
    for module, path in ((mlc.nn, "nn"), (mlc.optim, "optim")):
        for name in module.__all__:
            x = getattr(module, name)
            if isinstance(x, type) or inspect.isfunction(x):
                out[f"mlc.{path}.{name}"] = x
    for name in dir(mlc.Tensor):
        if name not in METHODS_LEFT_OUT and callable(x := inspect.getattr_static(mlc.Tensor, name)):
            out[f"Tensor.{name}"] = x
    out |= {f"layer {name}": layer for name, layer in layers()}
    numpy: dict[str, Callable[..., Any]] = {
        "numpy.sin": lambda x: np.sin(x), "numpy.maximum": lambda x, y: np.maximum(x, y),
        "numpy.sum": lambda x: np.sum(x), "numpy.add": lambda x, y: np.ones(3, np.float32) + x,
        "numpy.cbrt": lambda x: np.cbrt(x),
        "numpy.iadd": lambda x: added_to(np.ones(3, np.float32), x), "numpy.mean": lambda x, y: np.mean(x, y)}
    return out | numpy


def layers() -> Iterator[tuple[str, mlc.nn.Module]]:
    """A module of every class, made with as few sizes of 2 as it takes."""
    for name in mlc.nn.__all__:
        cls = getattr(mlc.nn, name)
        if not isinstance(cls, type) or not issubclass(cls, mlc.nn.Module) or cls is mlc.nn.Module:
            continue
        for count in range(4):
            try:
                yield name, cls(*[2] * count).eval()
                break
            except mlc.UserError:
                pass


def added_to(array: np.ndarray[Any, Any], x: Any) -> np.ndarray[Any, Any]:
    array += x
    return array


def parameters(f: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(f.forward if isinstance(f, mlc.nn.Module) else f).parameters.values())
    except (TypeError, ValueError):
        return []


def drawn(name: str, f: Callable[..., Any], rng: random.Random) -> Call:
    """One call: mostly as many arguments as f takes, most of those that are arrays tensors."""
    known = parameters(f)
    positional = [p for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in positional)
    count = rng.choice([least, least, least, rng.randint(0, len(positional) + 1), len(positional)])
    if any(p.kind is p.VAR_POSITIONAL for p in known):
        count += rng.randint(0, 3)
    args = [value(positional[i] if i < len(positional) else None, rng) for i in range(count)]
    if name.startswith(("Tensor.", "numpy.")):
        args[:1] = [Tensor(*rng.choice(TENSORS))]
    if name.startswith(("Tensor.__", "numpy.")):           # Python and numpy call these, with as many as they take
        args += [value(p, rng) for p in positional[len(args):]]
        return Call(name, f, args[:len(positional)], {})
    rest = [p for p in known if p.kind is p.KEYWORD_ONLY or (p in positional[count:])]
    keywords = {p.name: value(p, rng) for p in rest if p.default is p.empty or rng.random() < 0.25}
    if rng.random() < 0.05:
        keywords["axis" if rng.random() < 0.5 else "odd"] = rng.choice(VALUES)
    return Call(name, f, args, keywords)


def value(parameter: inspect.Parameter | None, rng: random.Random) -> Any:
    """An argument: for an array mostly a tensor, for anything else mostly not."""
    is_array = parameter is not None and "Operand" in str(parameter.annotation)
    if rng.random() < (0.75 if is_array else 0.2):
        chosen = Tensor(*rng.choice(TENSORS))
        return [chosen, Tensor(*rng.choice(TENSORS))] if rng.random() < 0.1 else chosen
    if parameter is not None and parameter.default is not parameter.empty and rng.random() < 0.2:
        return parameter.default
    return rng.choice(VALUES)


def with_tensors(x: Any, make: Callable[[np.ndarray[Any, Any]], Any]) -> Any:
    if isinstance(x, Tensor):
        return make(x.make())
    if isinstance(x, list | tuple) and type(x) in (list, tuple):
        return type(x)(with_tensors(v, make) for v in x)
    return x


class Ran(Exception):
    """A call got as far as running native code."""


class Stopped:
    """Stand-in for compiled code."""

    def call(self, arrays: Any) -> Any:
        raise Ran


@contextmanager
def without_native_code() -> Iterator[None]:
    """Context in which operations are recorded but not run."""
    with eager.compiled_by(lambda module, where: Stopped()):
        yield


def _hangs(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("the call hangs")


def fault(call: Call, recorded: bool) -> str:
    """Describe how a call fails improperly; "" if it succeeds or is rejected with a code."""
    signal.signal(signal.SIGALRM, _hangs)
    signal.alarm(SECONDS)
    try:
        if recorded:
            tensors: list[Any] = []
            with_tensors([*call.args, *call.keywords.values()], tensors.append)

            def f(*xs: Any) -> None:
                given = iter(xs)
                args = with_tensors(call.args, lambda _: next(given))
                call.f(*args, **{n: with_tensors(x, lambda _: next(given)) for n, x in call.keywords.items()})

            mlc.lower(f, args=tensors, level="trace")
        else:
            make = mlc.from_numpy
            call.f(*with_tensors(call.args, make), **{n: with_tensors(x, make) for n, x in call.keywords.items()})
    except Ran:
        return ""
    except InternalError as error:
        return f"InternalError: {error.message}"
    except Error as error:
        lacks = "" if error.code and error.loc.file else "a place" if error.code else "a code"
        return lacks and f"without {lacks}: {type(error).__name__}: {error.message}"
    except AttributeError as error:                        # what every object says of a name that it does not have
        return "" if "mlc.Tensor" in str(error) else f"AttributeError: {error}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        assert state.trace is None, f"{call} leaves a trace in progress"
    return ""


def faults(count: int, seed: int, only: str = "", modes: tuple[bool, ...] = (True, False)) -> list[tuple[str, str]]:
    """(call, fault) of the improper failures among `count` calls of every function."""
    out = []
    for name, f in public_functions().items():
        if only and only not in name:
            continue
        rng = random.Random(f"{seed} {name}")
        for i in range(count):
            call = drawn(name, f, rng)
            if found := fault(call, modes[i % len(modes)]):
                out.append((str(call), found))
    return out
