"""The functions `*_copy` of PyTorch: each gives the elements of a view in memory of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from mlc.frontend.functions.convolution import unfold_dimension
from mlc.frontend.functions.elementwise import detach
from mlc.frontend.functions.index import diagonal
from mlc.frontend.functions.shape import (
    expand,
    narrow,
    permute,
    select,
    split,
    split_with_sizes,
    squeeze,
    t,
    transpose,
    unbind,
    unsqueeze,
    view,
)
from mlc.frontend.functions.strided import as_strided
from mlc.frontend.functions.variant import variant
from mlc.frontend.operation import operation

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _copying(view: Callable[_P, _R], example: str) -> Callable[_P, _R]:
    """The public function `NAME_copy` for a view function."""
    name = view.__name__.removesuffix("_dimension")        # torch.unfold_copy is of Tensor.unfold
    body = variant(view, f"{name}_copy", f"The result of `{name}` as a copy, in memory of its own.", example)
    body.__module__ = __name__
    body.__doc__ = (body.__doc__ or "").replace(", which shares its memory", "")
    return operation()(body)


as_strided_copy = _copying(as_strided, "mlc.as_strided_copy(mlc.arange(5), (2,), (3,)).tolist() -> [0, 3]")
detach_copy = _copying(detach, "mlc.detach_copy(mlc.ones(2)) -> tensor([1., 1.], dtype=mlc.float32)")
diagonal_copy = _copying(diagonal, "mlc.diagonal_copy(mlc.ones(2, 2)) -> tensor([1., 1.], dtype=mlc.float32)")
expand_copy = _copying(expand, "mlc.expand_copy(mlc.ones(1), (2,)) -> tensor([1., 1.], dtype=mlc.float32)")
narrow_copy = _copying(narrow, "mlc.narrow_copy(mlc.arange(4), 0, 1, 2) -> tensor([1, 2], dtype=mlc.int64)")
permute_copy = _copying(permute, "mlc.permute_copy(mlc.ones(2, 3), (1, 0)).shape -> (3, 2)")
select_copy = _copying(select, "mlc.select_copy(mlc.arange(3), 0, 1) -> tensor(1, dtype=mlc.int64)")
split_copy = _copying(split, "len(mlc.split_copy(mlc.arange(4), 2)) -> 2")
split_with_sizes_copy = _copying(split_with_sizes, "len(mlc.split_with_sizes_copy(mlc.arange(4), [1, 3])) -> 2")
squeeze_copy = _copying(squeeze, "mlc.squeeze_copy(mlc.ones(2, 1)).shape -> (2,)")
t_copy = _copying(t, "mlc.t_copy(mlc.ones(2, 3)).shape -> (3, 2)")
transpose_copy = _copying(transpose, "mlc.transpose_copy(mlc.ones(2, 3), 0, 1).shape -> (3, 2)")
unbind_copy = _copying(unbind, "len(mlc.unbind_copy(mlc.ones(2, 3))) -> 2")
unfold_copy = _copying(unfold_dimension, "mlc.unfold_copy(mlc.arange(4), 0, 2, 2).shape -> (2, 2)")
unsqueeze_copy = _copying(unsqueeze, "mlc.unsqueeze_copy(mlc.ones(2), 0).shape -> (1, 2)")
view_copy = _copying(view, "mlc.view_copy(mlc.ones(4), (2, 2)).shape -> (2, 2)")
