

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
