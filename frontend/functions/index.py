"""Functions that pick elements: indexing, gathering, embedding.

Negative indices count from the end. An index out of range is found when the code runs, and raised as an IndexError
that names the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.create import creation
from mlc.frontend.functions.ragged import coordinates, picked
from mlc.frontend.functions.shape import sliced
from mlc.frontend.location import user_loc
from mlc.frontend.operands import (
    axis,
    broadcast_shapes,
    broadcast_to,
    cast,
    integer,
    is_tensor,
    number,
    plain_int,
    reshape,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import OPERATIONS, Array, Operand, Tensor, as_array, wrap
from mlc.frontend.trace import Tracer, as_user_error, current, emit, state
from mlc.ir import sizes
from mlc.ir.diag import Error, UserError, UserIndexError, UserTypeError
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import i64


def from_the_front(index: Tracer, n: Dim) -> Tracer:
    """Indices with n added to the negative ones."""
    if getattr(index.type.dtype, "unsigned", False):
        return index
    wide = cast(index, i64)
    return tracer(E.where(wide < 0, wide + (n if isinstance(n, int) else tracer(n)), wide))


def take(x: Tracer, index: Operand, at: int, what: str = "index") -> Tracer:
    """x at the indices along one axis, whose place the dimensions of `index` take."""
    wrapped = from_the_front(integer(index, what), x.shape[at])
    return emit(T.Take, x, wrapped, at, weak=False)  # type: ignore[no-any-return]


@operation()
def index_select(input: Operand, dim: int, index: Operand) -> Tensor:
    """The slices of a dimension at given indices: result[i, j] = input[index[i], j] for dim = 0.

    Args:
        input: Tensor.
        dim: The dimension; negative ones count from the last.
        index: 1-D tensor of integers; negative ones count from the end.

    Returns:
        Tensor of the dtype of `input`, with the length of `index` in dimension `dim`.

    Raises:
        UserError: `index` is not of integers (MLC0354), not 1-D (MLC0364), or out of range (MLC0340, an IndexError), or
            `dim` is out of range (MLC0356).

    Example:
        >>> mlc.index_select(mlc.tensor([[1, 2], [3, 4]]), 0, mlc.tensor([1, 1, 0]))
        tensor([[3, 4],
                [3, 4],
                [1, 2]], dtype=mlc.int64)
    """
    x, i = tracer(input), tracer(index)
    if i.ndim > 1:
        raise UserError(f"the index has {i.ndim} dimensions, expected 1", code="MLC0364")
    at, i = axis(dim, x.ndim), reshape(i, [sizes.product(i.shape)])
    if x.ndim:
        return take(x, i, at)
    if i.shape != (1,):
        raise UserError(f"the index has {i.shape[0]} elements, a 0-d tensor takes one", code="MLC0367")
    return reshape(take(reshape(x, [1]), i, 0), [])


@operation()
def gather(input: Operand, dim: int, index: Operand) -> Tensor:
    """Elements picked along a dimension: result[i, j] = input[index[i, j], j] for dim = 0.

    Args:
        input: Tensor.
        dim: The dimension; negative ones count from the last.
        index: Tensor of integers of as many dimensions; it may be smaller than `input` in the others. Negative indices
            count from the end, which PyTorch refuses.

    Returns:
        Tensor of the shape of `index` and the dtype of `input`.

    Raises:
        UserError: `index` is not of integers (MLC0354), of other dimensions (MLC0364), too great in another dimension
            (MLC0367), or out of range (MLC0340, an IndexError), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.gather(mlc.tensor([[1, 2], [3, 4]]), 1, mlc.tensor([[0], [1]]))
        tensor([[1],
                [4]], dtype=mlc.int64)
    """
    x, i = tracer(input), integer(index, "index")
    if not x.ndim or not i.ndim:                           # a number is a vector of one element
        line, rows = (v if v.ndim else reshape(v, [1]) for v in (x, i))
        return reshape(tracer(gather(line, axis(dim, x.ndim), rows)), i.shape)
    if i.ndim != x.ndim:
        raise UserError(f"the index has {i.ndim} dimensions, the input {x.ndim}", code="MLC0364")
    at = axis(dim, x.ndim)
    for k, n in enumerate(i.shape):
        if k != at and n != x.shape[k]:
            if isinstance(n, int) and isinstance(x.shape[k], int) and n > x.shape[k]:
                raise UserError(f"the index has size {n} in dimension {k}, the input {x.shape[k]}", code="MLC0367")
            x = sliced(x, k, 0, n)
    return emit(T.TakeAlong, x, from_the_front(i, x.shape[at]), at)  # type: ignore[no-any-return]


@operation()
def take_along_dim(input: Operand, indices: Operand, dim: int | None = None) -> Tensor:
    """Elements picked along a dimension, with broadcasting in the others: result[i, j] = input[indices[i, j], j].

    Args:
        input: Tensor.
        indices: Tensor of integers of as many dimensions; negative indices count from the end.
        dim: The dimension; None to pick from the flattened tensor.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: `indices` is not of integers (MLC0354), of other dimensions (MLC0364), does not broadcast (MLC0111),
            or is out of range (MLC0340, an IndexError).

    Example:
        >>> mlc.take_along_dim(mlc.tensor([[1, 2], [3, 4]]), mlc.tensor([[1]]), 0)
        tensor([[3, 4]], dtype=mlc.int64)
    """
    x, i = tracer(input), integer(indices, "indices")
    if dim is None:
        x, i, dim = reshape(x, [sizes.product(x.shape)]), reshape(i, [sizes.product(i.shape)]), 0
    if not x.ndim or not i.ndim:
        return gather(x, dim, i)
    if i.ndim != x.ndim:
        raise UserError(f"the indices have {i.ndim} dimensions, the input {x.ndim}", code="MLC0364")
    at = axis(dim, x.ndim)
    others = broadcast_shapes([1 if k == at else n for k, n in enumerate(x.shape)],
                              [1 if k == at else n for k, n in enumerate(i.shape)])
    x = broadcast_to(x, [x.shape[at] if k == at else n for k, n in enumerate(others)])
    i = broadcast_to(i, [i.shape[at] if k == at else n for k, n in enumerate(others)])
    return emit(T.TakeAlong, x, from_the_front(i, x.shape[at]), at)  # type: ignore[no-any-return]


@operation(name="take")
def take_flat(input: Operand, index: Operand) -> Tensor:
    """The elements of the flattened tensor at given indices.

    Args:
        input: Tensor.
        index: Tensor of integers; negative ones count from the end.

    Returns:
        Tensor of the shape of `index` and the dtype of `input`.

    Raises:
        UserError: `index` is not of integers (MLC0354), or out of range (MLC0340, an IndexError).

    Example:
        >>> mlc.take(mlc.tensor([[1, 2], [3, 4]]), mlc.tensor([3, 0]))
        tensor([4, 1], dtype=mlc.int64)
    """
    x = tracer(input)
    return take(reshape(x, [sizes.product(x.shape)]), index, 0)


def known_integers(x: Any) -> Array | None:
    """The elements of an array of integers, where they are there: of no argument of a function being recorded."""
    if isinstance(x, Tracer):
        found = current().elements(x)
    else:
        found = as_array(x) if state.trace is None and is_tensor(x) else None
    return found if found is not None and found.dtype.kind in "iu" else None


@operation(name="one_hot")
def _one_hot(tensor: Operand, n: int) -> Tensor:
    x = integer(tensor, "tensor")
    if n < 0:
        raise UserError("the number of classes must be given: it decides the shape of the result", code="MLC0365",
                        hint="pass num_classes")
    shape = [*x.shape, n]
    known = emit(T.Take, emit(T.Iota, (n,), 0, i64), x, 0)           # x itself, if it is a class
    classes = emit(T.Iota, tuple(shape), len(shape) - 1, i64)
    return cast(tracer(reshape(known, [*x.shape, 1]) == classes), i64)


@creation
def one_hot(tensor: Operand, num_classes: int = -1) -> Tensor:
    """One-hot vectors: result[..., k] = 1 where tensor[...] == k, and 0 elsewhere.

    Args:
        tensor: Tensor of integers from 0 to num_classes - 1.
        num_classes: Size of the last dimension of the result. -1 stands for one more than the greatest element, which
            is not known within a compiled function.

    Returns:
        Tensor of int64 of shape (*tensor.shape, num_classes).

    Raises:
        UserError: elements are no integers (MLC0354), one is no class (MLC0340, an IndexError), or `num_classes` is
            needed (MLC0365).

    Example:
        >>> nn.functional.one_hot(mlc.tensor([0, 2]), 3)
        tensor([[1, 0, 0],
                [0, 0, 1]], dtype=mlc.int64)
    """
    n = plain_int(num_classes, "num_classes")
    if n < 0 and (known := known_integers(tensor)) is not None and known.size:
        n = int(known.max()) + 1
    return _one_hot(tensor, n)


def rows_of(table: Tracer, index: Operand) -> Tracer:
    """The rows at the indices, none of which may be negative: there is no word before the first."""
    return emit(T.Take, table, integer(index, "input"), 0, weak=False)  # type: ignore[no-any-return]


@operation()
def embedding(input: Operand, weight: Operand, padding_idx: int | None = None) -> Tensor:
    """Rows of a table: result[..., j] = weight[input[...], j].

    Args:
        input: Tensor of integers from 0 to n - 1.
        weight: Tensor of shape (n, features).
        padding_idx: A row that gets no gradient; a negative one counts from the end.

    Returns:
        Tensor of shape (*input.shape, features) and the dtype of `weight`.

    Raises:
        UserError: `input` is not of integers (MLC0354) or out of range (MLC0340, an IndexError), `weight` is no matrix
            (MLC0364), or `padding_idx` is no row of a table of known size (MLC0356).

    Example:
        >>> nn.functional.embedding(mlc.tensor([2, 0]), mlc.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        tensor([[5., 6.],
                [1., 2.]], dtype=mlc.float32)
    """
    table = tracer(weight)
    if table.ndim != 2:
        raise UserError(f"the weight has {table.ndim} dimensions, expected 2", code="MLC0364")
    rows = rows_of(table, input)
    if padding_idx is None:
        return rows
    at, n = plain_int(padding_idx, "padding_idx"), table.shape[0]
    if isinstance(n, int) and not -n <= at < n:
        raise UserError(f"padding_idx = {at} is no row of {n}", code="MLC0356")
    hit = integer(input, "input") == (at if at >= 0 else n + at)
    return E.where(reshape(tracer(hit), [*hit.shape, 1]), E.detach(rows), rows)


@operation()
def diagonal(input: Operand, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The elements of a diagonal of two dimensions, as a new last dimension.

    Args:
        input: Tensor of at least 2 dimensions.
        offset: The diagonal: index in `dim2` less index in `dim1`.
        dim1: First of the dimensions; negative ones count from the last.
        dim2: Second of them.

    Returns:
        Tensor of the dtype of `input`, without `dim1` and `dim2`, with the diagonal as its last dimension.

    Raises:
        UserError: a dimension is out of range (MLC0356), both are the same (MLC0357), or a size is symbolic (MLC0365).

    Example:
        >>> mlc.diagonal(mlc.tensor([[1, 2], [3, 4]]))
        tensor([1, 4], dtype=mlc.int64)
        >>> mlc.diagonal(mlc.tensor([[1, 2], [3, 4]]), 1)
        tensor([2], dtype=mlc.int64)
    """
    from mlc.frontend.functions.shape import movedim
    x = tracer(input)
    x = tracer(movedim(x, (dim1, dim2), (-2, -1)))
    rows, columns = x.shape[-2], x.shape[-1]
    if isinstance(rows, Size) or isinstance(columns, Size):
        raise UserError(f"the diagonal of {rows} x {columns} has no length that is known", code="MLC0365")
    down, right = max(0, -offset), max(0, offset)
    length = max(0, min(rows - down, columns - right))
    flat = reshape(x, [*x.shape[:-2], rows * columns])
    start = down * columns + right
    stop = start + (length - 1) * (columns + 1) + 1 if length else start
    return sliced(flat, flat.ndim - 1, start if length else 0, stop if length else 0, columns + 1)


@operation()
def diag(input: Operand, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix that has a vector as its diagonal.

    Args:
        input: Tensor of 1 or 2 dimensions.
        diagonal: The diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: `input` is no vector or matrix (MLC0364).

    Example:
        >>> mlc.diag(mlc.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]], dtype=mlc.int64)
        >>> mlc.diag(mlc.tensor([[1, 2], [3, 4]]))
        tensor([1, 4], dtype=mlc.int64)
    """
    x = tracer(input)
    if x.ndim == 2:
        return _diagonal(x, diagonal)
    if x.ndim != 1:
        raise UserError(f"diag needs a vector or a matrix, found {x.ndim} dimensions", code="MLC0364")
    diagonal = plain_int(diagonal, "diagonal")
    size = x.shape[0] + abs(diagonal)
    row = emit(T.Iota, (size, size), 0, i64)
    column = emit(T.Iota, (size, size), 1, i64)
    low, high = (0, size - x.shape[0]) if diagonal < 0 else (size - x.shape[0], 0)
    zero = number(0, x.type.dtype)
    along = emit(T.Pad, x, zero, (low,), (high,), (0,))
    return E.where(column - row == diagonal, along, zero)


_diagonal = diagonal


# -- x[...] -----------------------------------------------------------------------------------------------------------
def getitem(input: Tensor, key: Any) -> Tensor:
    """input[key]: integers, slices, None, Ellipsis, arrays of integers and masks, as in numpy.

    On a tensor that has its elements, a key without arrays is a copy that numpy makes: it computes nothing.
    """
    keys = key if isinstance(key, tuple) else (key,)
    keys = tuple(_listed(k) for k in keys)
    loc = user_loc()
    try:
        if state.trace is None and not isinstance(input, Tracer) and isinstance(input.held, np.ndarray) and not any(
                is_tensor(k) for k in keys):
            return wrap(np.array(input.array[_basic(keys, input.ndim)], order="C"))
        parts = _expanded(keys, input.ndim)
        arrays = [k for k in parts if is_tensor(k)]
    except Error as error:
        raise as_user_error(error, "indexing", (input,), loc) from None
    except IndexError as error:
        raise UserIndexError(str(error), code="MLC0366", loc=loc) from None
    static = tuple(_static(k) for k in parts)
    return _getitem(input, static, arrays)


OPERATIONS["getitem"] = getitem


def _listed(k: Any) -> Any:
    """A list of integers is an array of them."""
    return as_array(k) if isinstance(k, list) else k


def _basic(keys: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    return tuple(_static_python(k) for k in _expanded(keys, rank))


def _static_python(k: Any) -> Any:
    if isinstance(k, slice):
        if isinstance(k.step, int) and k.step == 0:
            raise UserError("the step of a slice is 0", code="MLC0366")
        return slice(*(None if x is None else plain_int(x, "slice bound") for x in (k.start, k.stop, k.step)))
    return None if k is None else plain_int(k, "index")


def _expanded(keys: tuple[Any, ...], rank: int) -> list[Any]:
    """One key per dimension, and None for each new one."""
    for k in keys:
        if isinstance(k, bool | np.bool_) or (_is_mask(k) and not k.ndim):
            raise UserTypeError("one truth value is no index", code="MLC0369", hint="use mlc.where(condition, a, b)")
        if not (k is None or k is Ellipsis or isinstance(k, slice | Size) or is_tensor(k) or hasattr(k, "__index__")):
            raise UserTypeError(f"{type(k).__name__} is no index", code="MLC0369")
    used = sum(k.ndim if _is_mask(k) else 1 for k in keys if k is not None and not isinstance(k, EllipsisType))
    dots = sum(1 for k in keys if isinstance(k, EllipsisType))
    if used > rank or dots > 1:
        what = f"{used} indices for {rank} dimensions" if used > rank else "more than one ... in an index"
        raise UserIndexError(what, code="MLC0366")
    rest = [slice(None)] * (rank - used)
    if not dots:
        return [*keys, *rest]
    out: list[Any] = []
    for k in keys:
        out += rest if isinstance(k, EllipsisType) else [k]
    return out


def _is_mask(k: Any) -> bool:
    return is_tensor(k) and "bool" in str(k.dtype)


def _static(k: Any) -> Any:
    """A key as a hashable value: an integer, (start, stop, step), None, "array", or "mask" for one of truth values."""
    if is_tensor(k):
        return "mask" if _is_mask(k) else "array"
    if isinstance(k, slice):
        return tuple(x if x is None or isinstance(x, Size) else plain_int(x, "slice bound")
                     for x in (k.start, k.stop, k.step))
    return k if k is None or isinstance(k, Size) else plain_int(k, "index")


@operation()
def _getitem(input: Operand, keys: Sequence[Any], arrays: Sequence[Operand]) -> Tensor:
    """input[keys], with `arrays` where the keys say "array" or "mask"."""
    x = tracer(input)
    if "mask" in keys:
        x, keys, arrays = _without_masks(x, keys, arrays)
    if len(arrays) > 1:
        x, keys, arrays = _without_numbers(x, keys, arrays)
    out = _basic_part(*_without_far_ones(x, keys))
    places = [i for i, k in enumerate(k for k in keys if not isinstance(k, int | Size)) if k == "array"]
    if not places:
        return out
    indices = [integer(a, "the index") for a in arrays]
    shape = broadcast_shapes(*(i.shape for i in indices))
    if len(indices) == 1:
        return take(out, indices[0], places[0])
    # Several arrays index together: one index into the dimensions they use, brought to the front.
    from mlc.frontend.functions.shape import permute
    rest = [i for i in range(out.ndim) if i not in places]
    front = tracer(permute(out, [*places, *rest]))
    used = front.shape[: len(places)]
    flat = reshape(front, [sizes.product(used), *front.shape[len(places):]])
    position: Any = None
    for index, n in zip(indices, used):
        inside = _checked(from_the_front(index, n), n)
        position = inside if position is None else position * (n if isinstance(n, int) else tracer(n)) + inside
    taken: Tracer = emit(T.Take, flat, broadcast_to(tracer(position), shape), 0)
    adjacent = _adjacent(keys)
    if not adjacent:
        return taken
    k, lead = len(shape), places[0]                       # the result's dimensions stand where the arrays stood
    order = [*range(k, k + lead), *range(k), *range(k + lead, taken.ndim)]
    return permute(taken, order)


def _without_masks(x: Tracer, keys: Sequence[Any], arrays: Sequence[Operand]
                   ) -> tuple[Tracer, list[Any], list[Operand]]:
    """The same index with the positions that masks pick in place of them.

    A mask alone picks from its dimensions made one; beside other arrays it stands for an index into each of them.
    """
    alone = sum(k in ("mask", "array") for k in keys) == 1
    out: list[Any] = []
    found: list[Operand] = []
    given, at = iter(arrays), 0
    for k in keys:
        if k != "mask":
            out.append(k)
            at += k is not None
            found += [next(given)] if k == "array" else []
            continue
        mask = tracer(next(given))
        covered = x.shape[at: at + mask.ndim]
        if mask.shape != covered:
            raise UserIndexError(f"a mask of shape {_listing(mask.shape)} picks from dimensions {at} to "
                                 f"{at + mask.ndim - 1} of shape {_listing(covered)}", code="MLC0366")
        positions = picked(mask)
        if alone:
            x = reshape(x, [*x.shape[:at], sizes.product(covered), *x.shape[at + mask.ndim:]])
        found += [positions] if alone else coordinates(positions, covered)
        at += 1 if alone else mask.ndim
        out += ["array"] * (1 if alone else mask.ndim)
    return x, out, found


def _without_numbers(x: Tracer, keys: Sequence[Any], arrays: Sequence[Operand]
                     ) -> tuple[Tracer, list[Any], list[Operand]]:
    """The same index without arrays of no dimension, which stand for integers: they move no dimension to the front."""
    out, found, given, at = list(keys), [], iter(arrays), 0
    for i, k in enumerate(keys):
        if k == "array":
            index = tracer(next(given))
            if index.ndim:
                found.append(index)
            else:
                x, out[i] = take(x, reshape(index, [1]), at, "the index"), 0
        at += k is not None
    return x, out, found


def _without_far_ones(x: Tracer, keys: Sequence[Any]) -> tuple[Tracer, list[Any]]:
    """The same index without integers along dimensions whose sizes only data tell: these are looked up when it runs."""
    rest: list[Any] = []
    for k in keys:
        at = sum(other is not None for other in rest)
        if isinstance(k, int) and _told_by_data(x.shape[at]):
            x = take(x, number(k, i64), at)
        else:
            rest.append(k)
    return x, rest


def _told_by_data(n: Dim) -> bool:
    return not sizes.symbols(n).isdisjoint(current().root.named)


def _listing(shape: Sequence[Dim]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _adjacent(keys: Sequence[Any]) -> bool:
    """Whether nothing but integers stands between the first and the last array: PyTorch's rule for where they go.

    numpy's is another, for which an integer is an array, too: x[0, :, i] begins with the dimension of i.
    """
    at = [i for i, k in enumerate(keys) if k == "array"]
    return not any(k is None or isinstance(k, tuple) for k in keys[at[0]: at[-1] + 1])


def _checked(index: Tracer, n: Dim) -> Tracer:
    """The index; -1, which no dimension has, where it is outside its own dimension.

    Without this, an index out of range in one dimension could point to an element of another row.
    """
    limit = n if isinstance(n, int) else tracer(n)
    return tracer(E.where((index >= 0) & (index < limit), index, _FAR))


_FAR = -(1 << 40)
"""An index that stays out of range whatever the other dimensions add to it."""


def _basic_part(x: Tracer, keys: Sequence[Any]) -> Tracer:
    """x after the integers, slices and new dimensions; an array's dimension stays whole."""
    starts: list[Any] = []
    stops: list[Any] = []
    steps: list[int] = []
    shape: list[Any] = []
    at = 0
    for k in keys:
        if k is None:
            shape.append(1)
            continue
        n = x.shape[at]
        if isinstance(k, int | Size):
            first = n + k if isinstance(k, int) and k < 0 else k
            if isinstance(n, int) and isinstance(first, int) and not 0 <= first < n:
                raise UserIndexError(f"index {k} is out of range for dimension {at}, which has {n}", code="MLC0366")
            start, stop, step = first, first + 1, 1
        else:
            start, stop, step = _bounds(k if isinstance(k, tuple) else (None, None, None), n)
            shape.append(_length(start, stop, step))
        starts.append(start)
        stops.append(stop)
        steps.append(step)
        at += 1
    if any((a, b, c) != (0, n, 1) for a, b, c, n in zip(starts, stops, steps, x.shape)):
        x = _sliced(x, starts, stops, steps)
    return reshape(x, shape)


def _sliced(x: Tracer, starts: list[Any], stops: list[Any], steps: list[int]) -> Tracer:
    return emit(T.Slice, x, tuple(starts), tuple(stops), tuple(steps), weak=False)  # type: ignore[no-any-return]


def _length(start: Any, stop: Any, step: int) -> Any:
    if step > 0:
        return (stop - start + step - 1) // step
    return (start - stop - step - 1) // -step


def _place(k: int | Size, n: Dim) -> Dim:
    """Where a bound of a slice lies in a dimension of n elements, of which only data tell the number."""
    if isinstance(k, Size) or k == 0:
        return k
    return _at_most(k, n) if k > 0 else n - _at_most(-k, n)


def _at_most(x: Dim, n: Dim) -> Dim:
    """min(x, n), told by data as n is."""
    counts = current().counts

    def smaller() -> Dim:
        return counts.new(current().local(tracer(E.minimum(tracer(x), tracer(n)))), n)
    return counts.once(("at most", x, n), smaller)


def _bounds(key: tuple[Any, Any, Any], n: Dim) -> tuple[Any, Any, int]:
    """A slice as in `range(start, stop, step)`, within a dimension of n."""
    start, stop, step = key
    step = 1 if step is None else plain_int(step, "slice step")
    if step == 0:
        raise UserError("the step of a slice is 0", code="MLC0366")
    if isinstance(n, int) and not isinstance(start, Size) and not isinstance(stop, Size):
        first, last, by = slice(start, stop, step).indices(n)
        empty = 0 if not n else min(first, n - 1)
        return (first, last, by) if (last - first) * by > 0 else (empty, empty, by)
    if step > 0 and _told_by_data(n):
        begin, end = _place(start or 0, n), n if stop is None else _place(stop, n)
        return begin if end == n or begin == 0 else _at_most(begin, end), end, step
    if step < 0 and (start is not None or stop is not None):
        raise UserError(f"a slice with a negative step and bounds needs a size that is known, found {n}",
                        code="MLC0365")
    if step < 0:
        return n - 1, -1, step
    low: Any = 0 if start is None else n + start if isinstance(start, int) and start < 0 else start
    high = n if stop is None else n + stop if isinstance(stop, int) and stop < 0 else stop
    return low, high, step
