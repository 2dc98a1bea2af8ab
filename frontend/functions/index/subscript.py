"""Subscripts with numpy's semantics: x[...]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.autograd.view_node import ArrayView, ComputedStep, Step
from mlc.frontend.axes import plain_int
from mlc.frontend.functionalization import another, captured, linked, uncertain
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.index.keys import expanded, is_mask, is_number, is_truth, keys_of, parts_of, row_of
from mlc.frontend.functions.index.picking import from_the_front, take
from mlc.frontend.functions.ragged import coordinates, picked
from mlc.frontend.hints import hint_for
from mlc.frontend.in_place import as_real, check_real
from mlc.frontend.in_place_methods import copy_
from mlc.frontend.indexed_writes import put, put_number, without_leading_ones
from mlc.frontend.location import user_loc
from mlc.frontend.methods import SYNTAX
from mlc.frontend.operands import broadcast_shapes, broadcast_to, cast, integer, is_tensor, number, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.operation_errors import as_user_error
from mlc.frontend.storage import storage_of
from mlc.frontend.tensor import OPERATIONS, Array, Operand, Tensor, as_array
from mlc.frontend.trace import current, emit, state
from mlc.frontend.tracer import Tracer
from mlc.frontend.views import alias
from mlc.ir import sizes
from mlc.ir.diag import Error, UserError, UserIndexError
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import i64


def getitem(input: Tensor, key: Any) -> Tensor:
    """input[key]: integers, slices, None, Ellipsis, arrays of integers and masks, as in numpy.

    On a tensor that has its elements, a key without arrays gives a view.
    """
    if type(input) is Tensor and type(input._array) is np.ndarray and _addresses(key) and state.trace is None:
        if input._storage is None:
            storage_of(input)
        whole = (*key, ...) if type(key) is tuple else (key, ...)            # with which numpy gives no scalar
        try:
            array = input._array[whole]
        except (IndexError, OverflowError):                # which the general path explains
            pass
        else:
            return alias(input, array, Subscript(whole), "GetitemBackward")
    keys = keys_of(key)
    if len(keys) == 1 and is_truth(keys[0]):
        return getitem(OPERATIONS["unsqueeze"](input, 0), row_of(keys[0]))
    loc = user_loc()
    try:
        if (state.trace is None and not isinstance(input, Tracer) and isinstance(input.backing_array, np.ndarray)
                and not any(is_tensor(k) for k in keys)):
            storage_of(input)
            array = input.array[(*_basic(keys, input.ndim), ...)]
            return alias(input, array, lambda x: getitem(x, key), "GetitemBackward")
        parts = parts_of(input, keys)
        arrays = [k for k in parts if is_tensor(k)]
    except Error as error:
        raise as_user_error(error, "indexing", (input,), loc) from None
    except IndexError as error:
        raise UserIndexError(str(error), code="MLC0366", loc=loc, hint=hint_for("MLC0366", "indexing")) from None
    static = tuple(_static(k) for k in parts)
    if state.trace is not None:
        input = captured(input)
    out = _getitem(input, static, arrays)
    if type(out) is Tensor and type(input) is Tensor and not arrays and out is not input:
        storage_of(input).add(out)                         # on a device a copy, where PyTorch has a view
    if not isinstance(out, Tracer) or not all(map(is_number, arrays)):
        return out
    return linked(input, out, Picked(parts)) if isinstance(input, Tracer) else uncertain(out, input)


class Subscript(ArrayView):
    """The view that a key of integers, None and slices picks, which ends in an ellipsis."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key

    def __call__(self, x: Tensor) -> Tensor:
        return getitem(x, self.key[:-1])

    def make(self, array: Array) -> Array:
        picked: Array = array[self.key]
        return picked


class Picked(ComputedStep):
    """The view that a key picks with numbers, tensors without dimensions, as they are now."""

    __slots__ = ("key",)

    def __init__(self, key: Sequence[Any]) -> None:
        self.key = tuple(another(k) if isinstance(k, Tracer) else k for k in key)
        self.numbers = tuple(k for k in self.key if is_tensor(k))

    def __call__(self, x: Tensor) -> Tensor:
        return getitem(x, self.key)

    def at(self, numbers: Iterator[int]) -> Step:
        key = tuple(next(numbers) if is_tensor(k) else k for k in self.key)
        return lambda x: getitem(x, key)


def _addresses(key: Any) -> bool:
    """Whether a key consists of integers, None, and slices without a step."""
    for k in key if type(key) is tuple else (key,):
        kind = type(k)
        if kind is not int and k is not None and (kind is not slice or k.step is not None or not (
                (k.start is None or type(k.start) is int) and (k.stop is None or type(k.stop) is int))):
            return False
    return True


def setitem(input: Tensor, key: Any, value: Any) -> None:
    """input[key] = value, in place: the value, a tensor, an array or a number, is broadcast and converted."""
    if type(input) is Tensor and type(value) in (int, float) and _addresses(key) and put_number(input, key, value):
        return
    keys = keys_of(key)
    on_device = type(input) is Tensor and state.trace is None and not isinstance(input.backing_array, np.ndarray)
    if len(keys) == 1 and is_truth(keys[0]) and not on_device:
        return setitem(OPERATIONS["unsqueeze"](input, 0), row_of(keys[0]), value)
    loc = user_loc()
    try:
        if on_device:
            _set_on_device(input, keys, value)
            return
        parts = parts_of(input, keys)
        covered = [k.ndim if is_mask(k) else 1 for k in parts]
        arrays = [is_tensor(k) and not is_number(k) for k in parts]
        addressed = [addressed for k, n, is_array in zip(parts, covered, arrays)
                     for addressed in ([slice(None)] * n if is_array else [k])]
        target = getitem(input, tuple(addressed))
        if any(arrays):
            put(target, tuple(k if is_array else slice(None) for k, is_array in zip(parts, arrays)
                              if is_array or k is None or isinstance(k, slice)), value)
        else:
            copy_(target, without_leading_ones(value, target.ndim))
    except Error as error:
        raise as_user_error(error, "assignment", (input,), loc) from None
    except IndexError as error:
        raise UserIndexError(str(error), code="MLC0366", loc=loc, hint=hint_for("MLC0366", "indexing")) from None


def _set_on_device(input: Tensor, keys: tuple[Any, ...], value: Any) -> None:
    """input[keys] = value where elements are not in host memory: at positions that are computed on the host."""
    if not (len(keys) == 1 and is_truth(keys[0])):
        expanded(keys, input.ndim)                        # which refuses what is no subscript
    value = as_real(value, input)
    places = np.arange(input.numel()).reshape(input.shape)
    at = np.asarray(places[tuple(as_array(k) if is_tensor(k) else k for k in keys)])
    f = OPERATIONS
    given = value if isinstance(value, Tensor) else f["tensor"](value, dtype=input.dtype)
    check_real(given, input)
    source = f["broadcast_to"](f["cast"](without_leading_ones(given, at.ndim), input.dtype), at.shape)
    index, source = (x.to_device(input.device) if isinstance(x, Tensor) else x
                     for x in (f["reshape"](at, (-1,)), f["reshape"](source, (-1,))))
    flat = f["index_put"](f["reshape"](input, (-1,)), [index], source)
    copy_(input, f["reshape"](flat, input.shape))


OPERATIONS["getitem"] = getitem
SYNTAX["setitem"] = setitem


def _basic(keys: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    return tuple(_static_python(k) for k in expanded(keys, rank))


def _static_python(k: Any) -> Any:
    if isinstance(k, slice):
        if isinstance(k.step, int) and k.step == 0:
            raise UserError("the step of a slice is 0", code="MLC0366")
        return slice(*(None if x is None else plain_int(x, "slice bound") for x in (k.start, k.stop, k.step)))
    return None if k is None else plain_int(k, "index")


def _static(k: Any) -> Any:
    """A key as a hashable value: an integer, (start, stop, step), None, "array", or "mask" for one of truth values."""
    if is_tensor(k):
        return "mask" if is_mask(k) else "array"
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
    taken: Tracer = emit(T.Take, flat, _flat_position(indices, used, shape), 0)
    adjacent = _adjacent(keys)
    if not adjacent:
        return taken
    k, lead = len(shape), places[0]                       # the result's dimensions stand where the arrays stood
    order = [*range(k, k + lead), *range(k), *range(k + lead, taken.ndim)]
    return permute(taken, order)


def _flat_position(indices: Sequence[Tracer], used: Sequence[Dim], shape: Sequence[Dim]) -> Tracer:
    """One index into dimensions made one, from an index into each of them."""
    position: Any = None
    for index, n in zip(indices, used):
        inside = _checked(from_the_front(index, n), n)
        position = inside if position is None else position * (n if isinstance(n, int) else tracer(n)) + inside
    return broadcast_to(tracer(position), shape)


def coordinates_of(x: Tracer, indices: Sequence[Tracer]) -> tuple[Tracer, list[Dim], tuple[Dim, ...]]:
    """Indices and masks for the leading dimensions of x as one index into these made one.

    Returns the index, the shape of x with those dimensions made one, and the broadcast shape of the indices.
    """
    used = sum(i.ndim if is_mask(i) else 1 for i in indices)
    if used > x.ndim or not indices:
        raise UserIndexError(f"{used} indices for {x.ndim} dimensions", code="MLC0366")
    arrays: Sequence[Operand] = indices
    keys: Sequence[Any] = ["mask" if is_mask(i) else "array" for i in indices]
    seen = x
    if "mask" in keys:
        seen, keys, arrays = _without_masks(x, keys, arrays)
    found = [integer(a, "the index") for a in arrays]
    shape = broadcast_shapes(*(i.shape for i in found))
    front = seen.shape[: len(found)]
    return _flat_position(found, front, shape), [sizes.product(front), *seen.shape[len(found):]], shape


def _without_masks(x: Tracer, keys: Sequence[Any], arrays: Sequence[Operand]
                   ) -> tuple[Tracer, list[Any], list[Operand]]:
    """Replace the masks in an index by the positions of their true elements.

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
    """Replace 0-d arrays in an index by integers, since they do not move dimensions to the front."""
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
    """Resolve integers along dimensions of data-dependent size: these are looked up when the code runs."""
    rest: list[Any] = []
    for k in keys:
        at = sum(other is not None for other in rest)
        if isinstance(k, int) and _is_data_dependent(x.shape[at]):
            x = take(x, number(k, i64), at)
        else:
            rest.append(k)
    return x, rest


def _is_data_dependent(n: Dim) -> bool:
    return not sizes.symbols(n).isdisjoint(current().root.named)


def _listing(shape: Sequence[Dim]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _adjacent(keys: Sequence[Any]) -> bool:
    """Whether only integers separate the first and the last array: then their dimensions stay in place, as in PyTorch.

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
"""An index that is out of range whatever the indices of the other dimensions add to it."""


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
    """Position of a slice bound in a dimension of data-dependent size n."""
    if isinstance(k, Size) or k == 0:
        return k
    return _at_most(k, n) if k > 0 else n - _at_most(-k, n)


def _at_most(x: Dim, n: Dim) -> Dim:
    """min(x, n), for a data-dependent size n."""
    counts = current().data_dependent

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
    if step > 0 and _is_data_dependent(n):
        begin, end = _place(start or 0, n), n if stop is None else _place(stop, n)
        return begin if end == n or begin == 0 else _at_most(begin, end), end, step
    if step < 0 and (start is not None or stop is not None):
        raise UserError(f"a slice with a negative step and bounds needs a size that is known, found {n}",
                        code="MLC0365")
    if step < 0:
        return n - 1, -1, step
    if isinstance(start, int) and isinstance(stop, int) and (start < 0) == (stop < 0) and start >= stop:
        return 0, 0, step                                  # empty whatever the size
    low: Any = 0 if start is None else n + start if isinstance(start, int) and start < 0 else start
    high = n if stop is None else n + stop if isinstance(stop, int) and stop < 0 else stop
    return low, high, step


@operation()
def _copied(input: Operand, src: Operand) -> Tensor:
    """The elements of `src`, broadcast to the shape of `input` and converted to its dtype."""
    x, src = tracer(input), as_real(src, input)
    check_real(tracer(src), x)
    return broadcast_to(cast(tracer(src), x.type.dtype), x.shape)
