"""Elementwise operators: arithmetic, comparisons, bits, activation functions, casts."""

from __future__ import annotations

import functools
import math
from typing import Any

from mlc.frontend.onnx.table import row, same
from mlc.frontend.onnx.values import axis_of, dtype_of, refuse
from mlc.frontend.tensor import OPERATIONS as O

same("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "IsNaN",
     "Log", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Mish",
     Not="logical_not", BitwiseAnd="bitwise_and", BitwiseOr="bitwise_or", BitwiseXor="bitwise_xor",
     BitwiseNot="bitwise_not", Where="where")
same(Add="add", Sub="sub", Mul="mul", And="logical_and", Or="logical_or", Xor="logical_xor", Equal="eq", Less="lt",
     Greater="gt", LessOrEqual="le", GreaterOrEqual="ge", since=7)


def _aligned(x: Any, y: Any, broadcast: int, axis: int | None) -> Any:
    """The second operand of a binary operator before version 7: its axes stand for those of x from `axis` on."""
    if axis is None or not broadcast:
        return y
    return O["reshape"](y, (*y.shape, *(1,) * (x.ndim - axis_of(axis, x.ndim) - y.ndim)))


def _before_7(name: str, function: str) -> None:
    @row(name)
    def binary(x: Any, y: Any, *, broadcast: int = 0, axis: int | None = None, consumed_inputs: Any = None) -> Any:
        return O[function](x, _aligned(x, y, broadcast, axis))


for _name, _function in {"Add": "add", "Sub": "sub", "Mul": "mul", "And": "logical_and", "Or": "logical_or",
                         "Xor": "logical_xor", "Equal": "eq", "Less": "lt", "Greater": "gt"}.items():
    _before_7(_name, _function)


@row("Div")
def div_before_7(x: Any, y: Any, *, broadcast: int = 0, axis: int | None = None, consumed_inputs: Any = None) -> Any:
    return div(x, _aligned(x, y, broadcast, axis))


@row("Div", since=7)
def div(x: Any, y: Any) -> Any:
    """Of integers, rounded toward zero."""
    return O["div"](x, y) if x.dtype.is_floating_point or x.dtype.is_complex else O["div"](x, y, rounding_mode="trunc")


@row("Mod")
def mod(x: Any, y: Any, *, fmod: int = 0) -> Any:
    return O["fmod" if fmod else "remainder"](x, y)


@row("Pow")
def pow_before_7(x: Any, y: Any, *, broadcast: int = 0, axis: int | None = None) -> Any:
    return power(x, _aligned(x, y, broadcast, axis))


@row("Pow", since=7)
def power(x: Any, y: Any) -> Any:
    """In the type of x. Integers to the power of floats are computed in f64, as in onnxruntime."""
    base = O["cast"](x, "float64") if y.dtype.is_floating_point and not x.dtype.is_floating_point else x
    return O["cast"](O["pow"](base, y), x.dtype)


def _over_all(name: str, function: str) -> None:
    @row(name)
    def reduced(*xs: Any, consumed_inputs: Any = None) -> Any:
        return functools.reduce(O[function], xs)


for _name, _function in {"Max": "maximum", "Min": "minimum", "Sum": "add"}.items():
    _over_all(_name, _function)


@row("Mean")
def mean(*xs: Any, consumed_inputs: Any = None) -> Any:
    return O["div"](functools.reduce(O["add"], xs), len(xs))


@row("Cast")
def cast(x: Any, *, to: int | str, saturate: int = 1, round_mode: str = "up") -> Any:
    if isinstance(to, str):
        to = {"FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "STRING": 8,
              "BOOL": 9, "FLOAT16": 10, "DOUBLE": 11, "UINT32": 12, "UINT64": 13}.get(to, 0)
    return O["cast"](x, dtype_of(to))


@row("CastLike")
def cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up") -> Any:
    return O["cast"](x, like.dtype)


@row("BitCast")
def bit_cast(x: Any, *, to: int) -> Any:
    wanted = dtype_of(to)
    return x if wanted is x.dtype else O["bitcast"](x, wanted)


@row("Clip")
def clip_by_numbers(x: Any, *, min: float | None = None, max: float | None = None, consumed_inputs: Any = None) -> Any:
    return clip(x, min, max)


@row("Clip", since=11)
def clip(x: Any, least: Any = None, most: Any = None) -> Any:
    if least is not None:
        x = O["maximum"](x, least)
    return x if most is None else O["minimum"](x, most)


@row("IsInf")
def is_inf(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    if detect_negative and detect_positive:
        return O["isinf"](x)
    if detect_negative or detect_positive:
        return O["isneginf" if detect_negative else "isposinf"](x)
    return O["zeros_like"](x, dtype="bool")


@row("BitShift")
def bit_shift(x: Any, n: Any, *, direction: str) -> Any:
    if direction not in ("LEFT", "RIGHT"):
        refuse(f"a shift in the direction {direction!r}")
    return O["bitwise_left_shift" if direction == "LEFT" else "bitwise_right_shift"](x, n)


@row("Elu")
def elu(x: Any, *, alpha: float = 1.0, consumed_inputs: Any = None) -> Any:
    return O["where"](O["gt"](x, 0), x, O["expm1"](x) * alpha)


@row("Celu")
def celu(x: Any, *, alpha: float = 1.0) -> Any:
    return O["celu"](x, alpha)


@row("Selu")
def selu(x: Any, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875,
         consumed_inputs: Any = None) -> Any:
    return O["where"](O["gt"](x, 0), x, O["expm1"](x) * alpha) * gamma


@row("LeakyRelu")
def leaky_relu(x: Any, *, alpha: float = 0.01, consumed_inputs: Any = None) -> Any:
    return O["where"](O["lt"](x, 0), x * alpha, x)


@row("PRelu")
def prelu_before_7(x: Any, slope: Any, *, consumed_inputs: Any = None) -> Any:
    if slope.ndim == 1 and x.ndim > 1 and slope.shape[0] != 1:
        slope = O["reshape"](slope, (*slope.shape, *(1,) * (x.ndim - 2)))
    return prelu(x, slope)


@row("PRelu", since=7)
def prelu(x: Any, slope: Any) -> Any:
    return O["where"](O["lt"](x, 0), x * slope, x)


@row("ThresholdedRelu")
def thresholded_relu(x: Any, *, alpha: float = 1.0) -> Any:
    return O["where"](O["gt"](x, alpha), x, O["zeros_like"](x))


@row("HardSigmoid")
def hard_sigmoid(x: Any, *, alpha: float = 0.2, beta: float = 0.5, consumed_inputs: Any = None) -> Any:
    return O["clamp"](x * alpha + beta, 0, 1)


@row("HardSwish")
def hard_swish(x: Any) -> Any:
    return x * O["clamp"](x / 6 + 0.5, 0, 1)


@row("Softsign")
def softsign(x: Any) -> Any:
    return x / (O["abs"](x) + 1)


@row("Swish")
def swish(x: Any, *, alpha: float = 1.0) -> Any:
    return x * O["sigmoid"](x * alpha)


@row("Gelu")
def gelu(x: Any, *, approximate: str = "none") -> Any:
    return O["gelu"](x, approximate)


@row("Shrink")
def shrink(x: Any, *, lambd: float = 0.5, bias: float = 0.0) -> Any:
    """Of integers, the sums with a bias that is none are rounded toward zero."""
    zero, dtype = O["zeros_like"](x), x.dtype
    nearer, farther = O["lt"](x, -lambd), O["gt"](x, lambd)
    if not dtype.is_floating_point:
        x, bias = (x, int(bias)) if bias.is_integer() else (O["cast"](x, "float64"), bias)
    return O["where"](nearer, O["cast"](x + bias, dtype), O["where"](farther, O["cast"](x - bias, dtype), zero))


@row("Softplus")
def softplus(x: Any) -> Any:
    """Of all numbers: mlc's function takes x itself where it is large."""
    return O["softplus"](x, 1.0, math.inf)


@row("Dropout")
def dropout_by_attributes(x: Any, *, ratio: float = 0.5, is_test: int = 0, consumed_inputs: Any = None,
                          outputs: int) -> Any:
    return (x, O["ones_like"](x, dtype="bool")) if outputs > 1 else x


@row("Dropout", since=12, known=("training_mode", "ratio"))
def dropout(x: Any, ratio: Any = None, training_mode: Any = None, *, seed: int | None = None, outputs: int) -> Any:
    if training_mode is not None and bool(training_mode) and (ratio is None or float(ratio) != 0):
        refuse("dropout in training draws random numbers", "export the model for inference")
    return (x, O["ones_like"](x, dtype="bool")) if outputs > 1 else x
