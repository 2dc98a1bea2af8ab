"""Initial values of parameters, by PyTorch's formulas, and the generator that the random ones come from."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.dtypes import as_dtype
from mlc.frontend.location import user_loc
from mlc.frontend.operands import MAX_ELEMENTS, plain_int
from mlc.frontend.tensor import DTypeLike, Tensor
from mlc.ir.diag import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

Generator = np.random.Generator
Shape = Sequence[int]


class _Default(threading.local):
    shapes_only = False

    def __init__(self) -> None:
        self.generator: Generator = np.random.default_rng()


_default = _Default()


def manual_seed(seed: int) -> Generator:
    """Start this thread's generator anew; modules made after it are the same on every run."""
    _default.generator = np.random.default_rng(seed)
    return _default.generator


def default_generator() -> Generator:
    """This thread's generator."""
    return _default.generator


@contextmanager
def shapes_only() -> Iterator[None]:
    """Within, parameters have types and no numbers: all are one 0, which takes no memory."""
    saved, _default.shapes_only = _default.shapes_only, True
    try:
        yield
    finally:
        _default.shapes_only = saved


def _zeros_of(shape: Shape, dtype: DTypeLike) -> Tensor:
    return Tensor(np.broadcast_to(np.zeros((), as_dtype(dtype).dtype), sizes(shape)))


# -- without structure ------------------------------------------------------------------------------------------------
def uniform(shape: Shape, low: float = 0.0, high: float = 1.0, dtype: DTypeLike = "float32",
            generator: Generator | None = None) -> Tensor:
    """Numbers in [low, high), all equally likely."""
    if _default.shapes_only:
        return _zeros_of(shape, dtype)
    return _tensor((generator or _default.generator).uniform(low, high, sizes(shape)), dtype)


def normal(shape: Shape, mean: float = 0.0, std: float = 1.0, dtype: DTypeLike = "float32",
           generator: Generator | None = None) -> Tensor:
    """Numbers with density e ** (-((x - mean) / std) ** 2 / 2) / (std * sqrt(2 * pi)), in this shape."""
    if _default.shapes_only:
        return _zeros_of(shape, dtype)
    return _tensor((generator or _default.generator).normal(mean, std, sizes(shape)), dtype)


def trunc_normal(shape: Shape, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                 dtype: DTypeLike = "float32", generator: Generator | None = None) -> Tensor:
    """Normally distributed numbers from a to b: those outside are drawn again."""
    if not a < b:
        raise UserError(f"the numbers lie between a = {a} and b = {b}, which is no interval", code="MLC0360",
                        loc=user_loc())
    draw = generator or _default.generator
    below, above = (0.5 * (1 + math.erf((x - mean) / (std * math.sqrt(2)))) for x in (a, b))
    if above - below < 0.01:
        raise UserError(f"less than one number in a hundred of mean {mean} and deviation {std} lies from {a} to {b}",
                        code="MLC0360", loc=user_loc())
    out = draw.normal(mean, std, tuple(shape))
    while (outside := (out < a) | (out > b)).any():
        out[outside] = draw.normal(mean, std, int(outside.sum()))
    return _tensor(out, dtype)


def constant(shape: Shape, value: float, dtype: DTypeLike = "float32") -> Tensor:
    """`value` everywhere."""
    if _default.shapes_only:
        return _zeros_of(shape, dtype)
    return _tensor(np.full(sizes(shape), value, np.float64), dtype)


def zeros(shape: Shape, dtype: DTypeLike = "float32") -> Tensor:
    """result[i] = 0"""
    return constant(shape, 0.0, dtype)


def ones(shape: Shape, dtype: DTypeLike = "float32") -> Tensor:
    """result[i] = 1"""
    return constant(shape, 1.0, dtype)


# -- by the number of inputs and outputs ------------------------------------------------------------------------------
_GAINS = {"linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0,
          "conv_transpose2d": 1.0, "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2),
          "selu": 3 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """What keeps the variance of activations through this function; `param` is the slope of "leaky_relu"."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise UserError(f"nonlinearity = {nonlinearity!r}", code="MLC0360", loc=user_loc(),
                        hint="one of leaky_relu, " + ", ".join(_GAINS))
    return _GAINS[nonlinearity]


def kaiming_uniform(shape: Shape, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    dtype: DTypeLike = "float32", generator: Generator | None = None) -> Tensor:
    """Uniform within gain * sqrt(3 / fan): keeps the variance of what goes through, forward or (fan_out) backward."""
    bound = math.sqrt(3) * calculate_gain(nonlinearity, a) / math.sqrt(max(1, _fan(shape, mode)))
    return uniform(shape, -bound, bound, dtype, generator)


def kaiming_normal(shape: Shape, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                   dtype: DTypeLike = "float32", generator: Generator | None = None) -> Tensor:
    """Normal with deviation gain / sqrt(fan)."""
    return normal(shape, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(max(1, _fan(shape, mode))), dtype, generator)


def xavier_uniform(shape: Shape, gain: float = 1.0, dtype: DTypeLike = "float32",
                   generator: Generator | None = None) -> Tensor:
    """Uniform within gain * sqrt(6 / (inputs + outputs))."""
    bound = gain * math.sqrt(6 / max(1, sum(fans(shape))))
    return uniform(shape, -bound, bound, dtype, generator)


def xavier_normal(shape: Shape, gain: float = 1.0, dtype: DTypeLike = "float32",
                  generator: Generator | None = None) -> Tensor:
    """Normal with deviation gain * sqrt(2 / (inputs + outputs))."""
    return normal(shape, 0.0, gain * math.sqrt(2 / max(1, sum(fans(shape)))), dtype, generator)


def fans(shape: Shape) -> tuple[int, int]:
    """(inputs, outputs) of one element that a weight [out, in, *kernel] computes."""
    if len(shape) < 2:
        raise UserError(f"a weight of shape {list(shape)} has no inputs and outputs to count", code="MLC0364",
                        loc=user_loc())
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def _fan(shape: Shape, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise UserError(f"mode = {mode!r}", code="MLC0360", loc=user_loc(), hint='use "fan_in" or "fan_out"')
    return fans(shape)[mode == "fan_out"]


# -- with structure ---------------------------------------------------------------------------------------------------
def orthogonal(shape: Shape, gain: float = 1.0, dtype: DTypeLike = "float32",
               generator: Generator | None = None) -> Tensor:
    """gain times a matrix [shape[0], the rest] with orthonormal rows, or columns if it has more rows than columns."""
    fans(shape)
    rows, columns = shape[0], math.prod(shape[1:])
    a = (generator or _default.generator).normal(size=(max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(a)
    q *= np.sign(np.diag(r))                               # so that all such matrices are equally likely
    return _tensor(gain * (q if rows >= columns else q.T).reshape(tuple(shape)), dtype)


def eye(shape: Shape, dtype: DTypeLike = "float32") -> Tensor:
    """1 on the diagonal of a matrix, 0 elsewhere."""
    _rank(shape, (2,))
    return _tensor(np.eye(shape[0], shape[1]), dtype)


def dirac(shape: Shape, groups: int = 1, dtype: DTypeLike = "float32") -> Tensor:
    """The weight of a convolution that hands on each input channel, for as many as there are."""
    _rank(shape, (3, 4, 5))
    if shape[0] % groups:
        raise UserError(f"{shape[0]} output channels are not {groups} equal groups", code="MLC0358", loc=user_loc())
    out = np.zeros(tuple(shape))
    size = shape[0] // groups
    middle = tuple(k // 2 for k in shape[2:])
    for g in range(groups):
        for c in range(min(size, shape[1])):
            out[(g * size + c, c, *middle)] = 1
    return _tensor(out, dtype)


def sparse(shape: Shape, sparsity: float, std: float = 0.01, dtype: DTypeLike = "float32",
           generator: Generator | None = None) -> Tensor:
    """A normally distributed matrix in each of whose columns this fraction of the elements, rounded up, is 0."""
    _rank(shape, (2,))
    draw = generator or _default.generator
    out = draw.normal(0.0, std, tuple(shape))
    zeros = math.ceil(sparsity * shape[0])
    for column in range(shape[1]):
        out[draw.permutation(shape[0])[:zeros], column] = 0
    return _tensor(out, dtype)


def _rank(shape: Shape, ranks: tuple[int, ...]) -> None:
    if len(shape) not in ranks:
        raise UserError(f"the shape {list(shape)} has {len(shape)} dimensions, expected "
                        f"{' or '.join(map(str, ranks))}", code="MLC0364", loc=user_loc())


def sizes(shape: Shape) -> tuple[int, ...]:
    """The sizes of a parameter, which are integers of at least 0."""
    out = tuple(plain_int(n, "size") for n in shape)
    if any(n < 0 for n in out):
        raise UserError(f"{list(out)} is no shape: sizes are not negative", code="MLC0358", loc=user_loc())
    if math.prod(n for n in out if n) >= MAX_ELEMENTS:
        raise UserError(f"shape {list(out)} is beyond all memory", code="MLC0328", loc=user_loc())
    return out


def bound(inputs: int) -> float:
    """1 / sqrt(inputs): the layers of torch.nn begin uniformly within it."""
    return 1 / math.sqrt(max(1, *sizes((inputs,))))


def _tensor(array: Any, dtype: DTypeLike) -> Tensor:
    return Tensor(np.asarray(array).astype(as_dtype(dtype).dtype))
