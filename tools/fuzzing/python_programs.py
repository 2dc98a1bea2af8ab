"""Random Python programs, run by mlc and PyTorch: eagerly, compiled for static and symbolic sizes, differentiated.

A program is the text of a module with one function, `f`. It calls its library `T`, so the same text runs with either.
Arrays hold float64, in which the rounding errors of so few operations are far below the effect of a mistake.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import mlc
from mlc.api import Compiled
from mlc.frontend.element_types import TensorType
from mlc.ir.diag import Error, InternalError
from mlc.ir.files import write_text
from mlc.rounding import EPSILON
from mlc.tools.fuzzing import odd_calls, options
from mlc.tools.fuzzing.expressions import ALONG, BINARY, REDUCED, UNARY
from mlc.tools.fuzzing.factorizations import FREE, MATRICES, PRELUDE, factored_by_torch, is_free
from mlc.tools.fuzzing.interpreted import interpreted
from mlc.tools.fuzzing.levels import Failure, key_of
from mlc.tools.fuzzing.resized import resized

Array = np.ndarray[Any, Any]
FEWER = ("linalg.lstsq",)
"""Functions with results where PyTorch leaves them out."""
SHARING = ("from_dlpack",)
"""Functions that PyTorch refuses to differentiate."""
LIMITS = ("nn.functional.hardswish", "nn.functional.silu", "var_mean", "std_mean")
"""Functions that give their limit at -inf, where PyTorch has NaN."""
SORTED = ("bucketize", "searchsorted", "mode")
"""Functions of numbers in order, or that order them, which say nothing of NaN."""
ANSWERS = ("equal", "allclose")
"""Functions whose result is a Python bool, which is not known while a function is recorded."""
TOLERANCE = 1e-6
"""Relative to an element and to the largest of its array."""
LOSS = """

def loss(*xs):
    return sum((T.sin(y).sum() for y in f(*xs)), T.zeros(()))
"""
"""The function to differentiate. It stands beside `f`, since the recorder leaves the code of mlc itself alone."""
SPECIAL = (0.0, -0.0, 1.0, 2.5, -0.5, float("inf"), -float("inf"), float("nan"), 1e-310, 1e300)


@dataclass(frozen=True)
class PythonProgram:
    """`f(parameters)` with these lines and results, what it is called with, and whether that is ordinary numbers."""

    seed: int
    parameters: str
    lines: tuple[str, ...]
    results: tuple[str, ...]
    arrays: tuple[Array, ...]
    smooth: bool

    @property
    def text(self) -> str:
        body = "".join(f"{line}\n" for line in self.lines)
        beside = PRELUDE + LOSS if is_free(body) else LOSS
        return f"\n\ndef f({self.parameters}):\n{body}    return {', '.join(self.results)},\n{beside}"

    def beginnings(self) -> Iterator[PythonProgram]:
        """The program truncated after each of its assignments, returning only the assigned value."""
        for end, line in enumerate(self.lines, 1):
            name = re.match(r"    (v\d+) = ", line)
            if name is not None:
                yield replace(self, lines=self.lines[:end], results=(name[1],))
            elif end == len(self.lines) or not self.lines[end].startswith("     "):
                yield replace(self, lines=self.lines[:end], results=(re.findall(r"\bv\d+\b", line)[0],))

    def load(self, folder: Path, library: str) -> ModuleType:
        """The program as a module that uses mlc or torch."""
        name = f"fuzz_{self.seed}_{library}"
        path = folder / f"{name}.py"
        write_text(path, f"import {library} as T\n{self.text}")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


@cache
def functions() -> list[str]:
    """The public functions of tensors, as `T.` has them; types, such as T.FloatTensor, take no recorded tensor."""
    names = [name.removeprefix("mlc.") for name, f in odd_calls.public_functions().items()
             if name.startswith("mlc.") and not isinstance(f, TensorType)]
    of_tensors = {n for n in names if not n.endswith("_") and (              # in place: the first run changes x
        n.startswith(("nn.functional.", "linalg.", "fft.")) or "." not in n)}
    return sorted(of_tensors - {*FEWER, *SHARING, *LIMITS, *SORTED, *ANSWERS})


class Writer:
    """Generates one program line by line, tracking the shape of every variable."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"python {seed}")
        self.lines: list[str] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.depth = 1
        self.smooth = False

    def say(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def new(self, expression: str, shape: tuple[int, ...]) -> str:
        name = f"v{len(self.shapes)}"
        self.say(f"{name} = {expression}")
        self.shapes[name] = shape
        return name

    def pick(self) -> str:
        names = [*self.shapes]
        return names[-1 - min(int(self.rng.expovariate(0.4)), len(names) - 1)]

    def fitting(self, shape: tuple[int, ...]) -> str:
        """A variable that broadcasts to a shape, or a number."""
        names = [n for n, s in self.shapes.items() if len(s) <= len(shape)
                 and all(a in (1, b) for a, b in zip(reversed(s), reversed(shape)))]
        return self.rng.choice(names) if names else "0.5"

    def elementwise(self, x: str) -> tuple[str, tuple[int, ...]]:
        rng, shape = self.rng, self.shapes[x]
        if rng.random() < 0.55:
            return rng.choice(UNARY).format(x=x), shape
        return rng.choice(BINARY).format(x=x, y=self.fitting(shape)), shape

    def statement(self) -> None:
        rng, x = self.rng, self.pick()
        shape = self.shapes[x]
        way = rng.random()
        d = rng.randrange(len(shape)) if shape else 0
        if way < 0.4 or not shape:
            self.new(*self.elementwise(x))
        elif way < 0.55:
            self.new(rng.choice(ALONG).format(x=x, d=d), shape)
        elif way < 0.7 and shape[d] > 0:
            self.new(rng.choice(REDUCED).format(x=x, d=d), shape[:d] + shape[d + 1:])
        elif way < 0.85:
            self.moved(x, d)
        else:
            rng.choice((self.loop, self.branch, self.repeat, self.listed, self.write, self.write, self.nest))(x)

    def any_function(self) -> None:
        """A call of any public function, or of any method that writes to a tensor; its results may be anything, so they
        are not used further."""
        rng, names = self.rng, [*self.shapes]
        tensors = [rng.choice(names) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))]
        numbers = rng.choices(("0", "1", "-1", "2", "0.5", "True", "(0,)", "None"), k=rng.choice((0, 0, 1, 2)))
        name, by_signature = rng.choice(functions()), rng.random() < 0.5
        if self.smooth and name not in FREE and rng.random() < 0.4:
            tensors = [rng.choice(options.OPERANDS).format(x=x) for x in tensors]
        if rng.random() < 0.2:
            y, method = self.own(rng.choice(names)), rng.choice(options.in_place_methods())
            more = options.keywords_of(getattr(mlc.Tensor, method), rng, len(tensors)) if by_signature else numbers
            self.say(f"{y}.{method}({', '.join(tensors[1:] + more)})")
            return
        if name in FREE:
            tensors = [rng.choice(MATRICES).format(x=tensors[0])]
        elif by_signature:
            numbers = options.keywords_of(options.function_named(name), rng, len(tensors))
        call = FREE.get(name, f"T.{name}({{args}})")
        self.new(call.format(x=tensors[0], args=", ".join(tensors + numbers)), ())

    def moved(self, x: str, d: int) -> None:
        rng, shape = self.rng, self.shapes[x]
        n = shape[d]
        if n > 1 and rng.random() < 0.4:
            a, b, step = rng.randrange(n), rng.randint(0, n), rng.choice((1, 2))
            a, b = min(a, b), max(a, b)
            index = ", ".join([":"] * d + [f"{a}:{b}:{step}"])
            self.new(f"{x}[{index}]", (*shape[:d], len(range(a, b, step)), *shape[d + 1:]))
        elif rng.random() < 0.3:
            self.new(f"{x}.transpose({d}, -1)", tuple(swapped(shape, d)))
        elif rng.random() < 0.5:
            self.new(f"{x}.unsqueeze({d})", (*shape[:d], 1, *shape[d:]))
        elif rng.random() < 0.5:
            self.new(f"T.cat([{x}, {x} * 2], {d})", (*shape[:d], 2 * n, *shape[d + 1:]))
        elif len(shape) == 2 and rng.random() < 0.6:
            self.new(f"{x} @ {x}.T", (shape[0], shape[0]))
        elif len(shape) >= 2 and rng.random() < 0.5:
            self.new(f"T.tril({x})", shape)
        else:
            self.new(f"{x}.reshape(-1)" if 0 not in shape else f"{x}.flatten()", (int(np.prod(shape)),))

    def inner(self, x: str, count: int) -> None:
        """Statements on a block's own variables, and an assignment to `x`."""
        known = dict(self.shapes)
        self.depth += 1
        y = x
        for _ in range(count):
            expression, shape = self.elementwise(y)
            y = self.new(expression, shape)
        self.say(f"{x} = T.tanh({y})")
        self.depth -= 1
        self.shapes = known

    def own(self, x: str) -> str:
        """A variable that a block may assign to."""
        return self.new(f"{x} * 1.0", self.shapes[x])

    def loop(self, x: str) -> None:
        y = self.own(x)
        self.say(f"for i{y} in range({self.rng.randint(0, 3)}):")
        self.inner(y, self.rng.randint(1, 2))

    def branch(self, x: str) -> None:
        y = self.own(x)
        self.say(f"if T.sum({self.pick()}) > {self.rng.choice((0, 0.5, -1))}:")
        self.inner(y, 1)
        if self.rng.random() < 0.6:
            self.say("else:")
            self.inner(y, 1)

    def repeat(self, x: str) -> None:
        y = self.own(x)
        count = self.new("T.zeros(())", ())
        self.say(f"while {count} < {self.rng.randint(0, 3)}:")
        self.inner(y, 1)
        self.depth += 1
        self.say(f"{count} = {count} + 1")
        self.depth -= 1

    def listed(self, x: str) -> None:
        shape = self.shapes[x]
        if not shape or not shape[0]:
            return
        self.new(f"T.stack([row * k for k, row in enumerate({x})])", shape)

    def write(self, x: str) -> None:
        """A write to a tensor, to a part of it, or to a view of it that stays around."""
        rng, y = self.rng, self.own(x)
        shape = self.shapes[y]
        if not shape or rng.random() < 0.3:
            self.say(f"{y}.{rng.choice(('add_', 'mul_', 'sub_', 'copy_'))}({self.fitting(shape)})")
            return
        d = rng.randrange(len(shape))
        a, b = sorted((rng.randint(0, shape[d]), rng.randint(0, shape[d])))
        index = ", ".join([":"] * d + [f"{a}:{b}"])
        part = (*shape[:d], b - a, *shape[d + 1:])
        way = rng.random()
        if way < 0.4:
            self.say(f"{y}[{index}] = {self.fitting(part) if rng.random() < 0.6 else 0.5}")
        elif way < 0.5:
            self.say(f"{y}[{y} > 0.3] = 0.25")
        else:
            view = self.new(f"{y}[{index}]", part) if way < 0.7 else self.new(
                f"{y}.transpose({d}, -1)", tuple(swapped(shape, d))) if way < 0.85 else self.new(
                f"{y}.unsqueeze({d})", (*shape[:d], 1, *shape[d:]))
            self.say(f"{rng.choice((y, view))}.mul_({rng.choice((2, -0.5))})")
            if rng.random() < 0.5:
                self.say(f"{view}.relu_()")

    def nest(self, x: str) -> None:
        """A function of its own, called as it is, on each row, or with its intermediate results computed again."""
        rng, shape = self.rng, self.shapes[x]
        inner = rng.choice(UNARY).format(x=f"({rng.choice(UNARY).format(x='z')})")
        ways = [f"(lambda z: {inner})({x})", f"T.utils.checkpoint.checkpoint(lambda z: {inner}, {x}, "
                "use_reentrant=False)"]
        if shape and shape[0] > 0:
            ways.append(f"T.func.vmap(lambda z: {inner})({x})")
        self.new(rng.choice(ways), shape)


def swapped(shape: Sequence[int], d: int) -> list[int]:
    """A shape with a dimension exchanged for the last one."""
    out = list(shape)
    out[d], out[-1] = out[-1], out[d]
    return out


def generate(seed: int) -> PythonProgram:
    """The program of a seed, and its arguments: strided arrays, one array twice, and special values."""
    writer = Writer(seed)
    rng, numbers = writer.rng, np.random.default_rng(seed)
    arrays = []
    writer.smooth = smooth = rng.random() < 0.6
    for i in range(rng.randint(1, 3)):
        shape = tuple(rng.choice((0, 1, 2, 3, 4, 5) if rng.random() < 0.2 else (1, 2, 3, 4, 5))
                      for _ in range(rng.choice((0, 1, 1, 2, 2, 3))))
        writer.shapes[f"x{i}"] = shape
        arrays.append(drawn_array(numbers, shape, rng, smooth))
    if len(arrays) > 1 and arrays[0].shape == arrays[1].shape:
        arrays[1] = arrays[0]
    parameters = ", ".join(writer.shapes)
    if rng.random() < 0.4:
        writer.any_function()
        return PythonProgram(seed, parameters, tuple(writer.lines), ([*writer.shapes][-1],), tuple(arrays), smooth)
    for _ in range(rng.randint(2, 8)):
        writer.statement()
    names = [*writer.shapes]
    results = sorted({names[-1], *rng.sample(names, min(2, len(names)))})
    return PythonProgram(seed, parameters, tuple(writer.lines), tuple(results), tuple(arrays), smooth)


def drawn_array(numbers: np.random.Generator, shape: tuple[int, ...], rng: random.Random, smooth: bool) -> Array:
    """Random numbers in memory of some layout; special ones among them, unless they are to be smooth."""
    x = np.asarray(numbers.standard_normal(shape))
    if not smooth:
        x = np.asarray(np.where(numbers.random(shape) < 0.15, numbers.choice(SPECIAL, shape), x))
    layout = rng.random()
    if layout < 0.2 and x.ndim:
        return np.repeat(x, 2, axis=0)[::2]
    if layout < 0.3 and x.ndim > 1:
        return np.asfortranarray(x)
    return x


def examine(program: PythonProgram) -> Failure | None:
    """None if all ways of running the program give the same results."""
    with tempfile.TemporaryDirectory(prefix="mlc-fuzz-") as folder, interpreted() as unspecified:
        own = program.load(Path(folder), "mlc")
        f = own.f
        mlc.manual_seed(program.seed)
        state = mlc.get_rng_state()

        def run(f: Callable[..., Any], arrays: Sequence[Array], tensor: Any = np.asarray) -> list[Array] | str:
            before = [np.array(x) for x in arrays]
            mlc.set_rng_state(state)
            found = outcome(f, [tensor(x) for x in arrays])
            for x, was in zip(arrays, before):             # which `inplace=True` changes
                x[...] = was
            return found

        def wrong(f: Compiled, arrays: Sequence[Array], wanted: list[Array] | str) -> str | None:
            found = run(f, arrays)
            free = unspecified.met and not isinstance(found, str) and not isinstance(wanted, str)
            return None if free or refuses_on_purpose(found) else unlike(found, wanted)

        plain = run(f, program.arrays, mlc.asarray)
        draws = not np.array_equal(mlc.get_rng_state(), state)
        sized = Compiled(f, dynamic=True) if program.seed % 3 == 0 else None
        for compiled, way in ((Compiled(f, dynamic=False), "compiled"), (sized, "compiled for all sizes")):
            if compiled is not None and (message := wrong(compiled, program.arrays, plain)):
                return _failure(program, way, message)
        if not isinstance(plain, str) and not unspecified.met and (not draws or is_free(program.text)) and (
                importlib.util.find_spec("torch") is not None) and (
                found := against_torch(program, own, plain, Path(folder))) is not None:
            return found
        if sized is not None:
            others = resized(program.arrays, random.Random(program.seed))
            if message := wrong(sized, others, run(f, others, mlc.asarray)):
                return _failure(replace(program, arrays=others), "compiled for all sizes, given others", message)
    return None


OTHERWISE: Sequence[tuple[str, Callable[[Sequence[Array]], bool]]] = (
    ("T.empty", lambda arrays: True),                      # what was in memory before
    (".conv", lambda arrays: any(x.size == 0 for x in arrays)),        # images without channels stay such images
    ("T.trap", lambda arrays: not all(np.isfinite(x).all() for x in arrays if x.dtype.kind == "f")))
"""Functions whose results are other ones in PyTorch, and for what arguments. Its `trapezoid` takes half of both ends
off a sum of all, which makes NaN of an infinite end."""


def against_torch(program: PythonProgram, own: ModuleType, plain: list[Array], folder: Path) -> Failure | None:
    """Compare with PyTorch: values, and for programs on ordinary numbers derivatives, too."""
    torch: Any = importlib.import_module("torch")
    theirs = program.load(folder, "torch")
    given = [torch.tensor(np.ascontiguousarray(x)).reshape(x.shape) for x in program.arrays]
    try:
        with factored_by_torch(is_free(program.text)) as defined:
            wanted = [np.asarray(x) for x in _leaves(theirs.f(*given))]
    except (RuntimeError, LookupError, TypeError, ValueError, AttributeError, NotImplementedError):
        return None                                        # PyTorch has no such thing, or refuses what is empty
    if not defined() or any(text in program.text and holds(program.arrays) for text, holds in OTHERWISE):
        return None
    if message := unlike(plain, wanted):
        return _failure(program, "against torch", message)
    if not program.smooth or not any(np.isfinite(x).all() and x.size for x in wanted):
        return None

    def gradient(arrays: Sequence[Array]) -> list[Array]:
        given = [torch.tensor(np.ascontiguousarray(x)).reshape(x.shape).requires_grad_() for x in arrays]
        grads = torch.autograd.grad(theirs.loss(*given), given, allow_unused=True)
        return [np.zeros(x.shape) if d is None else d.numpy(force=True) for x, d in zip(given, grads)]

    try:
        wanted = gradient(program.arrays)
    except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
        return None
    recorded = Compiled(mlc.grad(own.loss, argnums=tuple(range(len(given)))), dynamic=False)
    for way, f in (("gradient", recorded), ("backward", partial(pulled_back, own.loss))):
        found = outcome(f, program.arrays)
        message = None if refuses_on_purpose(found) else unlike(found, wanted)
        if message is not None and not is_uncertain(gradient, program.arrays, wanted):
            return _failure(program, f"{way} against torch", message)
    return None


def pulled_back(f: Callable[..., Any], *arrays: Array) -> list[Any]:
    """The gradients that `backward` of an eager run leaves."""
    given = [mlc.tensor(np.ascontiguousarray(x)).reshape(x.shape).requires_grad_() for x in arrays]
    out = f(*given)
    if out.requires_grad:
        out.backward()
    return [mlc.zeros_like(x) if x.grad is None else x.grad for x in given]


def is_uncertain(f: Callable[[Sequence[Array]], list[Array]], arrays: Sequence[Array], values: list[Array]) -> bool:
    """Whether roundings alone may change what f gives: it has other values where its arguments are off by a few units
    in their last place. A derivative of sin(e^16) is such a thing."""
    off = 16 * EPSILON["float64"]
    return any(unlike(f([x * factor for x in arrays]), values) for factor in (1.0 - off, 1.0 + off))


def refuses_on_purpose(found: list[Array] | str) -> bool:
    """Whether recording a function is refused for what only its run can tell: which tensors a write in it changes
    (MLC0750 to MLC0760), or a number that Python asks a tensor for."""
    return isinstance(found, str) and (found.startswith(("refused with MLC075", "refused with MLC0760")) or (
        found.startswith("refused with MLC") and "being recorded" in found))


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, tuple | list):
        for part in x:
            yield from _leaves(part)
    elif x is not None:
        yield x


def outcome(f: Callable[..., Any], args: Sequence[Any]) -> list[Array] | str:
    """The results of a call as arrays, or the text of its error."""
    try:
        found = [np.array(x.numpy() if hasattr(x, "numpy") else x) for x in _leaves(f(*args))]
        return found if all(x.dtype.kind in "biufc" for x in found) else "no numbers"     # a function or a text, say
    except InternalError:
        raise
    except Error as error:
        return f"refused with {error.code}: {error.message}"
    except (IndexError, TypeError, ValueError) as error:
        return f"refused with {type(error).__name__}: {error}"


def unlike(got: list[Array] | str, want: list[Array] | str) -> str | None:
    """None if two outcomes agree, else where they do not. Large results may be off by more."""
    if isinstance(got, str) or isinstance(want, str):
        if isinstance(got, str) and isinstance(want, str):
            return None
        said = [x if isinstance(x, str) else "results" for x in (got, want)]
        return f"{said[0]} in place of {said[1]}"
    if len(got) != len(want):
        return f"{len(got)} results in place of {len(want)}"
    for i, (a, b) in enumerate(zip(got, want)):
        if a.shape != b.shape:
            return f"result {i} has shape {list(a.shape)} in place of {list(b.shape)}"
        if a.dtype != b.dtype:
            return f"result {i} is of {a.dtype} in place of {b.dtype}"
        x, y = (part.astype(np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64) for part in (a, b))
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(y), initial=1.0, where=np.isfinite(y))
            same = np.isclose(x, y, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True)
        if not same.all():
            at = tuple(int(k) for k in np.argwhere(~same)[0])
            return f"result {i} is {x[at]!r} in place of {y[at]!r} at {list(at)} ({int((~same).sum())} of {same.size})"
    return None


def _failure(program: PythonProgram, where: str, message: str) -> Failure:
    arrays = "\n".join(f"# x{i}: {x.tolist()}" for i, x in enumerate(program.arrays))
    return Failure(key_of(message, where), message, f"import mlc as T\n{program.text}\n{arrays}\n", ".py")


def examine_all(program: PythonProgram) -> Failure | None:
    """As `examine`, for the shortest failing prefix, so that failures of different expressions have different keys."""
    found = examine_safely(program)
    if found is None:
        return None
    for short in program.beginnings():
        if (small := examine_safely(short)) is not None:
            expression = re.sub(r"\b[vx]\d+\b", "x", short.lines[-1].strip())
            return replace(small, key=f"{small.key[:120]} {expression}")
    return found


def examine_safely(program: PythonProgram) -> Failure | None:
    """As `examine`; an unexpected exception is a failure, too."""
    try:
        return examine(program)
    except Exception as error:                             # whatever a recording dies of is a finding
        return crashed(program, error)


def crashed(program: PythonProgram, error: BaseException) -> Failure:
    """The failure of a program that raises an error other than a UserError."""
    return _failure(program, key_of(error), f"{type(error).__name__}: {error}")
