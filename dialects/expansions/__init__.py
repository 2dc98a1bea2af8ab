"""Elementary functions as IEEE arithmetic: exp, log, tanh, erf, sin, pow ... without calls, branches or gathers.

Each function is written once, over `Arithmetic`: with numpy behind it, it computes; with a builder behind it, it emits
ops on scalars, vectors or tensors. Every primitive is either exact or correctly rounded, so both give the same bits
(a NaN is a NaN: its payload is not part of the promise).

The errors stated are the largest |result - true value| in units of the last place of the true value: for f32 over all
2^32 inputs (pow: 2 * 10^7 pairs), for f64 over 10^7 samples. `tests/test_expansions.py` repeats both on fewer points
and has the exhaustive one as a slow test. Denormals are neither flushed nor lost. Counts of ops, f32 and f64, leave
out constants, bit casts and negations. The polynomials come from `tools/fit_polynomials.py`, which says what each is
fitted to and how.
"""


from mlc.dialects.expansions.arithmetic import Arithmetic
from mlc.dialects.expansions.exponential import erf, exp, exp2, expm1, sigmoid, tanh
from mlc.dialects.expansions.logarithm import log, log1p, log2
from mlc.dialects.expansions.power import pow, rsqrt
from mlc.dialects.expansions.remainder import floordiv, fmod, rem
from mlc.dialects.expansions.trigonometry import atan, cos, sin

__all__ = ["Arithmetic", "atan", "cos", "erf", "exp", "exp2", "expm1", "floordiv", "fmod", "log", "log1p", "log2",
           "pow", "rem", "rsqrt", "sigmoid", "sin", "tanh"]
