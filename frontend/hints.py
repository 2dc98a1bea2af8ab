"""Hints for the usual mistakes in calls of operations: by the code of the error and the name of the operation."""

from __future__ import annotations

from mlc.frontend.location import text

_INTEGER = "convert it: x.long()"
_CONVOLVED = "the first dimensions are [batch, channels]; x.unsqueeze(0) makes a batch of one"
_MASKS = "compare first, as in (x > 0) & (y > 0), or convert it: x.long()"

HINTS: dict[tuple[str, str], str] = {
    ("MLC0111", ""): "shapes broadcast from the last dimension on; x.unsqueeze(dim) inserts one of size 1",
    ("MLC0111", "stack"): "pad them to one shape, or join them along a dimension that they have: mlc.cat",
    ("MLC0115", "cat"): "only the sizes of the dimension that is joined may differ; mlc.stack joins along a new one",
    ("MLC0340", ""): "indices count from 0 to the size less 1, or back from -1",
    ("MLC0340", "embedding"): "num_embeddings is greater than every index",
    ("MLC0340", "cross_entropy"): "classes count from 0; the input has one score for each class",
    ("MLC0340", "nll_loss"): "classes count from 0; the input has one score for each class",
    ("MLC0340", "one_hot"): "num_classes is greater than every class",
    ("MLC0353", "cat"): "pass the tensors in one list, which has at least one",
    ("MLC0354", ""): _INTEGER,
    ("MLC0357", "permute"): "name each dimension once",
    ("MLC0358", "view"): "the sizes multiply to the number of elements; one may be -1, for what remains",
    ("MLC0358", "reshape"): "the sizes multiply to the number of elements; one may be -1, for what remains",
    ("MLC0358", "split"): "give sizes that add up to the dimension's, or one size for all pieces",
    ("MLC0359", "bitwise_and"): _MASKS,
    ("MLC0359", "bitwise_or"): _MASKS,
    ("MLC0359", "bitwise_xor"): _MASKS,
    ("MLC0359", "bitwise_left_shift"): _INTEGER,
    ("MLC0359", "bitwise_right_shift"): _INTEGER,
    ("MLC0360", "topk"): "k is at most the size of the dimension",
    ("MLC0360", "multinomial"): "draw fewer, or with replacement=True",
    ("MLC0360", "randint"): "the numbers are from low up to high, without high: low < high",
    ("MLC0364", "conv1d"): _CONVOLVED,
    ("MLC0364", "conv2d"): _CONVOLVED,
    ("MLC0364", "conv3d"): _CONVOLVED,
    ("MLC0366", "indexing"): "x.shape has the sizes; a mask has those of the dimensions that it picks from",
    ("MLC0367", "matmul"): "the last size of the left operand is the last but one of the right; x.mT is transposed",
    ("MLC0367", "linear"): "make the layer for the features of its input, its last size, or flatten or transpose that",
    ("MLC0367", "layer_norm"): "normalized_shape is the end of the input's shape, as in nn.LayerNorm(x.shape[-1])",
    ("MLC0367", "einsum"): "a letter stands for one size in all operands",
    ("MLC0367", "linalg.inv"): "mlc.linalg.pinv is for all matrices",
    ("MLC0367", "max_pool2d"): "use a smaller kernel_size, or padding",
    ("MLC0367", "conv2d"): "use a smaller kernel_size, or padding",
}
"""With an empty name, those for all other operations."""

_SHOWN = {"_getitem": "indexing", "_repeat_interleave": "repeat_interleave", "_sparse_mm": "mm",
          "_sparse_mm_reduce": "mm", "_sparse_sampled_mm": "sampled_addmm"}
"""The public functions that operations are the parts of, by the operations' names."""


def shown(operation: str) -> str:
    """The name of an operation in messages."""
    return _SHOWN.get(operation, operation)


def hint_for(code: str | None, operation: str) -> str | None:
    """The hint for an error of an operation; None if there is none, and in the text language, which is not Python."""
    return None if text.loc is not None else HINTS.get((code or "", operation)) or HINTS.get((code or "", ""))
