"""Elementwise operators: arithmetic, comparisons, bits, activation functions."""

from __future__ import annotations

from typing import Any

from mlc.frontend.fx.table import renamed, row, same
from mlc.frontend.tensor import OPERATIONS as O

same("abs", "acos", "acosh", "add", "addcdiv", "addcmul", "angle", "asin", "asinh", "atan", "atan2", "atanh",
     "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil",
     "clamp", "clamp_max", "clamp_min", "complex", "copysign", "cos", "cosh", "deg2rad", "digamma", "div",
     "eq", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac",
     "frexp", "gcd", "ge", "gelu", "glu", "gt", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "heaviside",
     "hypot", "i0", "igamma", "igammac", "imag", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "lcm", "ldexp",
     "le", "leaky_relu", "lerp", "lgamma", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logical_and",
     "logical_not", "logical_or", "logical_xor", "logit", "lt", "maximum", "minimum", "mish", "mul", "mvlgamma",
     "nan_to_num", "ne", "neg", "nextafter", "polar", "pow", "prelu", "rad2deg", "real", "reciprocal",
     "relu", "relu6", "remainder", "round", "rsqrt", "rsub", "sgn", "sigmoid", "sign", "signbit", "silu", "sin", "sinc",
     "sinh", "softplus", "softshrink", "sqrt", "square", "sub", "tan", "tanh", "threshold", "trunc", "view_as_complex",
     "view_as_real", "where", "xlogy")
renamed(special_modified_bessel_i0="i0", special_modified_bessel_i1="special.i1", conj_physical="conj", _conj="conj",
        _conj_physical="conj", fix="trunc",
        true_divide="div", multiply="mul", subtract="sub", negative="neg", absolute="abs",
        **{f"special_{name}": f"special.{name}" for name in (
            "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t",
            "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "entr", "erfcx",
            "hermite_polynomial_h", "hermite_polynomial_he", "i0e", "i1", "i1e", "laguerre_polynomial_l",
            "legendre_polynomial_p", "log_ndtr", "modified_bessel_k0", "modified_bessel_k1", "ndtri",
            "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t",
            "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w",
            "spherical_bessel_j0", "xlog1py", "zeta")})


@row("elu")
def elu(x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    """scale * (x if x > 0 else alpha * (exp(input_scale * x) - 1)), of which selu and celu are cases, too."""
    if scale == 1 and input_scale == 1:
        return O["elu"](x, alpha)
    return O["where"](O["gt"](x, 0), x * scale, O["expm1"](x * input_scale) * (alpha * scale))


@row("polygamma")
def polygamma(n: int, x: Any) -> Any:
    return O["polygamma"](n, x)


@row("masked_fill")
def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return O["masked_fill"](x, mask, value)


@row("_prelu_kernel")
def prelu(x: Any, weight: Any) -> Any:
    return O["where"](O["gt"](x, 0), x, weight * x)
