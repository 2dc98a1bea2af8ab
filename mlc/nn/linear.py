"""Linear maps and tables: Linear, Bilinear, Embedding, EmbeddingBag."""

from __future__ import annotations

from mlc.frontend.functions import index, neural
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.ir.diag import UserError
from mlc.nn import init
from mlc.nn.module import Module


class Identity(Module):
    """x, whatever it is made with"""

    def __init__(self, *args: object, **keywords: object) -> None:
        pass

    def forward(self, x: Operand) -> Tensor:
        return x  # type: ignore[no-any-return]


class Linear(Module):
    """x @ weight.T + bias"""

    _parameters = ("weight", "bias")

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: DTypeLike = "float32",
                 generator: init.Generator | None = None) -> None:
        bound = init.bound(in_features)
        self.weight = init.uniform((out_features, in_features), -bound, bound, dtype, generator)
        self.bias = init.uniform((out_features,), -bound, bound, dtype, generator) if bias else None

    def forward(self, x: Operand) -> Tensor:
        return neural.linear(x, self.weight, self.bias)


class Bilinear(Module):
    """result[..., k] = x1 @ weight[k] @ x2 + bias[k]"""

    _parameters = ("weight", "bias")

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
                 dtype: DTypeLike = "float32", generator: init.Generator | None = None) -> None:
        bound = init.bound(in1_features)
        self.weight = init.uniform((out_features, in1_features, in2_features), -bound, bound, dtype, generator)
        self.bias = init.uniform((out_features,), -bound, bound, dtype, generator) if bias else None

    def forward(self, x1: Operand, x2: Operand) -> Tensor:
        return neural.bilinear(x1, x2, self.weight, self.bias)


class Embedding(Module):
    """The rows of weight at the indices. That of padding_idx starts as zeros and is not trained."""

    _parameters = ("weight",)

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 dtype: DTypeLike = "float32", generator: init.Generator | None = None) -> None:
        self.weight, self.padding_idx = _table(num_embeddings, embedding_dim, padding_idx, dtype, generator)

    def forward(self, x: Operand) -> Tensor:
        return index.embedding(x, self.weight, self.padding_idx)


class EmbeddingBag(Module):
    """The sum, mean or max of the rows of weight at each bag of indices [bags, size]; those at padding_idx are left out
    """

    _parameters = ("weight",)

    def __init__(self, num_embeddings: int, embedding_dim: int, mode: str = "mean", padding_idx: int | None = None,
                 dtype: DTypeLike = "float32", generator: init.Generator | None = None) -> None:
        if mode not in ("sum", "mean", "max"):
            raise UserError(f"mode = {mode!r}", code="MLC0360", loc=user_loc(), hint='use "sum", "mean" or "max"')
        self.weight, self.padding_idx = _table(num_embeddings, embedding_dim, padding_idx, dtype, generator)
        self.mode = mode

    def forward(self, x: Operand, per_sample_weights: Operand = None) -> Tensor:
        return neural.embedding_bag(x, self.weight, self.mode, per_sample_weights, self.padding_idx)


def _table(rows: int, columns: int, padding: int | None, dtype: DTypeLike,
           generator: init.Generator | None) -> tuple[Tensor, int | None]:
    """Normally distributed rows, and the number of the one that is zero."""
    if padding is not None and not -rows <= padding < rows:
        raise UserError(f"padding_idx = {padding} is not within {rows} rows", code="MLC0366", loc=user_loc())
    weight = init.normal((rows, columns), dtype=dtype, generator=generator)
    if padding is None:
        return weight, None
    weight.array[padding] = 0
    return weight, padding % rows
