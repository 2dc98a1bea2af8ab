"""Activations that write to their input, as PyTorch names them."""

from __future__ import annotations

from mlc.frontend.functions.neural.dropping import rrelu
from mlc.frontend.functions.neural.piecewise import hardtanh, leaky_relu, relu, threshold
from mlc.frontend.functions.neural.smooth import celu, elu, selu
from mlc.frontend.functions.variant import Function, variant


def _writing(f: Function, more: str, result: str) -> Function:
    name = f.__name__
    return variant(f, f"{name}_", f"`{name}` written to the input, a tensor, which is the result.",
                   f"nn.functional.{name}_(mlc.tensor([-1.0, 2.0]){more}) -> tensor([{result}], dtype=mlc.float32)",
                   inplace=True)


celu_ = _writing(celu, "", "-0.63212055,  2.        ")
elu_ = _writing(elu, "", "-0.63212055,  2.        ")
hardtanh_ = _writing(hardtanh, "", "-1.,  1.")
leaky_relu_ = _writing(leaky_relu, "", "-0.01,  2.  ")
relu_ = _writing(relu, "", "0., 2.")
rrelu_ = _writing(rrelu, ", 0.5, 0.5", "-0.5,  2. ")
selu_ = _writing(selu, "", "-1.1113307,  2.101402 ")
threshold_ = _writing(threshold, ", 1.0, 3.0", "3., 2.")
