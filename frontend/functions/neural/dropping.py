"""Dropout, and other activations with noise."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import tensor as T
from mlc.frontend.axes import axis
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import random
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.neural.smooth import softmax
from mlc.frontend.generator import drawing
from mlc.frontend.operands import cast, floating, full, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import i64


def _dropped(p: float, training: bool) -> bool:
    """Whether dropout has an effect."""
    if not 0 <= p <= 1:
        raise UserError(f"p = {p} is no probability", code="MLC0360")
    return training and p > 0


drops = drawing(lambda given: given["training"] and given["p"])


@drops
@operation(static=("key",))
def dropout(input: Operand, p: float = 0.5, training: bool = True, inplace: bool = False, *,
            key: Operand = None) -> Tensor:
    """Each element 0 with probability p, otherwise input / (1 - p), in training (Srivastava et al. 2014).

    Equal keys drop the same elements. Within a compiled function the key has to be given; `nn.Dropout` keeps a key of
    its own.

    Args:
        input: Tensor.
        p: Probability, a Python number from 0 to 1.
        training: Whether to drop anything; otherwise the result is `input`.
        inplace: Whether the result is written to `input`, which is returned.
        key: Random key; by default one that the default generator draws in training.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `p` is no probability (MLC0360), or the key is left out while a function is recorded (MLC0716).

    Example:
        >>> nn.functional.dropout(mlc.ones(3), 0.0, key=mlc.random.key(0))
        tensor([1., 1., 1.], dtype=mlc.float32)
    """
    return random.dropout(key, input, p) if _dropped(p, training) else tracer(input)


@drops
@operation(static=("key",))
def feature_dropout(input: Operand, p: float = 0.5, training: bool = True, spatial: int = 2, *,
                    key: Operand = None) -> Tensor:
    """Dropout of whole channels: all elements of a channel become 0, or are divided by 1 - p (Tompson et al. 2015).

    `dropout1d`, `dropout2d` and `dropout3d` are this for `spatial` 1, 2 and 3.

    Args:
        input: Tensor of shape (channels, *image) or (n, channels, *image).
        p: Probability, a Python number from 0 to 1.
        training: Whether to drop anything; otherwise the result is `input`.
        spatial: Number of the dimensions of an image.
        key: Random key; by default one that the default generator draws in training.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `p` is no probability (MLC0360), the key is left out while a function is recorded (MLC0716), or the
            number of dimensions is wrong
            (MLC0364).

    Example:
        >>> nn.functional.feature_dropout(mlc.ones(1, 2, 2), 0.0, key=mlc.random.key(0))
        tensor([[[1., 1.],
                 [1., 1.]]], dtype=mlc.float32)
    """
    x = floating(input)
    if not _dropped(p, training):
        return x
    lead = x.ndim - spatial
    if lead not in (1, 2):
        raise UserError(f"the input has {x.ndim} dimensions, expected {spatial + 1} or {spatial + 2}", code="MLC0364")
    return x * random.dropout(key, full(1.0, x, [*x.shape[:lead], *[1] * spatial]), p)


@drops
@operation(static=("key",))
def alpha_dropout(input: Operand, p: float = 0.5, training: bool = True, inplace: bool = False, *,
                  key: Operand = None) -> Tensor:
    """Dropout for `selu`: elements become its limit of -1.7581 with probability p, and all are scaled.

    Mean 0 and variance 1 are kept (Klambauer et al. 2017).

    Args:
        input: Tensor; integers become float32.
        p: Probability, a Python number from 0 to 1.
        training: Whether to drop anything; otherwise the result is `input`.
        inplace: Whether the result is written to `input`, which is returned.
        key: Random key; by default one that the default generator draws in training.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `p` is no probability (MLC0360), or the key is left out while a function is recorded (MLC0716).

    Example:
        >>> nn.functional.alpha_dropout(mlc.ones(3), training=False)
        tensor([1., 1., 1.], dtype=mlc.float32)
    """
    x = floating(input)
    if not _dropped(p, training):
        return x
    return _alpha_dropped(x, p, key, x.shape)


def _alpha_dropped(x: Tracer, p: float, key: Operand, shape: Sequence[Dim]) -> Tensor:
    """Alpha dropout with one draw for each element of `shape`, which broadcasts to that of x."""
    if p == 1:
        return x * 0.0
    lowest = -1.7580993408473766
    scale = ((lowest * lowest * p + 1) * (1 - p)) ** -0.5
    kept = random.bernoulli(key, 1 - p, shape)
    out: Tensor = scale * E.where(kept, x, lowest) - scale * lowest * p
    return out


@drops
@operation(static=("key",))
def feature_alpha_dropout(input: Operand, p: float = 0.5, training: bool = False, inplace: bool = False, *,
                          key: Operand = None) -> Tensor:
    """Alpha dropout of whole channels: all elements of a channel are replaced, or none.

    Args:
        input: Tensor of shape (n, channels, ...); integers become float32.
        p: Probability, a Python number from 0 to 1.
        training: Whether to drop anything; otherwise the result is `input`.
        inplace: Whether the result is written to `input`, which is returned.
        key: Random key; by default one that the default generator draws in training.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `p` is no probability (MLC0360), there are less than two dimensions (MLC0364), or the key is left
            out while a function is recorded (MLC0716).

    Example:
        >>> nn.functional.feature_alpha_dropout(mlc.ones(1, 2))
        tensor([[1., 1.]], dtype=mlc.float32)
    """
    x = floating(input)
    if training and x.ndim < 2:
        raise UserError(f"the input has {x.ndim} dimensions, expected at least 2", code="MLC0364")
    return _alpha_dropped(x, p, key, [*x.shape[:2], *[1] * (x.ndim - 2)]) if _dropped(p, training) else x


@drops
@operation(static=("key",))
def dropout1d(input: Operand, p: float = 0.5, training: bool = True, inplace: bool = False, *,
              key: Operand = None) -> Tensor:
    """Dropout of whole channels of signals, as `feature_dropout`.

    Args:
        input: Tensor of shape (channels, w) or (n, channels, w).
        p: Probability, a Python number from 0 to 1.
        training: Whether to drop anything; otherwise the result is `input`.
        inplace: Whether the result is written to `input`, which is returned.
        key: Random key; by default one that the default generator draws in training.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `p` is no probability (MLC0360), the key is left out while a function is recorded (MLC0716), or the
            number of dimensions is wrong
            (MLC0364).

    Example:
        >>> nn.functional.dropout1d(mlc.ones(1, 1), 0.0, key=mlc.random.key(0)).shape
        (1, 1)
    """
    return feature_dropout(input, p, training, 1, key=key)


@drops
@operation(static=("key",))
def dropout2d(input: Operand, p: float = 0.5, training: bool = True, inplace: bool = False, *,
              key: Operand = None) -> Tensor:
    """Dropout of whole channels of images, as `feature_dropout`.

    As in PyTorch, the first two dimensions are always those of the batch and the channels.

    Args:
        input: Tensor of shape (n, channels, h, w); also (n, channels, l) or (n, channels).
        p: Probability, a Python number from 0 to 1.
        training: Whether to drop anything; otherwise the result is `input`.
        inplace: Whether the result is written to `input`, which is returned.
        key: Random key; by default one that the default generator draws in training.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `p` is no probability (MLC0360), the key is left out while a function is recorded (MLC0716), or the
            number of dimensions is wrong
            (MLC0364).

    Example:
        >>> nn.functional.dropout2d(mlc.ones(1, 1, 1), 0.0, key=mlc.random.key(0)).shape
        (1, 1, 1)
    """
    rank = tracer(input).ndim
    return feature_dropout(input, p, training, rank - 2 if rank in (2, 3) else 2, key=key)


@drops
@operation(static=("key",))
def dropout3d(input: Operand, p: float = 0.5, training: bool = True, inplace: bool = False, *,
              key: Operand = None) -> Tensor:
    """Dropout of whole channels of volumes, as `feature_dropout`.

    Args:
        input: Tensor of shape (channels, d, h, w) or (n, channels, d, h, w).
        p: Probability, a Python number from 0 to 1.
        training: Whether to drop anything; otherwise the result is `input`.
        inplace: Whether the result is written to `input`, which is returned.
        key: Random key; by default one that the default generator draws in training.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `p` is no probability (MLC0360), the key is left out while a function is recorded (MLC0716), or the
            number of dimensions is wrong
            (MLC0364).

    Example:
        >>> nn.functional.dropout3d(mlc.ones(1, 1, 1, 1), 0.0, key=mlc.random.key(0)).shape
        (1, 1, 1, 1)
    """
    return feature_dropout(input, p, training, 3, key=key)


@drawing(lambda given: given["training"])
@operation(static=("key",))
def rrelu(input: Operand, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False,
          *, key: Operand = None) -> Tensor:
    """x where x > 0, slope * x elsewhere, for a slope drawn anew for each element in training (Xu et al. 2015).

    Args:
        input: Tensor of floats.
        lower: Least slope.
        upper: Greatest slope.
        training: Whether slopes are uniformly distributed; otherwise each is the mean of `lower` and `upper`.
        inplace: Whether the result is written to `input`, which is returned.
        key: Random key; by default one that the default generator draws in training.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `lower` is above `upper` (MLC0360), or the key is left out while a function is recorded
            (MLC0716).

    Example:
        >>> nn.functional.rrelu(mlc.tensor([-8.0, 2.0]), 0.25, 0.75)
        tensor([-4.,  2.], dtype=mlc.float32)
    """
    x = floating(input)
    if not lower <= upper:
        raise UserError(f"slopes from {lower} to {upper}", code="MLC0360")
    slope: Operand = (lower + upper) / 2
    if training:
        slope = random.uniform(key, x.shape, lower, upper, x.dtype)
    return E.where(x > 0, x, E.mul(x, slope))


@drawing(lambda given: True)
@operation()
def gumbel_softmax(logits: Operand, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1, *,
                   key: Operand = None) -> Tensor:
    """softmax((logits + noise) / tau), a sample of the Gumbel-softmax distribution (Jang, Gu and Poole 2017).

    Args:
        logits: Tensor of floats, unnormalized logarithms of probabilities.
        tau: Temperature, positive.
        hard: Whether to give a one-hot vector, the gradient of which is that of the sample.
        eps: Accepted for PyTorch's sake.
        dim: The dimension of the classes.
        key: Key to draw with; None for one of the default generator.

    Returns:
        Tensor of the shape and dtype of `logits`.

    Raises:
        UserError: `tau` is not positive (MLC0360), or `dim` is out of range (MLC0356).

    Example:
        >>> float(nn.functional.gumbel_softmax(mlc.zeros(4), hard=True).sum())
        1.0
    """
    x = floating(logits)
    if tau <= 0:
        raise UserError(f"tau = {tau}, expected a number above 0", code="MLC0360")
    soft = softmax((x + random.gumbel(key, x.shape, x.dtype)) / tau, dim)
    if not hard:
        return soft
    best = R.argmax(soft, dim, True)
    at = axis(dim, x.ndim)
    places = emit(T.Iota, x.shape, at, i64)
    return cast(tracer(places == best), x.type.dtype) - E.detach(soft) + soft
