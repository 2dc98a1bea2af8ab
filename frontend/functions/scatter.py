"""Functions that write to computed places: scatter and its relatives, in the order of the updates."""

from __future__ import annotations

from mlc.dialects import tensor as T
from mlc.dialects.combining import CombiningKind
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.create import creation
from mlc.frontend.functions.index import from_the_front, known_integers
from mlc.frontend.operands import axis, broadcast_to, cast, count_of, full, integer, kind, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Dim
from mlc.ir.types import i64

REDUCE = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def _along(input: Operand, dim: int, index: Operand, src: Operand, how: str) -> Tracer:
    """input with src combined into it at the places `index` says along `dim`."""
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
    """The first elements of x along each dimension, as many as `shape` says."""
    for k, (n, m) in enumerate(zip(x.shape, shape)):
        if isinstance(n, int) and isinstance(m, int) and m > n:
            raise UserError(f"the index has size {m} in dimension {k}, {what} {n}", code="MLC0367")
    zeros, ones = (0,) * x.ndim, (1,) * x.ndim
    return x if x.shape == shape else emit(T.Slice, x, zeros, tuple(shape), ones)


@operation(stored={"src": "input"})
def scatter(input: Operand, dim: int, index: Operand, src: Operand, *, reduce: str | None = None) -> Tensor:
    """result[index[i, j], j] = src[i, j] for dim = 0, and so on; input elsewhere. Of several, the last one counts.

    reduce = "add" or "multiply" combines src with what is there.
    """
    kinds = {None: "set", "add": "add", "multiply": "mul"}
    if reduce not in kinds:
        raise UserError(f"reduce = {reduce!r}", code="MLC0360", hint='use "add" or "multiply"')
    return _along(input, dim, index, src, kinds[reduce])


@operation()
def scatter_add(input: Operand, dim: int, index: Operand, src: Operand) -> Tensor:
    """input with src[i, j] added at [index[i, j], j] for dim = 0, and so on"""
    return _along(input, dim, index, src, "add")


@operation()
def scatter_reduce(input: Operand, dim: int, index: Operand, src: Operand, reduce: str, *,
                   include_self: bool = True) -> Tensor:
    """input with src combined into it at the places `index` says along `dim`: "sum", "prod", "mean", "amax", "amin"

    Without include_self, places that an index names do not count what input holds there.
    """
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
    """Where some index points to."""
    zeros = broadcast_to(emit(T.Full, 0, (), i64), x.shape)
    i = tracer(index)
    return _along(zeros, at, i, broadcast_to(emit(T.Full, 1, (), i64), i.shape), "set") != 0


def _rows(input: Operand, dim: int, index: Operand, source: Operand, how: str) -> Tracer:
    """input with the slices of `source` combined into the slices of `dim` that a vector names."""
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
    """input with alpha * source[i] added to slice index[i] of `dim`"""
    x = tracer(input)
    return _rows(x, dim, index, tracer(source) * cast(tracer(alpha), x.type.dtype), "add")


@operation()
def index_copy(input: Operand, dim: int, index: Operand, source: Operand) -> Tensor:
    """input with slice index[i] of `dim` replaced by source[i]; of several, the last one counts"""
    return _rows(input, dim, index, source, "set")


@operation(stored={"value": "input"})
def index_fill(input: Operand, dim: int, index: Operand, value: Operand) -> Tensor:
    """input with the slices of `dim` that the index names filled with one number"""
    x, v = tracer(input), tracer(value)
    if v.ndim:
        raise UserError(f"the value has {v.ndim} dimensions, expected 0", code="MLC0364")
    if kind(v.type.dtype) > kind(x.type.dtype):
        raise UserTypeError(f"a tensor of {x.dtype} cannot be filled with {v.dtype}", code="MLC0352")
    return _rows(x, dim, index, v, "set")


@operation()
def index_reduce(input: Operand, dim: int, index: Operand, source: Operand, reduce: str, *,
                 include_self: bool = True) -> Tensor:
    """scatter_reduce of whole slices; reduce is "prod", "mean", "amax" or "amin" """
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
    zeros = full(0, w, (n,))
    return emit(T.Scatter, zeros, cast(x, i64), w, 0, "add")  # type: ignore[no-any-return]


@creation
def bincount(input: Operand, weights: Operand = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 occurs, or the sum of its weights, for all numbers up to the greatest.

    minlength   how many numbers are counted at least. Of an argument of a function that is being recorded nobody knows
                the greatest: there it is how many are counted, and a number beyond is an error when the code runs
    """
    n = count_of(minlength, "minlength")
    known = known_integers(input)
    if known is not None and known.ndim == 1 and known.size:
        n = max(n, int(known.max()) + 1)
    elif n == 0 and known is None:
        raise UserError("the length of the result must be given: how great the numbers are is known too late",
                        code="MLC0365", hint="pass minlength")
    return _bincount(input, weights, n)
