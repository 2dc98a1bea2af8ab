"""The elementary functions: their error against wider references, their special cases, and numpy's bits == LLVM's.

The bounds are those measured, rounded up a little. Slow tests run the native code over every float.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest
from mpmath import mp
from numpy.typing import NDArray

import mlc
from mlc.backends.cpu.targets import LEVELS, host
from mlc.backends.executable import Entry, build
from mlc.dialects import expansions
from mlc.dialects.expansions import Arithmetic
from mlc.ir import exact
from mlc.ir.parser import parse_module
from mlc.passes import pipeline

Array = NDArray[Any]
Float = type[np.float32] | type[np.float64]


class NumpyArithmetic:
    """Expansions computed: a value is an array."""

    def bits(self, x: Array) -> int: return x.dtype.itemsize * 8
    def const(self, value: float, like: Array) -> Array: return np.array(value, like.dtype)

    def iconst(self, value: int, like: Array) -> Array:
        width = self.bits(like)
        return np.array(value % 2**width, f"u{width // 8}").view(f"i{width // 8}")

    def add(self, a: Array, b: Array) -> Array: return np.asarray(a + b)
    def sub(self, a: Array, b: Array) -> Array: return np.asarray(a - b)
    def mul(self, a: Array, b: Array) -> Array: return np.asarray(a * b)
    def div(self, a: Array, b: Array) -> Array: return np.asarray(a / b)
    def fma(self, a: Array, b: Array, c: Array) -> Array: return exact.fma(a, b, c)
    def neg(self, a: Array) -> Array: return np.asarray(-a)
    def abs(self, a: Array) -> Array: return np.asarray(np.abs(a))
    def copysign(self, magnitude: Array, sign: Array) -> Array: return np.asarray(np.copysign(magnitude, sign))
    def sqrt(self, a: Array) -> Array: return np.asarray(np.sqrt(a))
    def roundeven(self, a: Array) -> Array: return np.asarray(np.rint(a))
    def sitofp(self, a: Array) -> Array: return a.astype(f"f{a.dtype.itemsize}")
    def bitcast_int(self, a: Array) -> Array: return a.view(f"i{a.dtype.itemsize}")
    def bitcast_float(self, a: Array) -> Array: return a.view(f"f{a.dtype.itemsize}")
    def extf(self, a: Array) -> Array: return a.astype(np.float64)
    def truncf(self, a: Array) -> Array: return a.astype(np.float32)
    def iadd(self, a: Array, b: Array) -> Array: return np.asarray(a + b)
    def isub(self, a: Array, b: Array) -> Array: return np.asarray(a - b)
    def shl(self, a: Array, b: Array) -> Array: return np.asarray(a << b)
    def lshr(self, a: Array, b: Array) -> Array: return self._unsigned(a, b)
    def ashr(self, a: Array, b: Array) -> Array: return np.asarray(a >> b)
    def iand(self, a: Array, b: Array) -> Array: return np.asarray(a & b)
    def ior(self, a: Array, b: Array) -> Array: return np.asarray(a | b)
    def ixor(self, a: Array, b: Array) -> Array: return np.asarray(a ^ b)

    def _unsigned(self, a: Array, b: Array) -> Array:
        kind = f"u{a.dtype.itemsize}"
        return np.asarray(a.view(kind) >> b.view(kind)).view(a.dtype)

    def cmp(self, predicate: str, a: Array, b: Array) -> Array:
        compare = {"oeq": np.equal, "olt": np.less, "ole": np.less_equal, "ogt": np.greater, "oge": np.greater_equal,
                   "une": np.not_equal}[predicate]
        return np.asarray(compare(a, b))

    def icmp(self, predicate: str, a: Array, b: Array) -> Array:
        compare = {"eq": np.equal, "ne": np.not_equal, "slt": np.less, "sle": np.less_equal, "sgt": np.greater,
                   "sge": np.greater_equal}[predicate]
        return np.asarray(compare(a, b))

    def select(self, condition: Array, a: Array, b: Array) -> Array: return np.where(condition, a, b)


Typed = tuple[str, str]     # LLVM type, operand
FLOAT_OF = {"i32": "float", "i64": "double"}


class LlvmArithmetic:
    """Expansions emitted as LLVM text on scalars: a value is a type and an operand."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.intrinsics: set[str] = set()
        self.operations = 0                             # without constants, bit casts and sign flips of operands

    def _new(self, type: str, text: str, cost: int = 1) -> Typed:
        self.lines.append(f"%v{len(self.lines)} = {text}")
        self.operations += cost
        return type, f"%v{len(self.lines) - 1}"

    def _same(self, op: str, a: Typed, b: Typed) -> Typed:
        assert a[0] == b[0], (op, a, b)
        return self._new(a[0], f"{op} {a[0]} {a[1]}, {b[1]}")

    def _call(self, name: str, *args: Typed) -> Typed:
        type = args[0][0]
        assert {t for t, _ in args} == {type}
        full = f"llvm.{name}.{'f32' if type == 'float' else 'f64'}"
        self.intrinsics.add(f"declare {type} @{full}({', '.join([type] * len(args))})")
        return self._new(type, f"call {type} @{full}({', '.join(f'{t} {v}' for t, v in args)})")

    def _cast(self, op: str, a: Typed, to: str, cost: int = 1) -> Typed:
        return self._new(to, f"{op} {a[0]} {a[1]} to {to}", cost)

    def bits(self, x: Typed) -> int: return {"float": 32, "i32": 32, "double": 64, "i64": 64}[x[0]]

    def const(self, value: float, like: Typed) -> Typed:
        assert like[0] in ("float", "double")
        rounded = float(np.float32(value)) if like[0] == "float" else float(value)
        return like[0], f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"

    def iconst(self, value: int, like: Typed) -> Typed: return f"i{self.bits(like)}", str(value % 2 ** self.bits(like))
    def add(self, a: Typed, b: Typed) -> Typed: return self._same("fadd", a, b)
    def sub(self, a: Typed, b: Typed) -> Typed: return self._same("fsub", a, b)
    def mul(self, a: Typed, b: Typed) -> Typed: return self._same("fmul", a, b)
    def div(self, a: Typed, b: Typed) -> Typed: return self._same("fdiv", a, b)
    def fma(self, a: Typed, b: Typed, c: Typed) -> Typed: return self._call("fma", a, b, c)
    def neg(self, a: Typed) -> Typed: return self._new(a[0], f"fneg {a[0]} {a[1]}", 0)
    def abs(self, a: Typed) -> Typed: return self._call("fabs", a)
    def copysign(self, magnitude: Typed, sign: Typed) -> Typed: return self._call("copysign", magnitude, sign)
    def sqrt(self, a: Typed) -> Typed: return self._call("sqrt", a)
    def roundeven(self, a: Typed) -> Typed: return self._call("roundeven", a)
    def sitofp(self, a: Typed) -> Typed: return self._cast("sitofp", a, FLOAT_OF[a[0]])
    def bitcast_int(self, a: Typed) -> Typed: return self._cast("bitcast", a, f"i{self.bits(a)}", 0)
    def bitcast_float(self, a: Typed) -> Typed: return self._cast("bitcast", a, FLOAT_OF[a[0]], 0)
    def extf(self, a: Typed) -> Typed: return self._cast("fpext", a, "double")
    def truncf(self, a: Typed) -> Typed: return self._cast("fptrunc", a, "float")
    def iadd(self, a: Typed, b: Typed) -> Typed: return self._same("add", a, b)
    def isub(self, a: Typed, b: Typed) -> Typed: return self._same("sub", a, b)
    def shl(self, a: Typed, b: Typed) -> Typed: return self._same("shl", a, b)
    def lshr(self, a: Typed, b: Typed) -> Typed: return self._same("lshr", a, b)
    def ashr(self, a: Typed, b: Typed) -> Typed: return self._same("ashr", a, b)
    def iand(self, a: Typed, b: Typed) -> Typed: return self._same("and", a, b)
    def ior(self, a: Typed, b: Typed) -> Typed: return self._same("or", a, b)
    def ixor(self, a: Typed, b: Typed) -> Typed: return self._same("xor", a, b)
    def cmp(self, predicate: str, a: Typed, b: Typed) -> Typed: return "i1", self._same(f"fcmp {predicate}", a, b)[1]
    def icmp(self, predicate: str, a: Typed, b: Typed) -> Typed: return "i1", self._same(f"icmp {predicate}", a, b)[1]

    def select(self, condition: Typed, a: Typed, b: Typed) -> Typed:
        assert condition[0] == "i1" and a[0] == b[0]
        return self._new(a[0], f"select i1 {condition[1]}, {a[0]} {a[1]}, {b[0]} {b[1]}")


Function = Callable[..., Array]

_alive: list[llvm.ExecutionEngine] = []                 # they own the code


@cache
def native(name: str, bits: int) -> tuple[Function, int]:
    """The function compiled as a loop over arrays, and how many operations it took."""
    kind, b = ("float" if bits == 32 else "double"), LlvmArithmetic()
    names = "xy" if name in BINARY else "x"
    kind_result, result = getattr(expansions, name)(b, *[(kind, f"%{n}") for n in names])
    loads = [f"%p{n} = getelementptr {kind}, ptr %a{n}, i64 %i\n%{n} = load {kind}, ptr %p{n}" for n in names]
    text = "\n".join((
        *b.intrinsics, f"define void @run({', '.join(f'ptr %a{n}' for n in names)}, ptr %o, i64 %n) {{",
        "entry:", "br label %loop", "loop:", "%i = phi i64 [0, %entry], [%next, %loop]", *loads, *b.lines,
        f"%p = getelementptr {kind}, ptr %o, i64 %i", f"store {kind_result} {result}, ptr %p", "%next = add i64 %i, 1",
        "%more = icmp ult i64 %next, %n", "br i1 %more, label %loop, label %done", "done:", "ret void", "}"))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    _alive.append(engine)
    code = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(names) + 1), ctypes.c_int64)(
        engine.get_function_address("run"))

    def run(*args: Array) -> Array:
        result = np.empty_like(args[0])
        code(*(a.ctypes.data for a in args), result.ctypes.data, result.size)
        return result

    return run, b.operations


def interpreted(name: str, *args: Array) -> Array:
    b: Arithmetic[Array] = NumpyArithmetic()
    with np.errstate(all="ignore"):
        return np.asarray(getattr(expansions, name)(b, *args))


# References


def erf64(x: Array) -> Array:
    middle = (np.abs(x) > 2.0**-12) & (np.abs(x) < 6)
    result = np.where(np.abs(x) < 1, x * (1 - x * x / 3) * 1.1283791670955126, np.sign(x))
    result[middle] = [math.erf(v) for v in x[middle]]
    return np.asarray(result)


BINARY = ("atan2", "hypot", "pow")
FLOAT64: dict[str, Function] = {
    "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "log10": np.log10, "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "silu": lambda x: np.maximum(x, -300) / (1 + np.exp(-np.maximum(x, -300))), "atan2": np.arctan2, "hypot": np.hypot,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log1p": np.log1p,
    "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": erf64, "sin": np.sin, "cos": np.cos,
    "atan": np.arctan, "rsqrt": lambda x: 1 / np.sqrt(x), "pow": np.power,
}
EXACT: dict[str, Callable[..., Any]] = {
    "sinh": mp.sinh, "cosh": mp.cosh, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh, "tan": mp.tan,
    "asin": mp.asin, "acos": mp.acos, "log10": mp.log10, "erfc": mp.erfc, "silu": lambda x: x / (1 + mp.exp(-x)),
    "atan2": mp.atan2, "hypot": mp.hypot,
    "exp": mp.exp, "exp2": lambda x: mp.power(2, x), "expm1": mp.expm1, "log": mp.log, "log2": lambda x: mp.log(x, 2),
    "log1p": mp.log1p, "tanh": mp.tanh, "sigmoid": lambda x: 1 / (1 + mp.exp(-x)), "erf": mp.erf, "sin": mp.sin,
    "cos": mp.cos, "atan": mp.atan, "rsqrt": lambda x: 1 / mp.sqrt(x), "pow": mp.power,
}
BOUND32 = {
    "sinh": 0.51, "cosh": 0.51, "asinh": 0.51, "acosh": 0.51, "atanh": 0.51, "tan": 0.51, "asin": 0.51, "acos": 0.51,
    "log10": 0.51, "erfc": 1.7, "silu": 1.05, "atan2": 0.51, "hypot": 0.51,
    "exp": 0.98, "exp2": 0.87, "expm1": 0.95, "log": 0.97, "log2": 0.96, "log1p": 0.98, "tanh": 0.93, "sigmoid": 0.98,
    "erf": 0.99, "sin": 0.51, "cos": 0.51, "atan": 0.78, "rsqrt": 0.51, "pow": 0.51,
}
BOUND64 = {
    "sinh": 1.5, "cosh": 1.3, "asinh": 1.0, "acosh": 1.0, "atanh": 1.0, "tan": 1.1, "asin": 0.7, "acos": 0.7,
    "log10": 0.51, "erfc": 1.5, "silu": 0.9, "atan2": 0.8, "hypot": 1.15,
    "exp": 1.0, "exp2": 1.0, "expm1": 1.2, "log": 1.0, "log2": 1.0, "log1p": 1.0, "tanh": 1.0, "sigmoid": 1.0,
    "erf": 1.1, "sin": 1.0, "cos": 1.0, "atan": 0.9, "rsqrt": 0.51, "pow": 1.6,
}
UNARY = [name for name in FLOAT64 if name not in BINARY]
DOMAIN: dict[str, Callable[[Array], Array]] = {
    **dict.fromkeys(("log", "log2", "log10", "rsqrt"), lambda x: x > 0), "log1p": lambda x: x > -1,
    "acosh": lambda x: x >= 1, **dict.fromkeys(("asin", "acos", "atanh"), lambda x: np.abs(x) < 1),
    **dict.fromkeys(("exp", "exp2", "expm1", "sigmoid", "tanh", "erf", "erfc", "silu", "sinh", "cosh"),
                    lambda x: np.abs(x) < 1100),
}
"""Where a function is defined, and mpmath has a number for it."""


def ulp_error32(result: Array, reference: Array) -> float:
    """The largest error in units of the last place of float32; infinite where a special value or a zero is wrong."""
    with np.errstate(all="ignore"):
        rounded = reference.astype(np.float32)
        special = ~np.isfinite(rounded) | (reference == 0)
        same = (rounded == result) & (np.signbit(rounded) == np.signbit(result)) | np.isnan(rounded) & np.isnan(result)
        edge = np.isinf(rounded) & np.isfinite(reference) & (np.abs(result) == np.finfo(np.float32).max)
        if not np.all(same | edge | ~special):
            return math.inf
        _, exponent = np.frexp(reference)
        error = np.ldexp(np.abs(result - reference), 24 - np.maximum(exponent, -125))
        return float(np.max(np.where(special, 0.0, error), initial=0.0))


def ulp_error64(result: float, reference: Any) -> float:
    if not math.isfinite(result):
        return 0.0 if abs(reference) >= mp.mpf(2) ** 1024 * (1 - mp.mpf(2) ** -54) else math.inf
    exponent = int(mp.frexp(reference)[1]) if reference else -1021
    return float(abs(mp.mpf(result) - reference) / mp.mpf(2) ** (max(exponent, -1021) - 53))


def samples32(count: int = 2**17) -> Array:
    """`count` floats spread evenly over all bits, and as many over [-20, 20]."""
    random = np.random.default_rng(0)
    bits = np.arange(0, 2**32, 2**32 // count) + random.integers(0, 2**32 // count, count)
    return np.concatenate([bits.astype(np.uint32).view(np.float32), np.linspace(-20, 20, count, dtype=np.float32)])


def samples64(count: int, spread: float) -> Array:
    """Of each sign: small, moderate, large and any finite bits."""
    random = np.random.default_rng(1)
    any_bits = random.integers(0, 2**63, count, dtype=np.uint64).view(np.float64)
    uniform = [random.uniform(-limit, limit, count) for limit in (1, 4, spread)]
    x = np.concatenate([*uniform, np.exp2(random.uniform(-30, 10, count)), any_bits[np.isfinite(any_bits)]])
    return np.where(random.random(x.size) < 0.5, x, -x)


def pairs(count: int, dtype: Float, exponent: float) -> tuple[Array, Array]:
    """x and y with x^y all over the range, every third x negative with an integer y."""
    random = np.random.default_rng(2)
    x: Array = np.exp2(random.normal(0, 8, count)).astype(dtype)
    y: Array = (random.uniform(-exponent, exponent, count) / np.log2(x.astype(np.float64))).astype(dtype)
    third = np.arange(count) % 3 == 0
    return np.where(third, -x, x).astype(dtype), np.where(third, np.rint(y), y).astype(dtype)


def arguments(name: str, count: int, dtype: Float) -> tuple[Array, Array]:
    """For a function of two: those of pow, or of any exponents, every other pair near each other."""
    if name == "pow":
        return pairs(count, dtype, 150 if dtype is np.float32 else 1080)
    random, limit = np.random.default_rng(6), {np.float32: 120, np.float64: 1000}[dtype]
    x, y = random.choice((-1, 1), (2, count)) * np.exp2(random.uniform(-limit, limit, (2, count)))
    near = np.arange(count) % 2 == 0
    return x.astype(dtype), np.where(near, x * random.uniform(0.2, 5, count), y).astype(dtype)


# Tests


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in ("acosh", "atanh", "sinh") else n
                                  for n in UNARY])
def test_f32_error_over_samples(name: str) -> None:
    x = samples32()
    with np.errstate(all="ignore"):
        reference = FLOAT64[name](x.astype(np.float64))
    assert ulp_error32(interpreted(name, x), reference) <= BOUND32[name]


@pytest.mark.parametrize("name", UNARY)
def test_f64_error_against_mpmath(name: str) -> None:
    x = samples64(300, 740)
    if name in DOMAIN:
        x = x[DOMAIN[name](x)]
    result = interpreted(name, x)
    with mp.workprec(1400 if name in ("sin", "cos", "tan", "expm1", "tanh", "sinh") else 240):
        worst = max((ulp_error64(float(r), EXACT[name](mp.mpf(float(v)))), float(v)) for v, r in zip(x, result))
    assert worst[0] <= BOUND64[name], worst


@pytest.mark.parametrize("name", BINARY)
def test_f32_error_of_two_arguments(name: str) -> None:
    x, y = arguments(name, 2**18, np.float32)
    with np.errstate(all="ignore"):
        reference = FLOAT64[name](x.astype(np.float64), y.astype(np.float64))
    assert ulp_error32(interpreted(name, x, y), reference) <= BOUND32[name]


@pytest.mark.parametrize("name", BINARY)
def test_f64_error_of_two_arguments(name: str) -> None:
    x, y = arguments(name, 3000, np.float64)
    result = interpreted(name, x, y)
    with mp.workprec(240):
        exact_values = (EXACT[name](mp.mpf(float(v)), mp.mpf(float(w))) for v, w in zip(x, y))
        worst = max(ulp_error64(float(r), value) for r, value in zip(result, exact_values))
    assert worst <= BOUND64[name]


def test_the_hardest_arguments_of_sine() -> None:
    """Those nearest to a multiple of pi/2 for their size, where the reduction cancels most."""
    x = np.array([6381956970095103.0 * 2.0**797, 5.319372648326541e255, math.pi, math.pi / 2, 1e22, 2.0**1023])
    for name in ("sin", "cos"):
        with mp.workprec(1400):
            for v, r in zip(x, interpreted(name, x)):
                assert ulp_error64(float(r), EXACT[name](mp.mpf(float(v)))) <= BOUND64[name]
        near = np.array([float.fromhex("0x1.47d0fep+35"), 16367173 * 2.0**72, 2.0**127], np.float32)
        assert ulp_error32(interpreted(name, near), FLOAT64[name](near.astype(np.float64))) <= BOUND32[name]


inf, nan = math.inf, math.nan
SPECIALS: dict[str, list[tuple[float, float]]] = {
    "exp": [(-inf, 0), (inf, inf), (0.0, 1), (-0.0, 1), (1e4, inf), (-1e4, 0), (1e-300, 1)],
    "exp2": [(-inf, 0), (inf, inf), (0.0, 1), (-0.0, 1), (1e4, inf), (-1e4, 0), (3.0, 8),
             (-126.0, 2.0**-126), (-149.0, 2.0**-149)],
    "expm1": [(-inf, -1), (inf, inf), (0.0, 0.0), (-0.0, -0.0), (-1e4, -1), (1e4, inf), (2.0**-149, 2.0**-149)],
    "sigmoid": [(-inf, 0), (inf, 1), (0.0, 0.5), (-0.0, 0.5), (1e4, 1), (-1e4, 0)],
    "tanh": [(-inf, -1), (inf, 1), (0.0, 0.0), (-0.0, -0.0), (2.0**-149, 2.0**-149), (-50.0, -1)],
    "erf": [(-inf, -1), (inf, 1), (0.0, 0.0), (-0.0, -0.0), (-50.0, -1)],
    "log": [(-inf, nan), (inf, inf), (0.0, -inf), (-0.0, -inf), (1.0, 0.0), (-1.0, nan),
            (-1e-40, nan)],
    "log2": [(-inf, nan), (inf, inf), (0.0, -inf), (-0.0, -inf), (1.0, 0.0), (-1.0, nan),
             (8.0, 3), (2.0**-149, -149)],
    "log1p": [(-inf, nan), (inf, inf), (0.0, 0.0), (-0.0, -0.0), (-1.0, -inf), (-2.0, nan),
              (2.0**-149, 2.0**-149)],
    "sin": [(-inf, nan), (inf, nan), (0.0, 0.0), (-0.0, -0.0), (2.0**-149, 2.0**-149)],
    "cos": [(-inf, nan), (inf, nan), (0.0, 1), (-0.0, 1)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (inf, math.pi / 2), (-inf, -math.pi / 2), (2.0**-149, 2.0**-149)],
    "silu": [(inf, inf), (0.0, 0.0), (-0.0, -0.0), (-inf, -0.0), (-1e4, -0.0), (1e4, 1e4)],
    "sinh": [(-inf, -inf), (inf, inf), (0.0, 0.0), (-0.0, -0.0), (-1e4, -inf), (2.0**-149, 2.0**-149)],
    "cosh": [(-inf, inf), (inf, inf), (0.0, 1), (-0.0, 1), (-1e4, inf)],
    "asinh": [(-inf, -inf), (inf, inf), (0.0, 0.0), (-0.0, -0.0), (-(2.0**-149), -(2.0**-149))],
    "acosh": [(-inf, nan), (inf, inf), (1.0, 0.0), (0.5, nan), (-1.0, nan), (-1e30, nan)],
    "atanh": [(-inf, nan), (inf, nan), (1.0, inf), (-1.0, -inf), (0.0, 0.0), (-0.0, -0.0), (2.0, nan), (-1e30, nan),
              (2.0**-149, 2.0**-149)],
    "tan": [(-inf, nan), (inf, nan), (0.0, 0.0), (-0.0, -0.0), (2.0**-149, 2.0**-149)],
    "asin": [(1.0, math.pi / 2), (-1.0, -math.pi / 2), (0.0, 0.0), (-0.0, -0.0), (2.0, nan), (-inf, nan),
             (2.0**-149, 2.0**-149)],
    "acos": [(1.0, 0.0), (-1.0, math.pi), (0.0, math.pi / 2), (2.0, nan), (-2.0, nan), (inf, nan)],
    "log10": [(-inf, nan), (inf, inf), (0.0, -inf), (-0.0, -inf), (1.0, 0.0), (-1.0, nan), (1e10, 10), (1000.0, 3)],
    "erfc": [(-inf, 2), (inf, 0.0), (0.0, 1), (-0.0, 1), (-1e4, 2), (1e4, 0.0)],
    "rsqrt": [(-inf, nan), (inf, 0.0), (0.0, inf), (-0.0, -inf), (4.0, 0.5), (-1.0, nan)],
}


def same(a: Array, b: Array) -> bool:
    """Equal bits, any NaN for a NaN."""
    kind = f"i{a.dtype.itemsize}"
    return bool(np.all((a.view(kind) == b.view(kind)) | (np.isnan(a) & np.isnan(b))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_specials(name: str, dtype: Float) -> None:
    table: Array = np.array([*SPECIALS[name], (nan, nan)], dtype)
    x, expected = np.ascontiguousarray(table.T)
    assert same(interpreted(name, x), expected), list(zip(x, interpreted(name, x), expected))
    assert same(native(name, x.dtype.itemsize * 8)[0](x), expected)


def test_erfc_for_16_bits_is_short_of_digits() -> None:
    x = np.linspace(-9.5, 9.5, 4001, dtype=np.float32)
    found, true = interpreted("short_erfc", x), np.array([math.erfc(float(v)) for v in x])
    normal = x <= 9.194
    assert np.abs(found[normal] / true[normal] - 1).max() < 2**-15 and not found[~normal].any()
    x, expected = np.array([(-inf, 2), (inf, 0), (nan, nan)], np.float32).T.copy()
    assert same(interpreted("short_erfc", x), expected)


@pytest.mark.parametrize("dtype, digits, least", [(ml_dtypes.bfloat16, 8, -126), (np.float16, 11, -14)])
def test_every_value_of_gelu(dtype: Any, digits: int, least: int) -> None:
    """In 16 bits it is as if rounded once, but 0 below -13, where bfloat16 has some last normal numbers."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    x = x[np.isfinite(x) & (x >= -13)]
    found = np.asarray(mlc.compile(mlc.nn.functional.gelu)(mlc.tensor(x))).astype(np.float64)
    true = np.array([v * math.erfc(-v / math.sqrt(2)) / 2 for v in x.astype(np.float64)])
    exponent = np.maximum(np.frexp(true)[1] - 1, least)
    assert (np.abs(found - true) / np.ldexp(1.0, exponent - digits + 1)).max() < 0.53


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", BINARY)
def test_specials_of_two_arguments(name: str, dtype: Float) -> None:
    """All pairs of special values, against C's function (by numpy, since Python's pow raises for some)."""
    values: Array = np.array([0.0, -0.0, 1, -1, inf, -inf, nan, 2, -2, 3, -3, 0.5, -0.5, 1.5, -1.5, 1e30, -1e30,
                       16777215, -16777217, 2.0**-140, -(2.0**-140), np.finfo(dtype).max], dtype)
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = FLOAT64[name](x.astype(np.float64), y.astype(np.float64)).astype(dtype)
    result = interpreted(name, x, y)
    assert same(native(name, x.dtype.itemsize * 8)[0](x, y), result)
    if dtype is np.float32:
        assert same(result, expected)
        return
    exact_values = ~np.isfinite(expected) | np.isin(np.abs(expected), (0, 1))
    assert same(result[exact_values], expected[exact_values])
    assert np.allclose(result, expected, rtol=4e-16, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", [*UNARY, "pow"])
def test_native_code_gives_the_bits_of_numpy(name: str) -> None:
    args32: tuple[Array, ...] = (np.ascontiguousarray(samples32()[::7]),)
    args64: tuple[Array, ...] = (samples64(4000, 740),)
    if name in BINARY:
        args32, args64 = (arguments(name, 40000, dtype) for dtype in (np.float32, np.float64))
    for bits, args in ((32, args32), (64, args64)):
        assert same(native(name, bits)[0](*args), interpreted(name, *args))


@pytest.mark.parametrize(("name", "limit"), [("exp", 21), ("log", 33), ("tanh", 34), ("sigmoid", 36), ("erf", 36)])
def test_operation_counts(name: str, limit: int) -> None:
    """Throughput follows from the number of operations, so an increase must be deliberate."""
    assert native(name, 32)[1] <= limit


def chunks(size: int = 2**22, step: int = 61) -> Iterator[Array]:
    """One in so many floats, of every exponent and with all ends of mantissas; all of them (1) take hours."""
    for start in range(0, 2**32, size * step):
        yield (np.arange(start, start + size * step, step) % 2**32).astype(np.uint32).view(np.float32)


CHUNK = 2**22
RUNNABLE = [name for name, level in LEVELS.items() if host().runs(level)]


@cache
def at_level(name: str, level: str) -> Entry:
    """The operation `name` on CHUNK floats, compiled as programs are, for a level of machines."""
    type, target = f"tensor<{CHUNK}xf32>", LEVELS[level]
    module = parse_module(f"""func.func @main(%x: {type}) -> {type} {{
      %0 = tensor.{name} %x : {type}
      func.return %0 : {type}
    }}""")
    return build(pipeline.lower(module, "llvm", target.machine), target).entry("main")


TELLING = ("exp", "log", "erfc")


@pytest.mark.parametrize("name", [n if n in TELLING else pytest.param(n, marks=pytest.mark.slow) for n in UNARY])
def test_levels_give_the_same_bits(name: str) -> None:
    x = np.resize(samples32(), CHUNK)
    results = [at_level(name, level).call([x])[0] for level in RUNNABLE]
    assert all(same(r, results[0]) for r in results)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_f32_error_over_floats_of_every_size(name: str) -> None:
    """The error, and the same bits at every level; `pytest -s` prints it."""
    worst = 0.0
    for x in chunks(CHUNK):
        results = [at_level(name, level).call([x])[0] for level in RUNNABLE]
        assert all(same(r, results[0]) for r in results)
        with np.errstate(all="ignore"):
            worst = max(worst, ulp_error32(results[0], FLOAT64[name](x.astype(np.float64))))
    print(f"{name}: {worst:.4f} ULP over one in 61 of all floats; the same bits at {', '.join(RUNNABLE)}")
    assert worst <= BOUND32[name]


# exact.fma


def fused(a: float, b: float, c: float) -> float:
    """a * b + c by fractions, rounded once to float64; finite arguments."""
    value = Fraction(a) * Fraction(b) + Fraction(c)
    if value == 0:
        return a * b + c if a == 0 or b == 0 else 0.0
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def fma_arguments(count: int) -> Iterator[tuple[Array, Array, Array]]:
    """Any bits; near cancellation; ties; products and sums at the edge of the denormals; the ends of the range."""
    random = np.random.default_rng(3)
    a, b, c = random.integers(0, 2**64, (3, count), dtype=np.uint64).view(np.float64)
    yield a, b, c
    a, b, c = random.standard_normal((3, count))
    close = np.ldexp(random.integers(-3, 4, count).astype(np.float64), -random.integers(20, 60, count))
    yield a, b, -a * b * (1 + close)
    coarse = np.round(a * 4096) / 4096
    yield coarse, b, np.ldexp(coarse * b, random.integers(-110, 110, count))
    half = random.integers(-570, -500, count)
    yield np.ldexp(a, half), np.ldexp(b, half), np.ldexp(c, random.integers(-1080, -980, count))
    edge = np.array([0.0, -0.0, 1, -1, 5e-324, -5e-324, 2.0**-1022, 1.7976931348623157e308, -1.7976931348623157e308, 3])
    a, b, c = random.choice(edge, (3, count))
    yield a, b, c


def test_fma_of_f64_is_exact() -> None:
    for a, b, c in fma_arguments(4000):
        finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
        a, b, c = a[finite], b[finite], c[finite]
        expected = np.array([fused(float(x), float(y), float(z)) for x, y, z in zip(a, b, c)])
        assert same(exact.fma(a, b, c), expected)


def test_fma_of_f32_is_exact() -> None:
    """A float64 sum of an exact product can be a tie of float32 that the true sum is not: 2^-60 must count."""
    x, tie = np.float32(1 + 2.0**-12), np.float32(2.0**-60)
    assert exact.fma(np.array(x), np.array(x), np.array(tie)) == np.float32(1 + 2.0**-11 + 2.0**-23)
    assert exact.fma(np.array(x), np.array(x), np.array(-tie)) == np.float32(1 + 2.0**-11)
    random = np.random.default_rng(4)
    a, b, c = (random.integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32) for _ in range(3))
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = a[finite], b[finite], c[finite]
    with np.errstate(over="ignore"):
        wide = exact.fma(*(v.astype(np.float64) for v in (a, b, c)))
        assert np.mean(exact.fma(a, b, c).view(np.int32) == wide.astype(np.float32).view(np.int32)) > 0.999


def test_fma_of_what_is_not_finite() -> None:
    for dtype in (np.float32, np.float64):
        big = float(np.finfo(dtype).max)
        a, b, c = (np.array(v, dtype) for v in ([inf, inf, 0, big, nan, 1, 2, -0.0], [1, 1, inf, 10, 1, 1, 3, 1],
                                                [1, -inf, 1, -inf, 1, inf, 1, -0.0]))
        expected = np.array([inf, nan, nan, -inf, nan, inf, 7, -0.0], dtype)
        assert same(exact.fma(a, b, c), expected)
        assert exact.fma(a[6], b[6], c[6]).shape == ()


def test_fma_refuses_mixed_types() -> None:
    with pytest.raises(TypeError, match="differ"):
        exact.fma(np.zeros(2, np.float32), np.zeros(2), np.zeros(2))
