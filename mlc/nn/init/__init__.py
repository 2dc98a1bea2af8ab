"""Initial values of parameters, by PyTorch's formulas, and the generator that the random ones come from."""

from mlc.nn.init.distributions import constant, normal, ones, trunc_normal, uniform, zeros
from mlc.nn.init.generator import Generator as Generator
from mlc.nn.init.generator import default_generator, manual_seed, shapes_only
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
from mlc.nn.init.shapes import sizes
from mlc.nn.init.structured import dirac, eye, orthogonal, sparse

__all__ = [
    "bound",
    "calculate_gain",
    "constant",
    "default_generator",
    "dirac",
    "eye",
    "fans",
    "kaiming_normal",
    "kaiming_uniform",
    "manual_seed",
    "normal",
    "ones",
    "orthogonal",
    "shapes_only",
    "sizes",
    "sparse",
    "trunc_normal",
    "uniform",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]
