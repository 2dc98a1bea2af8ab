"""Rows of a table, and reductions of them for bags of indices."""

from __future__ import annotations

import math
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.index import padding_row, rows_of
from mlc.frontend.functions.neural import sparse_rows
from mlc.frontend.functions.scatter import index_add, scatter_reduce
from mlc.frontend.functions.sort import searchsorted
from mlc.frontend.operands import broadcast_to, cast, full, integer, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import OPERATIONS, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i64


def _rows(table: Tracer, at: Tracer, max_norm: float | None, norm_type: float, by_frequency: bool) -> Tensor:
    """Rows of a table, of no greater norm than this, and with gradients divided by how often a row occurs."""
    rows: Tensor = rows_of(table, at)
    if max_norm is not None:                               # the gradient is that by the rows as they would be stored
        norm = R.norm(rows, norm_type, -1, True)
        rows = rows + E.detach(rows * E.where(norm > max_norm, max_norm / (norm + 1e-7), 1.0) - rows)
    if by_frequency:
        flat = reshape(at, [sizes.product(at.shape)])
        often = index_add(full(0, table, [table.shape[0]]), 0, flat, full(1, table, flat.shape))
        part = rows / reshape(tracer(rows_of(tracer(often), at)), [*at.shape, 1])
        rows = part + E.detach(rows - part)
    return rows


@operation(name="embedding")
def _embedding(input: Operand, weight: Operand, padding_idx: int | None = None, max_norm: float | None = None,
               norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of a table."""
    table, at = tracer(weight), integer(input, "input")
    if table.ndim != 2:
        raise UserError(f"the weight has {table.ndim} dimensions, expected 2", code="MLC0364")
    rows = _rows(table, at, max_norm, norm_type, scale_grad_by_freq)
    if padding_idx is None:
        return rows
    hit = at == padding_row(padding_idx, table.shape[0])
    return E.where(reshape(tracer(hit), [*at.shape, 1]), E.detach(rows), rows)


def _bound(weight: Operand, input: Operand, max_norm: float | None, norm_type: float) -> None:
    """Scale the rows that were looked up within their table, as PyTorch does, where it is a tensor that the program
    holds; not one that is an argument of a function that is recorded."""
    if max_norm is None or type(weight) is not Tensor:
        return
    with GradMode(False):
        at = input if isinstance(input, Tensor) else OPERATIONS["tensor"](input)
        weight[at] = _embedding(at, weight, None, max_norm, norm_type)


@coded
def embedding(input: Operand, weight: Operand, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of a table: result[..., j] = weight[input[...], j].

    Args:
        input: Tensor of integers from 0 to n - 1.
        weight: Tensor of shape (n, features).
        padding_idx: A row that gets no gradient; a negative one counts from the end.
        max_norm: Rows of a greater norm are scaled to it, in the table itself; but the table is not changed where it is
            an argument of a function that is recorded, as by `mlc.grad`. None for no bound.
        norm_type: Order of that norm.
        scale_grad_by_freq: Whether the gradient by a row is divided by how often it occurs in `input`.
        sparse: Whether `backward` gives the table a sparse gradient, of the rows that occur in `input`. Within recorded
            functions, gradients are dense.

    Returns:
        Tensor of shape (*input.shape, features) and the dtype of `weight`.

    Raises:
        UserError: `input` is not of integers (MLC0354) or out of range (MLC0340, an IndexError), `weight` is no matrix
            (MLC0364), or `padding_idx` is no row (MLC0356).

    Example:
        >>> nn.functional.embedding(mlc.tensor([2, 0]), mlc.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        tensor([[5., 6.],
                [1., 2.]], dtype=mlc.float32)
    """
    rows = sparse_rows.embedding if sparse and sparse_rows.wanted(weight) else _embedding
    found = rows(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    _bound(weight, input, max_norm, norm_type)
    return found


@coded
def embedding_bag(input: Operand, weight: Operand, offsets: Operand = None, max_norm: float | None = None,
                  norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Operand = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:
    """The sum, mean or maximum of rows of a table, for each bag of indices.

    Args:
        input: Tensor of integers of shape (bags, size), or (indices,) with `offsets`.
        weight: Tensor of shape (n, features).
        offsets: Tensor of integers: where the bags begin in a 1-D `input`.
        max_norm: Rows of a greater norm are scaled to it, in the table itself; but the table is not changed where it is
            an argument of a function that is recorded, as by `mlc.grad`. None for no bound.
        norm_type: Order of that norm.
        scale_grad_by_freq: Whether the gradient by a row is divided by how often it occurs in `input`.
        mode: "sum", "mean" or "max".
        sparse: Whether `backward` gives the table a sparse gradient, of the rows that occur in `input`. Within recorded
            functions, gradients are dense.
        per_sample_weights: Factors of rows, of the shape of `input`, for mode "sum"; None for 1.
        include_last_offset: Whether the last of the offsets is the end of the last bag.
        padding_idx: Index that does not count, nor gets a gradient; a negative one counts from the end.

    Returns:
        Tensor of shape (bags, features); 0 for bags of nothing but padding.

    Raises:
        UserError: `input` is not of integers (MLC0354) or out of range (MLC0340, an IndexError), a number of dimensions
            is wrong (MLC0364), `mode` is another string, does not go with weights, or a setting is not supported
            (MLC0360), or `padding_idx` is no row (MLC0356).

    Example:
        >>> nn.functional.embedding_bag(mlc.tensor([[0, 1]]), mlc.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[2., 3.]], dtype=mlc.float32)
        >>> nn.functional.embedding_bag(mlc.tensor([0, 1, 1]), mlc.tensor([[1.0], [3.0]]), mlc.tensor([0, 2]))
        tensor([[2.],
                [3.]], dtype=mlc.float32)
    """
    if sparse and sparse_rows.wanted(weight):
        rows, places, padding = sparse_rows.bags(input, weight, padding_idx, max_norm, norm_type, mode,
                                                 scale_grad_by_freq)
        found = _embedding_bag(places, rows, offsets, None, norm_type, False, mode, False, per_sample_weights,
                               include_last_offset, padding)
    else:
        found = _embedding_bag(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, False,
                               per_sample_weights, include_last_offset, padding_idx)
    _bound(weight, input, max_norm, norm_type)
    return found


@operation(name="embedding_bag")
def _embedding_bag(input: Operand, weight: Operand, offsets: Operand, max_norm: float | None, norm_type: float,
                   scale_grad_by_freq: bool, mode: str, sparse: bool, per_sample_weights: Operand,
                   include_last_offset: bool, padding_idx: int | None) -> Tensor:
    """Reductions of rows of a table."""
    at, table = integer(input, "input"), tracer(weight)
    if at.ndim != (2 if offsets is None else 1) or table.ndim != 2:
        raise UserError(f"the input has {at.ndim} dimensions, the weight {table.ndim}, expected 2 and 2, or 1 and 2 "
                        "with offsets", code="MLC0364")
    if mode not in ("sum", "mean", "max"):
        raise UserError(f"mode = {mode!r}", code="MLC0360", hint='use "sum", "mean" or "max"')
    if per_sample_weights is not None and mode != "sum":
        raise UserError("per_sample_weights needs mode = \"sum\"", code="MLC0360")
    rows = _rows(table, at, max_norm, norm_type, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * reshape(tracer(per_sample_weights), [*at.shape, 1])
    counted = None if padding_idx is None else reshape(
        tracer(at != padding_row(padding_idx, table.shape[0])), [*at.shape, 1])
    if offsets is not None:
        begins = cast(integer(offsets, "offsets"), i64)
        if begins.ndim != 1:
            raise UserError(f"the offsets have {begins.ndim} dimensions, expected 1", code="MLC0364")
        return _of_offsets(tracer(rows), counted, begins, mode, include_last_offset)
    if at.shape[1] == 0 or (mode == "sum" and counted is None):
        return R.sum(rows, 1)                              # zeros if bags are empty, as of nothing but padding
    if counted is None:
        return _first_max(rows) if mode == "max" else R.sum(rows, 1) / E.maximum(E.count(at.shape[1], table), 1)
    if mode == "max":
        highest = _first_max(E.where(counted, rows, -math.inf))
        return E.where(R.any(counted, 1), highest, 0.0)
    total = R.sum(E.where(counted, rows, 0.0), 1)
    return total if mode == "sum" else total / E.maximum(R.sum(counted, 1), 1)


def _first_max(rows: Operand) -> Tensor:
    """The maxima of bags of rows; the gradient of each goes to the first row that has it."""
    found: Tensor = R.max(rows, 1)[0]
    return found


def _of_offsets(rows: Tracer, counted: Tracer | None, starts: Tracer, mode: str, has_end: bool) -> Tensor:
    """The bags of rows that begin at these places."""
    count, features = rows.shape
    bags: Any = starts.shape[0] - 1 if has_end else starts.shape[0]
    place = searchsorted(starts, emit(T.Iota, (count,), 0, i64), right=True) - 1
    inside = (place >= 0) & (place < bags)
    counts = reshape(tracer(inside), [count, 1])
    counts = tracer(counts if counted is None else counts & counted)
    bag = E.where(inside, place, 0)
    zeros = full(0, rows, [bags, features])
    if mode == "max":
        return _first_max_of_bags(rows, counts, tracer(bag), bags)
    total = index_add(zeros, 0, bag, E.where(counts, rows, 0.0))
    if mode == "sum":
        return total
    members = index_add(full(0, rows, [bags, 1]), 0, bag, cast(counts, rows.type.dtype))
    return total / E.maximum(members, 1.0)


def _first_max_of_bags(rows: Tracer, counts: Tracer, bag: Tracer, bags: Any) -> Tensor:
    """The maxima of the rows that count, by bag; the gradient of each goes to the first row that has it."""
    count, features = rows.shape
    index = broadcast_to(reshape(bag, [count, 1]), [count, features])
    kept = tracer(E.detach(E.where(counts, rows, -math.inf)))
    highest = scatter_reduce(full(-math.inf, rows, [bags, features]), 0, index, kept, "amax")
    number = broadcast_to(emit(T.Iota, (count, 1), 0, i64), [count, features])
    has = (kept == emit(T.TakeAlong, tracer(highest), index, 0)) & counts
    none = full(count, number, [bags, features])
    first = tracer(scatter_reduce(none, 0, index, E.where(has, number, count), "amin"))
    found = emit(T.TakeAlong, rows, tracer(E.clamp(first, 0, count - 1)), 0)
    return E.where(first == count, 0.0, found)


OPERATIONS["embedding"], OPERATIONS["embedding_bag"] = embedding, embedding_bag
