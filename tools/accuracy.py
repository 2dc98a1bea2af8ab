"""mlc accuracy: the error of every elementary function, in units of the last place.

A result's error is |result - true value| over the distance of the floats next to the true value, denormals included.
0.5 is the least that is possible for all arguments: the result is the nearest float. Values that are infinite, NaN or
too large to be floats have to be right, or the error is infinite.

float16 and bfloat16 are measured for all their values, float32 and float64 at samples of all exponents and of the usual
range; with --all also float32 for all its values, which takes hours. True values come from mpmath for float64, and from
float64 for the narrower types, of which it has 29 bits more.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mlc
from mlc.dialects import tensor
from mlc.dialects.tensor.binary import Binary
from mlc.dialects.tensor.elementwise import Elementwise, Rounding, Unary
from mlc.ir.core import REGISTRY, Op
from mlc.tools import files, report
from mlc.tools.layout import table

Array = np.ndarray[Any, Any]
Evaluate = Callable[[str, Sequence[Array]], Array]

EXAMPLES = """examples:
  mlc accuracy exp --type float32
  mlc accuracy sinh erfc --type float16
"""
UNARY, BINARY = ({name.removeprefix("tensor."): cls.__name__ for name, cls in sorted(REGISTRY.items())
                  if issubclass(cls, family) and cls.rounding is Rounding.WIDE} for family in (Unary, Binary))
"""Function -> the operation whose float64 reference gives the true value for narrower types."""
NAMES = sorted({**UNARY, **BINARY})


@dataclass(frozen=True)
class Format:
    """A float type: bits of the significand, and the exponent of its smallest normal number as `frexp` has it."""

    name: str
    digits: int
    lowest: int
    greatest: int                                # every finite number is below 2^greatest

    @property
    def dtype(self) -> Any:
        import ml_dtypes
        return np.dtype(ml_dtypes.bfloat16 if self.name == "bfloat16" else self.name)

    @property
    def bits(self) -> int:
        return int(self.dtype.itemsize) * 8


FORMATS = {f.name: f for f in (Format("float16", 11, -13, 16), Format("bfloat16", 8, -125, 128),
                               Format("float32", 24, -125, 128), Format("float64", 53, -1021, 1024))}
SAMPLES = {"float32": 2**19, "float64": 2000}
"""Number of samples of each of the four kinds."""
CHUNK = 2**22


@dataclass(frozen=True)
class Error:
    """The largest error found, and its argument."""

    ulps: float = 0.0
    at: tuple[float, ...] = ()

    def or_worse(self, errors: Array, xs: Sequence[Array]) -> Error:
        if not errors.size:
            return self
        i = int(np.argmax(errors))
        return Error(float(errors[i]), tuple(float(x[i]) for x in xs)) if errors[i] > self.ulps else self


def parser() -> argparse.ArgumentParser:
    p = report.Parser("accuracy", "Measure the error of elementary functions, in units of the last place.", EXAMPLES)
    p.add_argument("name", nargs="*", help="a function; all of them by default")
    p.add_argument("--type", choices=FORMATS, help="this element type only")
    p.add_argument("--all", action="store_true", help="float32 for all 2^32 values (hours)")
    p.add_argument("--write", action="store_true",
                   help="write the table, or the rows of these functions, into dialects/tensor/ACCURACY.md")
    return p


def main(options: argparse.Namespace) -> int:
    for name in options.name:
        if name not in NAMES:
            cls = REGISTRY.get(f"tensor.{name}", Op)
            if issubclass(cls, Elementwise) and cls.rounding is Rounding.STEPS:
                raise report.usage_error(f"{name} is computed in steps, each of which is rounded: its class promises "
                                         f"results within {cls.ulp:g} units of the last place (`ulp`)",
                                         "mlc accuracy measures functions that are rounded as a whole", "MLC0410")
            raise report.usage_error(f"there is no elementary function {name!r}", "one of " + ", ".join(NAMES),
                                     "MLC0410")
    if options.write and options.type:
        raise report.usage_error("--write needs the errors of all types", "leave --type out", "MLC0391")
    formats = [FORMATS[options.type]] if options.type else [*FORMATS.values()]
    rows: list[tuple[str, ...]] = []
    for name in options.name or NAMES:
        errors = [measure(name, f, native, None, options.all) for f in formats]
        rows.append((name, *(f"{rounded_up(e.ulps):.2f}" for e in errors), *(_place(e) for e in errors[-2:])))
    header = ("function", *(f.name for f in formats), *(f"worst {f.name} at" for f in formats[-2:]))
    if options.write:
        kept = {cells[0]: cells for cells in _rows() if cells[0] in NAMES} if options.name else {}
        kept |= {row[0]: row for row in rows}
        files.write(str(page()), _page(header, [kept[name] for name in sorted(kept)], options.all))
    print("\n".join(table([header, *rows])))
    return 0


def page() -> Path:
    """The committed table."""
    return Path(tensor.__file__).resolve().parent / "ACCURACY.md"


def bounds() -> dict[str, dict[str, float]]:
    """The errors that the committed table states: by function, then by type."""
    header, _, *rows = _rows()
    return {row[0]: {t: float(v) for t, v in zip(header[1:], row[1:]) if t in FORMATS} for row in rows}


def _rows() -> list[tuple[str, ...]]:
    """The lines of the committed table."""
    return [tuple(cell.strip() for cell in line.strip("| ").split("|"))
            for line in page().read_text(encoding="utf-8").splitlines() if line.startswith("|")]


def rounded_up(ulps: float) -> float:
    return math.ceil(ulps * 100) / 100 if math.isfinite(ulps) else ulps


def _place(error: Error) -> str:
    return ", ".join(f"{x:.9g}" for x in error.at)


def _page(header: tuple[str, ...], rows: list[tuple[str, ...]], every: bool) -> str:
    body = [header, tuple("---" for _ in header), *rows]
    floats = "every value" if every else f"{4 * SAMPLES['float32']:,} values of all exponents"
    return (f"""# Accuracy of elementary functions

Maximum error in ulps of the true value (0.5 is correct rounding), on every machine: results are bitwise identical on
all of them. Measured for every value of float16 and bfloat16, {floats}
of float32 and {4 * SAMPLES['float64']:,} of float64; for functions of two arguments at as many pairs. Zeros,
infinities, NaN and denormals are right. Sums, products, quotients, square roots, remainders and conversions are
rounded correctly.

Written by `mlc accuracy --write`; `tests/test_accuracy.py` holds the functions to it.

""" + "\n".join("| " + " | ".join(row) + " |" for row in body) + "\n")


# -- measuring --------------------------------------------------------------------------------------------------------
def measure(name: str, format: Format, evaluate: Evaluate, count: int | None = None, every: bool = False) -> Error:
    """The largest error of a function at `count` samples of each kind, or at every value of the type."""
    worst = Error()
    for xs in arguments(name, format, count, every):
        result = evaluate(name, xs)
        errors = (_errors_in_mpmath if format.name == "float64" else _errors)(name, xs, result, format)
        worst = worst.or_worse(errors, xs)
    return worst


def native(name: str, xs: Sequence[Array]) -> Array:
    """The function as it is compiled for this machine."""
    if name not in _compiled:
        _compiled[name] = mlc.compile(function(name))
    return np.asarray(_compiled[name](*xs).numpy())


_compiled: dict[str, Any] = {}


def function(name: str) -> Callable[..., Any]:
    """The public function of that name."""
    return getattr(mlc, name, None) or getattr(mlc.nn.functional, name)  # type: ignore[no-any-return]


def arguments(name: str, format: Format, count: int | None, every: bool) -> Iterator[list[Array]]:
    """Arrays of arguments: every value, or samples; NaN and infinities are among those of narrow types."""
    if name in BINARY:
        yield _pairs(format, count or SAMPLES.get(format.name, 2**18))
    elif count is None and (every or format.bits == 16) and format.bits <= 32:
        for start in range(0, 2**format.bits, CHUNK):
            bits = np.arange(start, min(start + CHUNK, 2**format.bits), dtype=np.uint64)
            yield [bits.astype(f"u{format.bits // 8}").view(format.dtype)]
    else:
        yield [_samples(format, count or SAMPLES.get(format.name, 2**14))]


def _samples(format: Format, count: int) -> Array:
    """Samples of random bits, near 1 and -1, within [-20, 20], and of small exponents."""
    random = np.random.default_rng(0)
    any_bits = random.integers(0, 2**format.bits, count, dtype=np.uint64).astype(f"u{format.bits // 8}")
    near = 1 + random.choice((-1, 1), count) * np.exp2(random.uniform(-format.digits, 0, count))
    with np.errstate(all="ignore"):
        parts = [any_bits.view(format.dtype).astype(np.float64), near * random.choice((-1, 1), count),
                 random.uniform(-20, 20, count),
                 random.choice((-1, 1), count) * np.exp2(random.uniform(-30, 12, count))]
        return np.concatenate(parts).astype(format.dtype)


def _pairs(format: Format, count: int) -> list[Array]:
    """Pairs whose exponents are anywhere, every other one near each other; or about so large that x^y is a number."""
    random = np.random.default_rng(1)
    limit = format.greatest - 2
    x, y = random.choice((-1, 1), (2, count)) * np.exp2(random.uniform(-limit, limit, (2, count)))
    y = np.where(np.arange(count) % 2 == 0, x * random.uniform(0.2, 5, count), y)
    a, power = np.exp2(random.normal(0, 8, count)), random.uniform(-limit - 20, limit + 20, count)
    pairs = [np.concatenate([x, a]), np.concatenate([y, power / np.log2(a)])]
    with np.errstate(all="ignore"):
        return [v.astype(format.dtype) for v in pairs]


def _errors(name: str, xs: Sequence[Array], result: Array, format: Format) -> Array:
    return errors(getattr(tensor, {**UNARY, **BINARY}[name]).f, xs, result, format)


def errors(f: Callable[..., Any], xs: Sequence[Array], result: Array, format: Format) -> Array:
    """Errors of results against `f` in float64, in units of the last place of the format."""
    with np.errstate(all="ignore"):
        wide, out = [x.astype(np.float64) for x in xs], result.astype(np.float64)
        true = np.asarray(f(*wide), np.float64)
        _, exponent = np.frexp(true)
        ulps = np.ldexp(np.abs(out - true), format.digits - np.maximum(exponent, format.lowest))
        special = ~np.isfinite(true) | ~np.isfinite(out)
        largest = np.exp2(float(format.greatest)) * (1 - np.exp2(-float(format.digits) - 1))
        right = (np.isnan(true) & np.isnan(out)) | (true == out) | (
            np.isinf(out) & (np.abs(true) >= largest) & (np.signbit(out) == np.signbit(true)))
    return np.where(special, np.where(right, 0.0, math.inf), ulps)


def _errors_in_mpmath(name: str, xs: Sequence[Array], result: Array, format: Format) -> Array:
    """The same against multi-precision true values; where the function has no real value, its result must be NaN."""
    mp, exact = _mpmath(name)
    errors = np.zeros(result.shape)
    with mp.workprec(1400 if name in ("sin", "cos", "tan", "expm1", "tanh", "sinh") else 240):
        for i, (out, *args) in enumerate(zip(result.tolist(), *(x.tolist() for x in xs))):
            if not all(map(math.isfinite, args)) or (name in _STEEP and abs(args[0]) > 1100):
                continue
            true = _real(exact, mp, args)
            if true is None or mp.isinf(true):
                errors[i] = 0.0 if (math.isnan(out) if true is None else math.isinf(out)) else math.inf
            elif not math.isfinite(out):
                errors[i] = 0.0 if abs(true) >= mp.mpf(2) ** 1024 * (1 - mp.mpf(2) ** -54) else math.inf
            else:
                exponent = int(mp.frexp(true)[1]) if true else format.lowest
                errors[i] = abs(out - true) / mp.mpf(2) ** (max(exponent, format.lowest) - format.digits)
    return errors


_STEEP = frozenset({"exp", "exp2", "expm1", "sigmoid", "silu", "tanh", "erf", "erfc", "sinh", "cosh"})
"""Where mpmath would need exponents without end."""


def _real(exact: Callable[..., Any], mp: Any, args: Sequence[float]) -> Any:
    """The true value; None if there is no real one."""
    try:
        true = exact(*map(mp.mpf, args))
    except (ValueError, ZeroDivisionError):              # at a pole
        return mp.inf
    if isinstance(true, mp.mpc):
        return true.real if true.imag == 0 else None
    return None if mp.isnan(true) else true


def _mpmath(name: str) -> tuple[Any, Callable[..., Any]]:
    try:
        from mpmath import mp
    except ImportError as error:
        raise report.usage_error(f"mpmath is not installed ({error}), which float64 is compared with",
                                 "pip install mpmath, or ask for a narrower type: --type float32", "MLC0411") from None
    cls = REGISTRY[f"tensor.{name}"]
    assert issubclass(cls, Elementwise)
    return mp, lambda *xs: cls.true_value(mp, *xs)
