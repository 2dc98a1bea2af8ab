"""Rows of a table whose gradient is sparse: it has the rows that occur, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.graph import Node
from mlc.frontend.functions.index import padding_row
from mlc.frontend.location import user_loc
from mlc.frontend.methods import OPERATIONS, call
from mlc.frontend.sparse.layout import sparse_coo
from mlc.frontend.sparse.tensor import SparseTensor
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import state
from mlc.ir.diag import UserError


def wanted(weight: Any) -> bool:
    """Whether a gradient by the table is to be recorded, eagerly."""
    return state.trace is None and mode.enabled and type(weight) is Tensor and weight.requires_grad


class RowsNode(Node):
    """Rows of a table: the cotangents of the rows, and which they are, make its sparse gradient."""

    __slots__ = ("index", "padding", "shape")

    def __init__(self, table: Tensor, rows: Tensor, index: Tensor, padding: Any) -> None:
        super().__init__([table], [rows])
        self.index, self.padding, self.shape = index, padding, table.shape

    def name(self) -> str:
        return "EmbeddingBackward"

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        cotangent, = cotangents
        if cotangent is None:
            return [None]
        index, values = self.index.reshape(1, -1), cotangent.reshape(-1, self.shape[1])
        if self.padding is not None:
            kept = call("nonzero", index[0] != self.padding).reshape(-1)
            index, values = index[:, kept], call("index_select", values, 0, kept)
        return [SparseTensor((index, values), self.shape, sparse_coo, False)]

    def check_saved(self) -> None:
        """Nothing that is saved is dropped."""


def embedding(input: Operand, weight: Tensor, padding_idx: int | None, max_norm: float | None, norm_type: float,
              by_frequency: bool) -> Tensor:
    """`embedding` with a sparse gradient by the table."""
    if by_frequency:
        raise UserError("a sparse gradient is not divided by how often rows occur", code="MLC0360", loc=user_loc(),
                        hint="leave out scale_grad_by_freq, or sparse")
    index = (input if isinstance(input, Tensor) else call("tensor", input)).detach().clone().to("int64")
    rows = OPERATIONS["embedding"](input, weight.detach(), None, max_norm, norm_type)
    RowsNode(weight, rows, index, None if padding_idx is None else padding_row(padding_idx, weight.shape[0]))
    return rows  # type: ignore[no-any-return]


def bags(input: Operand, weight: Tensor, padding_idx: int | None, max_norm: float | None, norm_type: float,
         reduction: str, by_frequency: bool) -> tuple[Tensor, Tensor, int | None]:
    """The rows of the indices of all bags, as a table with a sparse gradient by the first one, the indices into it, and
    the index of a row of zeros that stands for padding."""
    if reduction == "max":
        raise UserError("a maximum over bags has no sparse gradient", code="MLC0360", loc=user_loc(),
                        hint='mode = "sum" and "mean" have one; or leave out sparse')
    index = input if isinstance(input, Tensor) else call("tensor", input)
    count = index.numel()
    rows = embedding(index.reshape(count), weight, padding_idx, max_norm, norm_type, by_frequency)
    places = call("arange", count).reshape(index.shape)
    if padding_idx is None:
        return rows, places, None
    rows = call("cat", [rows, call("zeros", 1, weight.shape[1], dtype=weight.dtype)])
    padding = padding_row(padding_idx, weight.shape[0])
    return rows, call("where", index == padding, count, places), count
