"""Scatter functions, which write to computed indices; updates are applied in order."""

from __future__ import annotations

from mlc.dialects import tensor as T
from mlc.dialects.combining import CombiningKind
from mlc.frontend.axes import axis
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.create import creation
from mlc.frontend.functions.index import from_the_front, known_integers
from mlc.frontend.operands import broadcast_to, cast, count_of, full, integer, kind, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Dim
from mlc.ir.types import f32, f64, i64

REDUCE = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def _along(input: Operand, dim: int, index: Operand, src: Operand, how: str) -> Tracer:
    """input with src combined into it at the indices `index` along `dim`."""
    x, i = tracer(input), integer(index, "index")
    u = cast(tracer(src), x.type.dtype)
    at = axis(dim, x.ndim)
    if not x.ndim or not i.ndim:                           # a number is a vector of one element
        line, rows, new = (v if v.ndim else reshape(v, [1]) for v in (x, i, u))
        return reshape(_along(line, at, rows, new, how), x.shape)
    if i.ndim != x.ndim or (u.ndim and u.ndim != x.ndim):
        raise UserError(f"the input, the index and src have {x.ndim}, {i.ndim} and {u.ndim} dimensions, expected as "
                        "many", code="MLC0364")
    u = cut(u, i.shape, "src") if u.ndim else broadcast_to(u, i.shape)
    for k, (n, m) in enumerate(zip(x.shape, i.shape)):
        if k != at and isinstance(n, int) and isinstance(m, int) and m > n:
            raise UserError(f"the index has size {m} in dimension {k}, the input {n}", code="MLC0367")
    return emit(T.ScatterAlong, x, from_the_front(i, x.shape[at]), u, at, how)  # type: ignore[no-any-return]


def cut(x: Tracer, shape: tuple[Dim, ...], what: str) -> Tracer:
    """The leading slice of x of the given shape."""
    for k, (n, m) in enumerate(zip(x.shape, shape)):
        if isinstance(n, int) and isinstance(m, int) and m > n:
            raise UserError(f"the index has size {m} in dimension {k}, {what} {n}", code="MLC0367")
    zeros, ones = (0,) * x.ndim, (1,) * x.ndim
    return x if x.shape == shape else emit(T.Slice, x, zeros, tuple(shape), ones)


def _check_dtypes(input: Operand, src: Operand, name: str = "src") -> None:
    """UserTypeError if a tensor is not of the dtype of the input; numbers are of any."""
    x, new = tracer(input), tracer(src)
    if not new.weak and new.type.dtype != x.type.dtype:
        raise UserTypeError(f"the input is of {x.dtype}, and {name} of {new.dtype}", code="MLC0421",
                            hint=f"convert it: {name}.to(input.dtype)")


@operation(stored={"src": "input"})
def scatter(input: Operand, dim: int, index: Operand, src: Operand, *, reduce: str | None = None) -> Tensor:
    """Elements written along a dimension: result[index[i, j], j] = src[i, j] for dim = 0, and input elsewhere.

    Of several elements for one place the last one is written; without `reduce`, only that one gets a derivative.

    Args:
        input: Tensor.
        dim: The dimension; negative ones count from the last.
        index: Tensor of integers of as many dimensions; negative ones count from the end.
        src: Number, or tensor of the dtype of `input` that is at least as great as `index`.
        reduce: "add" or "multiply" to combine `src` with what is there.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `reduce` is another string (MLC0360), `index` is not of integers (MLC0354) or out of range (MLC0340,
            an IndexError), the numbers of dimensions differ (MLC0364), `index` is too great (MLC0367), `src` is of
            another dtype (MLC0421), or `dim` is out of range (MLC0356, an IndexError).

    Example:
        >>> mlc.scatter(mlc.zeros(4), 0, mlc.tensor([1, 3]), mlc.tensor([5.0, 6.0]))
        tensor([0., 5., 0., 6.], dtype=mlc.float32)
    """
    kinds = {None: "set", "add": "add", "multiply": "mul"}
    if reduce not in kinds:
        raise UserError(f"reduce = {reduce!r}", code="MLC0360", hint='use "add" or "multiply"')
    _check_dtypes(input, src)
    return _along(input, dim, index, src, kinds[reduce])


@operation()
def scatter_add(input: Operand, dim: int, index: Operand, src: Operand) -> Tensor:
    """Elements added along a dimension: result[index[i, j], j] += src[i, j] for dim = 0, from input on.

    They are added in order of `index`, so the result is the same in every run.

    Args:
        input: Tensor.
        dim: The dimension; negative ones count from the last.
        index: Tensor of integers of as many dimensions; negative ones count from the end.
        src: Number, or tensor of the dtype of `input` that is at least as great as `index`.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `index` is not of integers (MLC0354) or out of range (MLC0340, an IndexError), the numbers of
            dimensions differ (MLC0364), `index` is too great (MLC0367), `src` is of another dtype (MLC0421), or `dim`
            is out of range (MLC0356, an IndexError).

    Example:
        >>> mlc.scatter_add(mlc.zeros(3), 0, mlc.tensor([0, 0, 2]), mlc.tensor([1.0, 2.0, 3.0]))
        tensor([3., 0., 3.], dtype=mlc.float32)
    """
    _check_dtypes(input, src)
    return _along(input, dim, index, src, "add")


@operation()
def scatter_reduce(input: Operand, dim: int, index: Operand, src: Operand, reduce: str, *,
                   include_self: bool = True) -> Tensor:
    """Elements combined along a dimension into the places that an index names.

    Args:
        input: Tensor.
        dim: The dimension; negative ones count from the last.
        index: Tensor of integers of as many dimensions; negative ones count from the end.
        src: Number, or tensor of the dtype of `input` that is at least as great as `index`.
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: Whether what `input` holds there counts, too.

    Returns:
        Tensor of the shape and dtype of `input`; means of integers are rounded down.

    Raises:
        UserError: `reduce` is another string (MLC0360), `index` is not of integers (MLC0354) or out of range (MLC0340,
            an IndexError), the numbers of dimensions differ (MLC0364), `index` is too great (MLC0367), `src` is of
            another dtype (MLC0421), or `dim` is out of range (MLC0356, an IndexError).

    Example:
        >>> mlc.scatter_reduce(mlc.ones(3), 0, mlc.tensor([0, 0, 2]), mlc.tensor([4.0, 2.0, 3.0]), "amax")
        tensor([4., 1., 3.], dtype=mlc.float32)
    """
    _check_dtypes(input, src)
    x = tracer(input)
    at = axis(dim, x.ndim)
    start = x if include_self else tracer(E.where(_hit(x, at, index), _neutral(reduce, x), x))
    if reduce != "mean":
        return _along(start, at, index, src, _kind(reduce))
    total = _along(start, at, index, src, "add")
    i = tracer(index)
    ones = full(1, emit(T.Full, 0, (), i64))
    counts = _along(broadcast_to(ones, x.shape), at, i, broadcast_to(ones, i.shape), "add")
    counts = counts if include_self else tracer(E.maximum(counts - 1, 1))
    if x.type.dtype.is_float:
        return total / cast(tracer(counts), x.type.dtype)
    return E.floor_divide(total, cast(tracer(counts), x.type.dtype))


def _kind(reduce: str) -> str:
    if reduce not in REDUCE:
        raise UserError(f"reduce = {reduce!r}", code="MLC0360", hint='use "sum", "prod", "mean", "amax" or "amin"')
    return REDUCE[reduce]


def _neutral(reduce: str, x: Tracer) -> Tracer:
    """The identity element of a reduction; that of the mean is the sum's."""
    kind = CombiningKind.of("add" if reduce == "mean" else _kind(reduce), x.type.dtype)
    return full(kind.identity(x.type.dtype), x)


def _hit(x: Tracer, at: int, index: Operand) -> Tensor:
    """Mask of the elements that some index refers to."""
    zeros = broadcast_to(emit(T.Full, 0, (), i64), x.shape)
    i = tracer(index)
    return _along(zeros, at, i, broadcast_to(emit(T.Full, 1, (), i64), i.shape), "set") != 0


def _rows(input: Operand, dim: int, index: Operand, source: Operand, how: str) -> Tracer:
    """input with the slices of `source` combined into its slices along `dim` at the indices in a vector."""
    x, i = tracer(input), integer(index, "index")
    if i.ndim > 1:
        raise UserError(f"the index has {i.ndim} dimensions, expected 1", code="MLC0364")
    u = cast(tracer(source), x.type.dtype)
    scalar = not x.ndim
    x, u = (reshape(v, [1]) if not v.ndim and scalar else v for v in (x, u))
    at = axis(dim, x.ndim)
    i = reshape(i, [sizes.product(i.shape)])
    wanted = (*x.shape[:at], *i.shape, *x.shape[at + 1:])
    if u.ndim and u.shape != wanted:
        raise UserError(f"the source has shape {list(u.shape)}, expected {list(wanted)}", code="MLC0367",
                        symbols=sizes.differing(u.shape, wanted))
    out = emit(T.Scatter, x, from_the_front(i, x.shape[at]), broadcast_to(u, wanted), at, how)
    return reshape(out, []) if scalar else out


@operation()
def index_add(input: Operand, dim: int, index: Operand, source: Operand, *, alpha: Operand = 1) -> Tensor:
    """Slices added to slices: result[index[i]] += alpha * source[i] for dim = 0, from input on.

    Args:
        input: Tensor.
        dim: The dimension; negative ones count from the last.
        index: 1-D tensor of integers; negative ones count from the end.
        source: Number, or tensor of the dtype of `input` with a slice for each index.
        alpha: Factor of `source`.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `index` is not of integers (MLC0354), not 1-D (MLC0364) or out of range (MLC0340, an IndexError),
            `source` has another shape (MLC0367) or dtype (MLC0421), or `dim` is out of range (MLC0356, an IndexError).

    Example:
        >>> mlc.index_add(mlc.zeros(3), 0, mlc.tensor([0, 0, 2]), mlc.tensor([1.0, 2.0, 3.0]))
        tensor([3., 0., 3.], dtype=mlc.float32)
    """
    _check_dtypes(input, source, "source")
    x = tracer(input)
    return _rows(x, dim, index, tracer(source) * cast(tracer(alpha), x.type.dtype), "add")


@operation(autocast="promote")
def index_copy(input: Operand, dim: int, index: Operand, source: Operand) -> Tensor:
    """Slices replaced: result[index[i]] = source[i] for dim = 0, and input elsewhere.

    Of several slices for one place the last one counts.

    Args:
        input: Tensor.
        dim: The dimension; negative ones count from the last.
        index: 1-D tensor of integers; negative ones count from the end.
        source: Number, or tensor of the dtype of `input` with a slice for each index.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `index` is not of integers (MLC0354), not 1-D (MLC0364) or out of range (MLC0340, an IndexError),
            `source` has another shape (MLC0367) or dtype (MLC0421), or `dim` is out of range (MLC0356, an IndexError).

    Example:
        >>> mlc.index_copy(mlc.zeros(3), 0, mlc.tensor([2, 0]), mlc.tensor([1.0, 2.0]))
        tensor([2., 0., 1.], dtype=mlc.float32)
    """
    _check_dtypes(input, source, "source")
    return _rows(input, dim, index, source, "set")


@operation(stored={"value": "input"})
def index_fill(input: Operand, dim: int, index: Operand, value: Operand) -> Tensor:
    """Slices filled with one number: result[index[i]] = value for dim = 0, and input elsewhere.

    Args:
        input: Tensor.
        dim: The dimension; negative ones count from the last.
        index: 1-D tensor of integers; negative ones count from the end.
        value: Number or 0-d tensor.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `value` is of a higher kind than `input` (MLC0352), not 0-d (MLC0364) or beyond the dtype (MLC0348),
            `index` is not of integers (MLC0354), not 1-D (MLC0364) or out of range (MLC0340, an IndexError), or `dim`
            is out of range (MLC0356, an IndexError).

    Example:
        >>> mlc.index_fill(mlc.zeros(3), 0, mlc.tensor([0, 2]), 7.0)
        tensor([7., 0., 7.], dtype=mlc.float32)
    """
    x, v = tracer(input), tracer(value)
    if v.ndim:
        raise UserError(f"the value has {v.ndim} dimensions, expected 0", code="MLC0364")
    if kind(v.type.dtype) > kind(x.type.dtype):
        raise UserTypeError(f"a tensor of {x.dtype} cannot be filled with {v.dtype}", code="MLC0352")
    return _rows(x, dim, index, v, "set")


@operation()
def index_reduce(input: Operand, dim: int, index: Operand, source: Operand, reduce: str, *,
                 include_self: bool = True) -> Tensor:
    """Slices combined into the slices that an index names, as `scatter_reduce` combines elements.

    Args:
        input: Tensor.
        dim: The dimension; negative ones count from the last.
        index: 1-D tensor of integers; negative ones count from the end.
        source: Tensor of the dtype of `input` with a slice for each index.
        reduce: "prod", "mean", "amax", "amin" or "sum".
        include_self: Whether what `input` holds there counts, too.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `reduce` is another string (MLC0360), or `index` is not of integers (MLC0354), not 1-D (MLC0364) or
            out of range (MLC0340, an IndexError), `source` is of another dtype (MLC0421), `dim` is out of range
            (MLC0356, an IndexError), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.index_reduce(mlc.ones(3), 0, mlc.tensor([0, 0, 2]), mlc.tensor([4.0, 2.0, 3.0]), "prod")
        tensor([8., 1., 3.], dtype=mlc.float32)
    """
    x, i = tracer(input), integer(index, "index")
    at, u = axis(dim, x.ndim), tracer(source)
    if not x.ndim:
        line = u if u.ndim else reshape(u, [1])
        return reshape(tracer(index_reduce(reshape(x, [1]), 0, i, line, reduce, include_self=include_self)), [])
    if i.ndim > 1:
        raise UserError(f"the index has {i.ndim} dimensions, expected 1", code="MLC0364")
    spread = reshape(i, [sizes.product(i.shape), *[1] * (x.ndim - at - 1)])
    return scatter_reduce(x, at, broadcast_to(spread, u.shape), u, reduce, include_self=include_self)


@operation(name="bincount")
def _bincount(input: Operand, weights: Operand, n: int) -> Tensor:
    x = integer(input, "input")
    if x.ndim != 1:
        raise UserError(f"bincount needs a vector, found {x.ndim} dimensions", code="MLC0364")
    w = broadcast_to(emit(T.Full, 1, (), i64), x.shape) if weights is None else tracer(weights)
    w = w if weights is None or w.type.dtype == f32 else cast(w, f64)
    zeros = full(0, w, (n,))
    return emit(T.Scatter, zeros, cast(x, i64), w, 0, "add")  # type: ignore[no-any-return]


@creation
def bincount(input: Operand, weights: Operand = None, minlength: int = 0) -> Tensor:
    """How often each integer from 0 to the greatest element occurs, or the sum of its weights.

    Args:
        input: 1-D tensor of integers that are not negative.
        weights: Tensor of the shape of `input`; 1 by default.
        minlength: Number of integers that are counted at least. Within a compiled function, where the greatest element
            is not known, it is how many are counted.

    Returns:
        1-D tensor of int64; with `weights` of float32 if they are, otherwise of float64.

    Raises:
        UserError: elements are no integers (MLC0354), `input` is not 1-D (MLC0364), an element is negative or, within a
            compiled function, too great (MLC0340, an IndexError), `minlength` is needed there (MLC0365), `weights` has
            another shape (MLC0115), or `minlength` is negative (MLC0358).

    Example:
        >>> mlc.bincount(mlc.tensor([0, 2, 2]))
        tensor([1, 0, 2], dtype=mlc.int64)
        >>> mlc.bincount(mlc.tensor([0, 2, 2]), mlc.tensor([0.5, 1.0, 2.0]))
        tensor([0.5, 0. , 3. ], dtype=mlc.float32)
    """
    n = count_of(minlength, "minlength")
    known = known_integers(input)
    if known is not None and known.ndim == 1 and known.size:
        n = max(n, int(known.max()) + 1)
    elif n == 0 and isinstance(input, Tracer):
        raise UserError("the length of the result must be given: how great the numbers are is known too late",
                        code="MLC0365", hint="pass minlength")
    return _bincount(input, weights, n)
