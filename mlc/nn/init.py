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
    """Seed this thread's generator of initial values and of the keys of dropout.

    Unlike torch.manual_seed it has no part in `mlc.random`, whose functions take keys.

    Args:
        seed: Integer of at least 0.

    Returns:
        The new generator, a numpy.random.Generator.

    Raises:
        UserError: `seed` is negative (MLC0360).
        UserTypeError: `seed` is no integer (MLC0355).

    Example:
        >>> _ = mlc.manual_seed(0)
        >>> nn.Linear(1, 2).bias
        tensor([-0.918053  , -0.96694475], dtype=mlc.float32)
        >>> _ = mlc.manual_seed(0)
        >>> nn.Linear(1, 2).bias
        tensor([-0.918053  , -0.96694475], dtype=mlc.float32)
    """
    if plain_int(seed, "seed") < 0:
        raise UserError(f"seed = {seed}, expected at least 0", code="MLC0360", loc=user_loc())
    _default.generator = np.random.default_rng(seed)
    return _default.generator


def default_generator() -> Generator:
    """This thread's generator, which modules draw their initial values from.

    Returns:
        A numpy.random.Generator; before `mlc.manual_seed` one that the operating system has seeded.

    Example:
        >>> mlc.manual_seed(0) is nn.init.default_generator()
        True
    """
    return _default.generator


@contextmanager
def shapes_only() -> Iterator[None]:
    """Context in which parameters have shapes and dtypes, but all elements are one 0 that takes no memory.

    It makes large models quickly, to count their parameters or to load a state into them.

    Returns:
        A context manager.

    Example:
        >>> with nn.init.shapes_only():
        ...     model = nn.Linear(10**5, 10**5)
        >>> model.num_parameters()
        10000100000
    """
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
    """Uniform distribution: numbers in [low, high).

    Args:
        shape: Sizes of the result.
        low: Lower bound.
        high: Upper bound.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for that of `mlc.manual_seed`.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: A size is negative (MLC0358), or the shape is too large (MLC0328).

    Example:
        >>> nn.init.uniform((2, 3), -1.0, 1.0).shape
        (2, 3)
    """
    if _default.shapes_only:
        return _zeros_of(shape, dtype)
    return _tensor((generator or _default.generator).uniform(low, high, sizes(shape)), dtype)


def normal(shape: Shape, mean: float = 0.0, std: float = 1.0, dtype: DTypeLike = "float32",
           generator: Generator | None = None) -> Tensor:
    """Normal distribution: numbers of density exp(-((x - mean) / std)**2 / 2) / (std * sqrt(2 * pi)).

    Args:
        shape: Sizes of the result.
        mean: Mean.
        std: Standard deviation.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for that of `mlc.manual_seed`.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: A size is negative (MLC0358), or the shape is too large (MLC0328).

    Example:
        >>> nn.init.normal((2, 3), std=0.02).shape
        (2, 3)
    """
    if _default.shapes_only:
        return _zeros_of(shape, dtype)
    return _tensor((generator or _default.generator).normal(mean, std, sizes(shape)), dtype)


def trunc_normal(shape: Shape, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                 dtype: DTypeLike = "float32", generator: Generator | None = None) -> Tensor:
    """Truncated normal distribution: numbers of `normal` in [a, b]; others are drawn again.

    Args:
        shape: Sizes of the result.
        mean: Mean before the truncation.
        std: Standard deviation before the truncation.
        a: Lower bound, in absolute terms.
        b: Upper bound.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for that of `mlc.manual_seed`.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: a is not below b, or less than one number in a hundred lies between them (MLC0360).

    Example:
        >>> nn.init.trunc_normal((100,)).abs().max() <= 2
        tensor(True, dtype=mlc.bool)
    """
    if not a < b:
        raise UserError(f"the numbers lie between a = {a} and b = {b}, which is no interval", code="MLC0360",
                        loc=user_loc())
    draw = generator or _default.generator
    below, above = (0.5 * (1 + math.erf((x - mean) / (std * math.sqrt(2)))) for x in (a, b))
    if above - below < 0.01:
        raise UserError(f"less than one number in a hundred of mean {mean} and deviation {std} lies from {a} to {b}",
                        code="MLC0360", loc=user_loc())
    out = draw.normal(mean, std, sizes(shape))
    while (outside := (out < a) | (out > b)).any():
        out[outside] = draw.normal(mean, std, int(outside.sum()))
    return _tensor(out, dtype)


def constant(shape: Shape, value: float, dtype: DTypeLike = "float32") -> Tensor:
    """Constant: `value` everywhere.

    Args:
        shape: Sizes of the result.
        value: The number.
        dtype: Dtype of the result.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: A size is negative (MLC0358), or the shape is too large (MLC0328).

    Example:
        >>> nn.init.constant((2,), 0.5)
        tensor([0.5, 0.5], dtype=mlc.float32)
    """
    if _default.shapes_only:
        return _zeros_of(shape, dtype)
    return _tensor(np.full(sizes(shape), value, np.float64), dtype)


def zeros(shape: Shape, dtype: DTypeLike = "float32") -> Tensor:
    """Zeros.

    Args:
        shape: Sizes of the result.
        dtype: Dtype of the result.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: A size is negative (MLC0358), or the shape is too large (MLC0328).

    Example:
        >>> nn.init.zeros((2,))
        tensor([0., 0.], dtype=mlc.float32)
    """
    return constant(shape, 0.0, dtype)


def ones(shape: Shape, dtype: DTypeLike = "float32") -> Tensor:
    """Ones.

    Args:
        shape: Sizes of the result.
        dtype: Dtype of the result.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: A size is negative (MLC0358), or the shape is too large (MLC0328).

    Example:
        >>> nn.init.ones((2,))
        tensor([1., 1.], dtype=mlc.float32)
    """
    return constant(shape, 1.0, dtype)


# -- by the number of inputs and outputs ------------------------------------------------------------------------------
_GAINS = {"linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0,
          "conv_transpose2d": 1.0, "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2),
          "selu": 3 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Gain of a nonlinearity: the factor of the deviation of weights that keeps the variance of activations.

    1 for linear maps, convolutions and "sigmoid", 5/3 for "tanh", sqrt(2) for "relu", sqrt(2 / (1 + param**2)) for
    "leaky_relu" and 3/4 for "selu", as in PyTorch. (He, Zhang, Ren and Sun 2015, "Delving Deep into Rectifiers".)

    Args:
        nonlinearity: Name of a function, or of a layer such as "conv2d".
        param: Negative slope of "leaky_relu"; None for 0.01.

    Returns:
        The gain, a float.

    Raises:
        UserError: The name is unknown (MLC0360).

    Example:
        >>> nn.init.calculate_gain("leaky_relu", 1.0)
        1.0
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise UserError(f"nonlinearity = {nonlinearity!r}", code="MLC0360", loc=user_loc(),
                        hint="one of leaky_relu, " + ", ".join(_GAINS))
    return _GAINS[nonlinearity]


def kaiming_uniform(shape: Shape, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    dtype: DTypeLike = "float32", generator: Generator | None = None) -> Tensor:
    """Kaiming initialization: uniform numbers in [-b, b) with b = gain * sqrt(3 / fan).

    (He, Zhang, Ren and Sun 2015, "Delving Deep into Rectifiers", section 2.2.)

    Args:
        shape: Sizes of the result.
        a: Negative slope, where the nonlinearity is "leaky_relu".
        mode: "fan_in" to keep the variance of activations, "fan_out" that of gradients.
        nonlinearity: As of `calculate_gain`.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for that of `mlc.manual_seed`.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: `mode` or `nonlinearity` is unknown (MLC0360), or the shape has fewer than 2 dimensions (MLC0364).

    Example:
        >>> nn.init.kaiming_uniform((4, 3), nonlinearity="relu").shape
        (4, 3)
    """
    bound = math.sqrt(3) * calculate_gain(nonlinearity, a) / math.sqrt(max(1, _fan(shape, mode)))
    return uniform(shape, -bound, bound, dtype, generator)


def kaiming_normal(shape: Shape, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                   dtype: DTypeLike = "float32", generator: Generator | None = None) -> Tensor:
    """Kaiming initialization: normal numbers with deviation gain / sqrt(fan).

    (He, Zhang, Ren and Sun 2015, "Delving Deep into Rectifiers", section 2.2.)

    Args:
        shape: Sizes of the result.
        a: Negative slope, where the nonlinearity is "leaky_relu".
        mode: "fan_in" to keep the variance of activations, "fan_out" that of gradients.
        nonlinearity: As of `calculate_gain`.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for that of `mlc.manual_seed`.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: `mode` or `nonlinearity` is unknown (MLC0360), or the shape has fewer than 2 dimensions (MLC0364).

    Example:
        >>> nn.init.kaiming_normal((4, 3), nonlinearity="relu").shape
        (4, 3)
    """
    return normal(shape, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(max(1, _fan(shape, mode))), dtype, generator)


def xavier_uniform(shape: Shape, gain: float = 1.0, dtype: DTypeLike = "float32",
                   generator: Generator | None = None) -> Tensor:
    """Xavier initialization: uniform numbers in [-b, b) with b = gain * sqrt(6 / (fan_in + fan_out)).

    (Glorot and Bengio 2010, "Understanding the Difficulty of Training Deep Feedforward Neural Networks", equation 16.)

    Args:
        shape: Sizes of the result.
        gain: Factor, such as that of `calculate_gain`.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for that of `mlc.manual_seed`.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: The shape has fewer than 2 dimensions (MLC0364).

    Example:
        >>> nn.init.xavier_uniform((4, 3)).shape
        (4, 3)
    """
    bound = gain * math.sqrt(6 / max(1, sum(fans(shape))))
    return uniform(shape, -bound, bound, dtype, generator)


def xavier_normal(shape: Shape, gain: float = 1.0, dtype: DTypeLike = "float32",
                  generator: Generator | None = None) -> Tensor:
    """Xavier initialization: normal numbers with deviation gain * sqrt(2 / (fan_in + fan_out)).

    (Glorot and Bengio 2010, "Understanding the Difficulty of Training Deep Feedforward Neural Networks", equation 16.)

    Args:
        shape: Sizes of the result.
        gain: Factor, such as that of `calculate_gain`.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for that of `mlc.manual_seed`.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: The shape has fewer than 2 dimensions (MLC0364).

    Example:
        >>> nn.init.xavier_normal((4, 3)).shape
        (4, 3)
    """
    return normal(shape, 0.0, gain * math.sqrt(2 / max(1, sum(fans(shape)))), dtype, generator)


def fans(shape: Shape) -> tuple[int, int]:
    """Fan-in and fan-out of a weight: inputs * kernel elements, and outputs * kernel elements.

    Args:
        shape: Shape [outputs, inputs, *kernel] of the weight.

    Returns:
        The pair of integers.

    Raises:
        UserError: The shape has fewer than 2 dimensions (MLC0364).

    Example:
        >>> nn.init.fans((8, 3, 5, 5))
        (75, 200)
    """
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
    """Orthogonal initialization: gain times a random matrix with orthonormal rows, or columns if these are fewer.

    Dimensions after the first count as one. It is the Q of a QR decomposition of normal numbers, with signs that make
    it uniformly distributed. (Saxe, McClelland and Ganguli 2014, "Exact Solutions to the Nonlinear Dynamics of Learning
    in Deep Linear Neural Networks"; signs: Mezzadri 2007, "How to Generate Random Matrices from the Classical Compact
    Groups".)

    Args:
        shape: Sizes of the result.
        gain: Factor of the matrix.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for that of `mlc.manual_seed`.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: The shape has fewer than 2 dimensions (MLC0364).

    Example:
        >>> w = nn.init.orthogonal((2, 3))
        >>> mlc.allclose(w @ w.T, mlc.eye(2), atol=1e-6)
        True
    """
    fans(shape)
    rows, *rest = sizes(shape)
    columns = math.prod(rest)
    a = (generator or _default.generator).normal(size=(max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(a)
    q *= np.sign(np.diag(r))                               # so that all such matrices are equally likely
    return _tensor(gain * (q if rows >= columns else q.T).reshape(tuple(shape)), dtype)


def eye(shape: Shape, dtype: DTypeLike = "float32") -> Tensor:
    """Identity matrix: 1 on the diagonal, 0 elsewhere.

    Args:
        shape: Sizes of the result, two.
        dtype: Dtype of the result.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: The shape has not 2 dimensions (MLC0364).

    Example:
        >>> nn.init.eye((2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]], dtype=mlc.float32)
    """
    _rank(shape, (2,))
    rows, columns = sizes(shape)
    return _tensor(np.eye(rows, columns), dtype)


def dirac(shape: Shape, groups: int = 1, dtype: DTypeLike = "float32") -> Tensor:
    """Dirac delta: the weight of a convolution that copies input channel c to output channel c of each group.

    Args:
        shape: Shape [outputs, inputs, *kernel] of 3 to 5 dimensions.
        groups: Number of groups of the output channels.
        dtype: Dtype of the result.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: The outputs are not divisible by `groups` (MLC0358), or the number of dimensions is wrong (MLC0364).

    Example:
        >>> nn.init.dirac((1, 1, 3))
        tensor([[[0., 1., 0.]]], dtype=mlc.float32)
    """
    _rank(shape, (3, 4, 5))
    if shape[0] % groups:
        raise UserError(f"{shape[0]} output channels are not {groups} equal groups", code="MLC0358", loc=user_loc())
    out = np.zeros(sizes(shape))
    size = shape[0] // groups
    middle = tuple(k // 2 for k in shape[2:])
    for g in range(groups):
        for c in range(min(size, shape[1])):
            out[(g * size + c, c, *middle)] = 1
    return _tensor(out, dtype)


def sparse(shape: Shape, sparsity: float, std: float = 0.01, dtype: DTypeLike = "float32",
           generator: Generator | None = None) -> Tensor:
    """Sparse initialization: normal numbers, of which in each column ceil(sparsity * rows) are 0.

    (Martens 2010, "Deep Learning via Hessian-free Optimization".)

    Args:
        shape: Sizes of the result, two.
        sparsity: Fraction of zeros, from 0 to 1.
        std: Standard deviation of the others.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for that of `mlc.manual_seed`.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: The shape has not 2 dimensions (MLC0364), or `sparsity` is not in [0, 1] (MLC0360).

    Example:
        >>> (nn.init.sparse((4, 2), 0.5) == 0).sum(0)
        tensor([2, 2], dtype=mlc.int64)
    """
    _rank(shape, (2,))
    draw = generator or _default.generator
    out = draw.normal(0.0, std, sizes(shape))
    if not 0 <= sparsity <= 1:
        raise UserError(f"sparsity = {sparsity} is no fraction", code="MLC0360", loc=user_loc())
    zeros = math.ceil(sparsity * shape[0])
    for column in range(shape[1]):
        out[draw.permutation(shape[0])[:zeros], column] = 0
    return _tensor(out, dtype)


def _rank(shape: Shape, ranks: tuple[int, ...]) -> None:
    if len(shape) not in ranks:
        raise UserError(f"the shape {list(shape)} has {len(shape)} dimensions, expected "
                        f"{' or '.join(map(str, ranks))}", code="MLC0364", loc=user_loc())


def sizes(shape: Shape) -> tuple[int, ...]:
    """Check the shape of a parameter.

    Args:
        shape: Integers.

    Returns:
        The tuple of Python integers.

    Raises:
        UserError: A size is negative (MLC0358), or the shape is too large (MLC0328).
        UserTypeError: A size is no integer (MLC0355).

    Example:
        >>> nn.init.sizes([2, 3])
        (2, 3)
    """
    out = tuple(plain_int(n, "size") for n in shape)
    if any(n < 0 for n in out):
        raise UserError(f"{list(out)} is no shape: sizes are not negative", code="MLC0358", loc=user_loc())
    if math.prod(n for n in out if n) >= MAX_ELEMENTS:
        raise UserError(f"shape {list(out)} is beyond all memory", code="MLC0328", loc=user_loc())
    return out


def bound(inputs: int) -> float:
    """Bound of the uniform distribution that linear layers and convolutions begin with: 1 / sqrt(max(1, inputs)).

    Args:
        inputs: Fan-in of the weight.

    Returns:
        The bound, a float.

    Raises:
        UserError: `inputs` is negative (MLC0358).

    Example:
        >>> nn.init.bound(4)
        0.5
    """
    return 1 / math.sqrt(max(1, *sizes((inputs,))))


def _tensor(array: Any, dtype: DTypeLike) -> Tensor:
    return Tensor(np.asarray(array).astype(as_dtype(dtype).dtype))
