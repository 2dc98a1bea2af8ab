"""Linear maps and tables: Linear, Bilinear, Embedding, EmbeddingBag."""

from __future__ import annotations

from mlc.frontend.functions import index, neural
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.ir.diag import UserError
from mlc.nn import init
from mlc.nn.module import Module


class Identity(Module):
    """Identity: x.

    Shape:
        Any shape -> the same shape.

    Args:
        args: Ignored.
        keywords: Ignored, so that it can stand in for any other layer.

    Example:
        >>> nn.Identity(54, bias=False)(mlc.tensor([1.0, 2.0]))
        tensor([1., 2.], dtype=mlc.float32)
    """

    def __init__(self, *args: object, **keywords: object) -> None:
        pass

    def forward(self, x: Operand) -> Tensor:
        return x  # type: ignore[no-any-return]


class Linear(Module):
    """Affine map of the last dimension: x @ weight.T + bias.

    The dtype of the input is that of the weights; integers are converted to it, floats are not. Both parameters are at
    first uniform in [-1/sqrt(in_features), 1/sqrt(in_features)), as in PyTorch.

    Shape:
        [..., in_features] -> [..., out_features].

    Attributes:
        weight: Parameter [out_features, in_features].
        bias: Parameter [out_features], or None.

    Args:
        in_features: Size of the last dimension of the input.
        out_features: Size of the last dimension of the result.
        bias: Whether a bias is added.
        dtype: Floating-point dtype of the parameters.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: The input has another number of features (MLC0367), or no dimensions (MLC0364).
        UserTypeError: The input is of another floating-point dtype (MLC0420).

    Example:
        >>> nn.Linear(2, 3)(mlc.ones(4, 2)).shape
        (4, 3)
    """

    _parameters = ("weight", "bias")

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: DTypeLike = "float32",
                 generator: init.Generator | None = None) -> None:
        bound = init.bound(in_features)
        self.weight = init.uniform((out_features, in_features), -bound, bound, dtype, generator)
        self.bias = init.uniform((out_features,), -bound, bound, dtype, generator) if bias else None

    def forward(self, x: Operand) -> Tensor:
        return neural.linear(x, self.weight, self.bias)


class Bilinear(Module):
    """Bilinear form of two inputs: y[..., k] = x1 @ weight[k] @ x2 + bias[k].

    Both parameters are at first uniform in [-1/sqrt(in1_features), 1/sqrt(in1_features)), as in PyTorch.

    Shape:
        [..., in1_features] and [..., in2_features] -> [..., out_features].

    Attributes:
        weight: Parameter [out_features, in1_features, in2_features].
        bias: Parameter [out_features], or None.

    Args:
        in1_features: Size of the last dimension of the first input.
        in2_features: Size of the last dimension of the second input.
        out_features: Size of the last dimension of the result.
        bias: Whether a bias is added.
        dtype: Floating-point dtype of the parameters.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: The shapes of the inputs do not fit (MLC0367).

    Example:
        >>> nn.Bilinear(2, 3, 4)(mlc.ones(5, 2), mlc.ones(5, 3)).shape
        (5, 4)
    """

    _parameters = ("weight", "bias")

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
                 dtype: DTypeLike = "float32", generator: init.Generator | None = None) -> None:
        bound = init.bound(in1_features)
        self.weight = init.uniform((out_features, in1_features, in2_features), -bound, bound, dtype, generator)
        self.bias = init.uniform((out_features,), -bound, bound, dtype, generator) if bias else None

    def forward(self, x1: Operand, x2: Operand) -> Tensor:
        return neural.bilinear(x1, x2, self.weight, self.bias)


class Embedding(Module):
    """Lookup table: y[..., :] = weight[x[...], :].

    Rows are at first standard normal, that of `padding_idx` is 0 and receives no gradient.

    Shape:
        [...] of integers -> [..., embedding_dim].

    Attributes:
        weight: Parameter [num_embeddings, embedding_dim].

    Args:
        num_embeddings: Number of rows.
        embedding_dim: Size of a row.
        padding_idx: Row that stays as it is, or None; negative numbers count from the last.
        dtype: Floating-point dtype of the table.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: `padding_idx` is no row (MLC0366).
        UserIndexError: An index is not in [0, num_embeddings) (MLC0340).
        UserTypeError: The indices are not integers (MLC0354).

    Example:
        >>> nn.Embedding(10, 3)(mlc.tensor([[1, 2], [4, 9]])).shape
        (2, 2, 3)
    """

    _parameters = ("weight",)

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 dtype: DTypeLike = "float32", generator: init.Generator | None = None) -> None:
        self.weight, self.padding_idx = _table(num_embeddings, embedding_dim, padding_idx, dtype, generator)

    def forward(self, x: Operand) -> Tensor:
        return index.embedding(x, self.weight, self.padding_idx)


class EmbeddingBag(Module):
    """Reduced lookup: y[i, :] = reduce over j of weight[x[i, j], :], with the sum, mean or maximum.

    Indices equal to `padding_idx` are left out, also of the number a mean divides by; an empty bag gives 0. Unlike in
    PyTorch there are no offsets: bags are the rows of a matrix. Rows are at first standard normal, that of
    `padding_idx` is 0.

    Shape:
        [bags, size] of integers, and optionally per_sample_weights [bags, size] -> [bags, embedding_dim].

    Attributes:
        weight: Parameter [num_embeddings, embedding_dim].

    Args:
        num_embeddings: Number of rows.
        embedding_dim: Size of a row.
        mode: "sum", "mean" or "max"; per_sample_weights goes with "sum" alone.
        padding_idx: Row that does not count, or None; negative numbers count from the last.
        dtype: Floating-point dtype of the table.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: `mode` is not allowed or does not go with per_sample_weights (MLC0360), `padding_idx` is no row
            (MLC0366), or the input is no matrix (MLC0364).
        UserIndexError: An index is not in [0, num_embeddings) (MLC0340).

    Example:
        >>> nn.EmbeddingBag(10, 3)(mlc.tensor([[1, 2, 4], [4, 9, 9]])).shape
        (2, 3)
    """

    _parameters = ("weight",)

    def __init__(self, num_embeddings: int, embedding_dim: int, mode: str = "mean", padding_idx: int | None = None,
                 dtype: DTypeLike = "float32", generator: init.Generator | None = None) -> None:
        if mode not in ("sum", "mean", "max"):
            raise UserError(f"mode = {mode!r}", code="MLC0360", loc=user_loc(), hint='use "sum", "mean" or "max"')
        self.weight, self.padding_idx = _table(num_embeddings, embedding_dim, padding_idx, dtype, generator)
        self.mode = mode

    def forward(self, x: Operand, per_sample_weights: Operand = None) -> Tensor:
        """Reduce each bag of rows of the table.

        Args:
            x: Indices [bags, size], integers.
            per_sample_weights: Factors [bags, size] of the rows, only with mode "sum".

        Returns:
            Tensor [bags, embedding_dim] of the dtype of the table.
        """
        return neural.embedding_bag(x, self.weight, self.mode, per_sample_weights, self.padding_idx)


def _table(rows: int, columns: int, padding: int | None, dtype: DTypeLike,
           generator: init.Generator | None) -> tuple[Tensor, int | None]:
    """Normally distributed rows, and the index of the padding row, which is zero."""
    if padding is not None and not -rows <= padding < rows:
        raise UserError(f"padding_idx = {padding} is not within {rows} rows", code="MLC0366", loc=user_loc())
    weight = init.normal((rows, columns), dtype=dtype, generator=generator)
    if padding is None:
        return weight, None
    weight.array[padding] = 0
    return weight, padding % rows
