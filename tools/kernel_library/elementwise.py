"""Elementwise operations of the kernel library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlc
from mlc import nn

F = nn.functional
SHAPES = ((5,), (5, 6), (1, 6), (5, 6, 7), (1, 6, 7), (5, 6, 7, 8), (1, 6, 7, 8))
RECORDED: tuple[Callable[[Any], Any], ...] = (
    F.relu, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.silu, mlc.tanh, mlc.sigmoid, mlc.exp, lambda x: x ** 2,
    lambda x: x * 2.0, lambda x: x + 1.0, lambda x: 1.0 - x, lambda x: x / 2.0, lambda x: -x)
"""Those whose gradients are common."""
OTHERS: tuple[Callable[[Any], Any], ...] = (
    nn.ReLU(), nn.GELU(), nn.SiLU(), nn.Tanh(), nn.Sigmoid(), mlc.log, mlc.sqrt, mlc.rsqrt, mlc.abs, mlc.sin, mlc.cos,
    lambda x: x - 1.0, lambda x: x > 0.0, lambda x: x < 0.0, lambda x: x.clone(), lambda x: x.float())
BINARY: tuple[Callable[[Any, Any], Any], ...] = (mlc.add, mlc.sub, mlc.mul, mlc.div)


def elementwise() -> None:
    """Functions of one operand and of two, the second of the same shape, a row, or a number for each channel."""
    for shape in SHAPES:
        x = mlc.ones(shape).requires_grad_()
        for f in RECORDED:
            out = f(x)
            out.backward(mlc.ones_like(out))
        with mlc.no_grad():
            for f in (*RECORDED, *OTHERS):
                f(x)
        others = [mlc.ones(shape), mlc.ones(shape[-1:]), mlc.ones(*shape[:2], *[1] * len(shape[2:])),
                  mlc.ones(*shape[:-1], 1)]
        for binary in BINARY:
            for y in {y.shape: y for y in others}.values():
                out = binary(x, y.requires_grad_())
                out.backward(mlc.ones_like(out))
