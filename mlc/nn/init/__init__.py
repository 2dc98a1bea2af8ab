"""Initial values of parameters, by PyTorch's formulas: new tensors (`normal`), or written into a tensor (`normal_`).

A function without an underscore takes a shape, and a key where it draws; one with an underscore overwrites a tensor
outside of the graph and draws from the default generator.

Example:
    >>> nn.init.constant((2,), 0.5)
    tensor([0.5, 0.5], dtype=mlc.float32)
    >>> nn.init.eye_(mlc.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]], dtype=mlc.float32)
"""

from mlc.frontend.generator import Generator as Generator
from mlc.nn.init.distributions import constant, normal, ones, trunc_normal, uniform, zeros
from mlc.nn.init.in_place import (
    constant_,
    dirac_,
    eye_,
    kaiming_normal_,
    kaiming_uniform_,
    normal_,
    ones_,
    orthogonal_,
    sparse_,
    trunc_normal_,
    uniform_,
    xavier_normal_,
    xavier_uniform_,
    zeros_,
)
from mlc.nn.init.scaled import (
    bound,
    calculate_gain,
    fans,
    kaiming_normal,
    kaiming_uniform,
    xavier_normal,
    xavier_uniform,
)
from mlc.nn.init.shapes import Shape as Shape
from mlc.nn.init.shapes import shapes_only, sizes
from mlc.nn.init.structured import dirac, eye, orthogonal, sparse

__all__ = [
    "bound",
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "fans",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "shapes_only",
    "sizes",
    "sparse",
    "sparse_",
    "trunc_normal",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros",
    "zeros_",
]
