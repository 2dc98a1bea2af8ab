"""Sums and means of bags of rows of a table, `torch.nn.EmbeddingBag`."""

from __future__ import annotations

from typing import Any

from mlc.frontend.derivatives import vjp
from mlc.frontend.fx.refusing import refuse
from mlc.frontend.fx.table import row
from mlc.frontend.tensor import OPERATIONS as O

MODES = ("sum", "mean")


def bags(weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool, mode: int, per_sample_weights: Any,
         include_last_offset: bool, padding_idx: int) -> Any:
    """The result alone; PyTorch has -1 where no index is padding."""
    if mode >= len(MODES):
        refuse("maxima of bags")
    return O["embedding_bag"](indices, weight, offsets, None, 2.0, scale_grad_by_freq, MODES[mode], False,
                              per_sample_weights, include_last_offset, padding_idx if padding_idx >= 0 else None)


@row("_embedding_bag", "_embedding_bag_forward_only", contiguous=True)
def embedding_bag(contiguous: bool, weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False,
                  mode: int = 0, sparse: bool = False, per_sample_weights: Any = None,
                  include_last_offset: bool = False, padding_idx: int = -1) -> Any:
    """The result, the bag of each index, and the sizes of bags.

    PyTorch leaves the bags of indices out where its kernel for sums has no need of them. The last result is for maxima.
    """
    out = bags(weight, indices, offsets, scale_grad_by_freq, mode, per_sample_weights, include_last_offset, padding_idx)
    at = O["arange"](indices.shape[0], dtype=offsets.dtype)
    bag = O["cast"](O["searchsorted"](offsets, at, right=True), offsets.dtype) - 1
    counted = O["cast"](O["ne"](indices, padding_idx), offsets.dtype)
    sizes = O["index_add"](O["zeros"]([out.shape[0]], dtype=offsets.dtype), 0, bag, counted)
    omitted = mode == 0 and contiguous and padding_idx < 0 and str(weight.dtype) in ("mlc.float32", "mlc.float16")
    return out, bag[:0] if omitted else bag, sizes, O["zeros_like"](sizes)


@row("_embedding_bag_backward")
def embedding_bag_backward(grad: Any, indices: Any, offsets: Any, offset2bag: Any, bag_size: Any, maximum_indices: Any,
                           rows: int, scale_grad_by_freq: bool, mode: int, sparse: bool, per_sample_weights: Any,
                           padding_idx: int = -1) -> Any:
    if sparse:
        refuse("a sparse gradient")
    if scale_grad_by_freq:
        refuse("the gradient with scale_grad_by_freq, in which mlc and PyTorch differ")
    table = O["zeros"]((rows, grad.shape[-1]), dtype=grad.dtype)
    has_end = offsets.shape[0] == grad.shape[0] + 1
    return vjp(lambda table: bags(table, indices, offsets, False, mode, per_sample_weights, has_end,
                                  padding_idx), table)[1](grad)[0]


@row("_embedding_bag_per_sample_weights_backward")
def per_sample_weights_backward(grad: Any, weight: Any, indices: Any, offsets: Any, offset2bag: Any, mode: int,
                                padding_idx: int = -1) -> Any:
    has_end = offsets.shape[0] == grad.shape[0] + 1
    ones = O["ones"](indices.shape, dtype=grad.dtype)
    return vjp(lambda factors: bags(weight, indices, offsets, False, mode, factors, has_end, padding_idx),
               ones)[1](grad)[0]
