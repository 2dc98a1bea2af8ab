"""Elementary functions as IEEE arithmetic: exp, log, tanh, erf, sin, pow ... without calls, branches or gathers.

Each function is written once, over `Arithmetic`: with numpy behind it, it computes; with a builder behind it, it emits
ops on scalars, vectors or tensors. Every primitive is either exact or correctly rounded, so both give the same bits
(a NaN is a NaN: its payload is not part of the promise).

The errors stated are the largest |result - true value| in units of the last place of the true value, rounded up; the
table in dialects/tensor/ACCURACY.md is measured by `mlc accuracy`, and `tests/test_expansions.py` has the exhaustive
one over all of f32 as a slow test. Denormals are neither flushed nor lost. Counts of ops, f32 and f64, leave
out constants, bit casts and negations. The polynomials come from `tools/fit_polynomials.py`, which says what each is
fitted to and how.
"""


from mlc.dialects.expansions.arithmetic import Arithmetic
from mlc.dialects.expansions.error_function import erf, erfc
from mlc.dialects.expansions.exponential import exp, exp2, expm1, sigmoid, silu, tanh
from mlc.dialects.expansions.hyperbolic import acosh, asinh, atanh, cosh, sinh
from mlc.dialects.expansions.inverse_trigonometry import acos, asin, atan, atan2
from mlc.dialects.expansions.logarithm import log, log1p, log2, log10
from mlc.dialects.expansions.power import hypot, pow, rsqrt
from mlc.dialects.expansions.remainder import floordiv, fmod, rem
from mlc.dialects.expansions.trigonometry import cos, sin, tan

__all__ = ["Arithmetic", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "erfc",
           "exp", "exp2", "expm1", "floordiv", "fmod", "hypot", "log", "log1p", "log2", "log10", "pow", "rem",
           "rsqrt", "sigmoid", "silu", "sin", "sinh", "tan", "tanh"]
