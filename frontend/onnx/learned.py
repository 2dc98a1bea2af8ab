"""Operators of classical machine learning (`ai.onnx.ml`), and steps of optimisers (`ai.onnx.preview.training`)."""

from __future__ import annotations

from typing import Any

from mlc.frontend.onnx.table import row
from mlc.frontend.tensor import OPERATIONS as O

ML, TRAINING = "ai.onnx.ml", "ai.onnx.preview.training"


@row("Binarizer", domain=ML)
def binarizer(x: Any, *, threshold: float = 0.0) -> Any:
    return O["cast"](O["gt"](x, threshold), x.dtype)


@row("ArrayFeatureExtractor", domain=ML)
def feature(x: Any, at: Any) -> Any:
    return O["index_select"](x, x.ndim - 1, O["reshape"](at, (-1,)))


@row("Scaler", domain=ML)
def scaler(x: Any, *, offset: Any = None, scale: Any = None) -> Any:
    from numpy import array, float32
    x = O["cast"](x, "float32")
    x = x if offset is None else x - array(offset, float32)
    return x if scale is None else x * array(scale, float32)


def _each(tensors: tuple[Any, ...], parts: int) -> list[tuple[Any, ...]]:
    """The tensors of each parameter: all parameters, then all gradients, and so on."""
    count = len(tensors) // parts
    if count * parts != len(tensors):
        raise ValueError(f"{len(tensors)} tensors, which are no multiple of {parts}")
    return [tensors[k::count] for k in range(count)]


def _results(found: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(x for group in zip(*found) for x in group)


@row("Adagrad", domain=TRAINING)
def adagrad(rate: Any, step: Any, *tensors: Any, decay_factor: float = 0.0, epsilon: float = 0.0,
            norm_coefficient: float = 0.0) -> Any:
    rate = rate / (1 + O["cast"](step, rate.dtype) * decay_factor)

    def updated(x: Any, g: Any, squares: Any) -> tuple[Any, ...]:
        g = g + x * norm_coefficient
        squares = squares + g * g
        return x - rate * g / (O["sqrt"](squares) + epsilon), squares
    return _results([updated(*group) for group in _each(tensors, 3)])


@row("Momentum", domain=TRAINING)
def momentum(rate: Any, step: Any, *tensors: Any, alpha: float, beta: float, mode: str, norm_coefficient: float) -> Any:
    first = O["eq"](step, 0)

    def updated(x: Any, g: Any, v: Any) -> tuple[Any, ...]:
        g = g + x * norm_coefficient
        v = v * alpha + g * O["where"](first, 1.0, beta)
        return x - rate * (g + v * alpha if mode == "nesterov" else v), v
    return _results([updated(*group) for group in _each(tensors, 3)])


@row("Adam", domain=TRAINING)
def adam(rate: Any, step: Any, *tensors: Any, alpha: float = 0.9, beta: float = 0.999, epsilon: float = 0.0,
         norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0) -> Any:
    t = O["cast"](step, rate.dtype)
    corrected = O["where"](O["gt"](step, 0), rate * O["sqrt"](1 - O["pow"](beta, t)) / (1 - O["pow"](alpha, t)), rate)

    def updated(x: Any, g: Any, v: Any, h: Any) -> tuple[Any, ...]:
        g = g + x * norm_coefficient
        v, h = v * alpha + g * (1 - alpha), h * beta + g * g * (1 - beta)
        return (x - corrected * v / (O["sqrt"](h) + epsilon)) * (1 - norm_coefficient_post), v, h
    return _results([updated(*group) for group in _each(tensors, 4)])
