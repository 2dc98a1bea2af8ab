"""Random tensors drawn from a `Generator`, under PyTorch's names and with its signatures.

Each draw takes one key, and the functions of `mlc.random` make the numbers: `mlc.rand(2, 3, generator=g)` is
`mlc.random.rand(g.next_key(), 2, 3)`. Here one compiled kernel serves all shapes: it draws a vector, which is reshaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from mlc.dialects.tensor.promotion import promote
from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.axes import any_int
from mlc.frontend.dtypes import DType, as_dtype, float32, int64, of_ir
from mlc.frontend.functions import random
from mlc.frontend.functions.create import creation
from mlc.frontend.functions.create.filled import shape_from
from mlc.frontend.functions.random.distributions import DIGITS, float_type
from mlc.frontend.generator import Generator, default_generator
from mlc.frontend.operands import broadcast_shapes, count_of, fail_unless, tracer
from mlc.frontend.tensor import OPERATIONS, Array, DTypeLike, Operand, Tensor, as_array, wrap
from mlc.frontend.trace import state
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Dim
from mlc.ir.types import from_numpy, to_numpy


def source_of(generator: Generator | None, recorded: bool = False) -> Generator:
    """The generator to draw from; UserError while a function is recorded, unless what is drawn can be `recorded`."""
    found = default_generator if generator is None else generator
    found.check_draw(recorded)
    return found


def draw_floats(draw: Callable[[Operand, Operand], Tensor], shape: Sequence[Any], dtype: DType,
            generator: Generator | None) -> Tensor:
    """Floats that a function of a key and of a tensor of the wanted shape draws."""
    key = source_of(generator, True).next_key()
    if isinstance(key, Tracer):
        like = OPERATIONS["zeros"](sizes.product(shape), dtype=dtype)
        return OPERATIONS["reshape"](draw(key, like), tuple(shape))  # type: ignore[no-any-return]
    flat = draw(key, np.empty(math.prod(shape), to_numpy(dtype.ir if dtype.is_complex else float_type(dtype))))
    return wrap(flat.array.reshape(tuple(shape)))


def _words(count: int, generator: Generator | None) -> Array:
    """Random integers of 64 bits."""
    return random.bits_like(source_of(generator).next_key(), np.empty(count, np.uint8), dtype="uint64").array


def _integers(shape: Sequence[Any], low: int, high: int, dtype: DTypeLike, generator: Generator | None) -> Tensor:
    """Integers in [low, high): up to 2^32 of them as `mlc.random.randint` draws them."""
    first, count = any_int(low, "low"), any_int(high, "high") - any_int(low, "low")
    wanted = as_dtype(dtype)
    if count <= 0:
        raise UserError(f"there is no integer from {low} up to {high}", code="MLC0360")
    _check_range(first, high - 1, wanted)
    if state.trace is not None and count <= 1 << 32:
        key = source_of(generator, True).next_key()
        flat = random.randint(key, (sizes.product(shape),), first, first + count, wanted)
        return OPERATIONS["reshape"](flat, tuple(shape))  # type: ignore[no-any-return]
    words = _words(math.prod(shape), generator)
    if count <= 1 << 32:
        upper, lower, half = words >> np.uint64(32), words & np.uint64(0xFFFFFFFF), np.uint64(32)
        drawn = (upper * np.uint64(count) + (lower * np.uint64(count) >> half)) >> half
    else:
        drawn = words % np.uint64(count) if count < 1 << 64 else words
    shifted = (drawn + np.uint64(first & ((1 << 64) - 1))).view(np.int64 if first < 0 or high <= 1 << 63 else np.uint64)
    return wrap(shifted.astype(to_numpy(wanted.ir)).reshape(tuple(shape)))


def _check_range(least: int, most: int, dtype: DType) -> None:
    """UserError if not all integers of a range are exact in a dtype."""
    if dtype.is_complex:
        raise UserTypeError(f"integers are drawn as real numbers, and not as {dtype.name}", code="MLC0359")
    if dtype.is_floating_point:
        bound = 1 << DIGITS[float_type(dtype)]
        ends = -bound, bound
    else:
        numbers = to_numpy(dtype.ir)
        ends = (0, 1) if numbers.kind == "b" else (int(np.iinfo(numbers).min), int(np.iinfo(numbers).max))
    if least < ends[0] or most > ends[1]:
        raise UserError(f"the integers from {least} to {most} do not fit in {dtype}", code="MLC0348")


@creation
def rand(*size: Any, generator: Generator | None = None, dtype: DTypeLike = float32, device: Any = None,
         requires_grad: bool = False) -> Tensor:
    """Numbers uniformly distributed in [0, 1).

    The numbers are drawn independently, all multiples of the same power of two with equal probability. The same seed
    (`mlc.manual_seed`) and the same sequence of calls give the same numbers.

    Args:
        size: Sizes, as separate arguments or as one sequence.
        generator: Source of the numbers; the default generator if left out.
        dtype: Float dtype of the result.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: A size is negative (MLC0358), `dtype` is no float (MLC0359), or a function is being recorded
            (MLC0716).

    Example:
        >>> x = mlc.rand(2, 3)
        >>> x.shape, bool(((0 <= x) & (x < 1)).all())
        ((2, 3), True)
    """
    return draw_floats(random.rand_like, shape_from(size), as_dtype(dtype), generator)


@creation
def randn(*size: Any, generator: Generator | None = None, dtype: DTypeLike = float32, device: Any = None,
          requires_grad: bool = False) -> Tensor:
    """Numbers of the standard normal distribution.

    The density is exp(-x^2 / 2) / sqrt(2 pi): mean 0 and variance 1. For another mean and standard deviation, write
    mean + std * randn(...). The same seed (`mlc.manual_seed`) and the same sequence of calls give the same numbers.

    Args:
        size: Sizes, as separate arguments or as one sequence.
        generator: Source of the numbers; the default generator if left out.
        dtype: Float dtype of the result.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: A size is negative (MLC0358), `dtype` is no float (MLC0359), or a function is being recorded
            (MLC0716).

    Example:
        >>> mlc.randn(2, 3).shape
        (2, 3)
    """
    return draw_floats(random.randn_like, shape_from(size), as_dtype(dtype), generator)


@creation
def randint(low: int, high: Any = None, size: Any = None, *, generator: Generator | None = None,
            dtype: DTypeLike = int64, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Integers in [low, high), all equally likely; `randint(high, size)` begins with 0.

    Args:
        low: The least integer; 0 if there are only two arguments, or `high` is left out.
        high: The integer after the greatest.
        size: Sequence of sizes.
        generator: Source of the numbers; the default generator if left out.
        dtype: Dtype of the result.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: There is no integer (MLC0360), the integers do not fit in the dtype (MLC0348), the size is missing
            (MLC0321) or negative (MLC0358), or a function is being recorded (MLC0716).

    Example:
        >>> mlc.randint(5, 6, (3,)), mlc.randint(1, (2,))
        (tensor([5, 5, 5], dtype=mlc.int64), tensor([0, 0], dtype=mlc.int64))
    """
    if size is None and isinstance(high, list | tuple):
        high, size = None, high
    if size is None:
        raise UserTypeError("the size is missing", code="MLC0321", hint="as in mlc.randint(10, (2, 3))")
    first, end = (0, low) if high is None else (low, high)
    return _integers(shape_from((size,)), first, end, dtype, generator)


@creation
def randperm(n: int, *, generator: Generator | None = None, dtype: DTypeLike = int64, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """The integers from 0 to n - 1 in random order.

    Args:
        n: How many.
        generator: Source of the numbers; the default generator if left out.
        dtype: Dtype of the result.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape (n,).

    Raises:
        UserError: `n` is negative (MLC0358), the integers do not fit in the dtype (MLC0348), or a function is being
            recorded (MLC0716).

    Example:
        >>> mlc.randperm(4).sort().values
        tensor([0, 1, 2, 3], dtype=mlc.int64)
    """
    count, wanted = count_of(n, "n"), as_dtype(dtype)
    _check_range(0, max(count - 1, 0), wanted)
    if state.trace is not None:
        key = source_of(generator, True).next_key()
        return OPERATIONS["cast"](random.randperm(key, count), wanted)  # type: ignore[no-any-return]
    return wrap(np.argsort(_words(count, generator), kind="stable").astype(to_numpy(wanted.ir)))


def shape_and_dtype_of(input: Operand, dtype: DTypeLike) -> tuple[tuple[Dim, ...], DType]:
    x = input if isinstance(input, Tensor) else wrap(as_array(input))
    if isinstance(x, Tracer):
        return x.type.shape, x.dtype if dtype is None else as_dtype(dtype)
    return x.shape, x.dtype if dtype is None else as_dtype(dtype)


@creation
def rand_like(input: Operand, *, generator: Generator | None = None, dtype: DTypeLike = None, device: Any = None,
              requires_grad: bool = False) -> Tensor:
    """Numbers uniformly distributed in [0, 1), in the shape of a tensor.

    Args:
        input: Tensor that tells the shape.
        generator: Source of the numbers; the default generator if left out.
        dtype: Float dtype of the result; that of `input` by default.
        device: Device of the result; that of `input` by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: The dtype is no float (MLC0359), or a function is being recorded (MLC0716).

    Example:
        >>> mlc.rand_like(mlc.zeros(2, 3)).shape
        (2, 3)
    """
    return draw_floats(random.rand_like, *shape_and_dtype_of(input, dtype), generator)


@creation
def randn_like(input: Operand, *, generator: Generator | None = None, dtype: DTypeLike = None, device: Any = None,
               requires_grad: bool = False) -> Tensor:
    """Numbers of the standard normal distribution, in the shape of a tensor.

    Args:
        input: Tensor that tells the shape.
        generator: Source of the numbers; the default generator if left out.
        dtype: Float dtype of the result; that of `input` by default.
        device: Device of the result; that of `input` by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: The dtype is no float (MLC0359), or a function is being recorded (MLC0716).

    Example:
        >>> mlc.randn_like(mlc.zeros(2, 3)).shape
        (2, 3)
    """
    return draw_floats(random.randn_like, *shape_and_dtype_of(input, dtype), generator)


@creation
def randint_like(input: Operand, low: int, high: int | None = None, *, generator: Generator | None = None,
                 dtype: DTypeLike = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Integers in [low, high) in the shape of a tensor; `randint_like(x, high)` begins with 0.

    Args:
        input: Tensor that tells the shape.
        low: The least integer; 0 if `high` is left out.
        high: The integer after the greatest.
        generator: Source of the numbers; the default generator if left out.
        dtype: Dtype of the result; that of `input` by default.
        device: Device of the result; that of `input` by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: There is no integer (MLC0360), the integers do not fit in the dtype (MLC0348), or a function is being
            recorded (MLC0716).

    Example:
        >>> mlc.randint_like(mlc.zeros(2), 7, 8)
        tensor([7., 7.], dtype=mlc.float32)
    """
    first, end = (0, low) if high is None else (low, high)
    shape, wanted = shape_and_dtype_of(input, dtype)
    return _integers(shape, first, end, wanted, generator)


@creation
def normal(mean: Operand = 0.0, std: Operand = 1.0, size: Any = None, *, generator: Generator | None = None,
           dtype: DTypeLike = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers of the normal distribution: one for each element of the mean and the deviation, or as many as `size` has.

    Args:
        mean: Mean, a tensor or a number.
        std: Standard deviation, a tensor or a number, at least 0.
        size: Sequence of sizes, where mean and deviation are numbers.
        generator: Source of the numbers; the default generator if left out.
        dtype: Float dtype of the result; by default that of the tensors, or float32.
        device: Device of the result; by default that of `mean`, or the CPU.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.

    Returns:
        Tensor of shape `size`, or of the broadcast shape of mean and deviation.

    Raises:
        UserError: The deviation is negative (MLC0360), the size is missing (MLC0321), `dtype` is no float (MLC0359), a
            function is being recorded (MLC0716), or a size is negative (MLC0358).

    Example:
        >>> mlc.normal(0.0, 1.0, (2, 3)).shape, mlc.normal(mlc.tensor([1.0, 2.0]), 0.0)
        ((2, 3), tensor([1., 2.], dtype=mlc.float32))
    """
    source = source_of(generator, True)
    given = [x for x in (mean, std) if not isinstance(x, int | float)]
    if size is None and not given:
        raise UserTypeError("the size is missing", code="MLC0321", hint="as in mlc.normal(0.0, 1.0, (2, 3))")
    if size is not None and given:
        raise UserTypeError("a size goes with a mean and a deviation that are numbers", code="MLC0360")
    if state.trace is not None:
        recorded = [tracer(x) for x in given]
        if isinstance(std, Tensor):
            fail_unless(OPERATIONS["ge"](std, 0), "the standard deviation is negative")
        shapes, dtypes = [x.type.shape for x in recorded], [x.type.dtype for x in recorded]
    else:
        shapes, dtypes = [as_array(x).shape for x in given], [from_numpy(as_array(x).dtype) for x in given]
    if (not isinstance(std, Tensor) or state.trace is None) and (as_array(std) < 0).any():
        raise UserError("the standard deviation is negative", code="MLC0360")
    shape = shape_from((size,)) if size is not None else broadcast_shapes(*shapes)
    found = of_ir(reduce(promote, dtypes)) if given else float32
    wanted = found if dtype is None else as_dtype(dtype)
    drawn = draw_floats(random.randn_like, shape, wanted, source)
    with no_grad():
        out: Tensor = drawn * std + mean
        return out.to(wanted)
