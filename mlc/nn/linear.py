"""Linear maps and tables: Linear, Bilinear, Embedding, EmbeddingBag."""

from __future__ import annotations

from typing import Any, TypeVar

from mlc.frontend.functions import neural
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.ir.diag import UserError
from mlc.nn import anew, init
from mlc.nn.module import Module
from mlc.nn.parameter import Parameter

L = TypeVar("L", "Embedding", "EmbeddingBag")


class Identity(Module):
    """Identity: x.

    It has no parameters and returns its input itself. It takes the place of a layer that is to be removed, such as the
    last one of a model whose features are asked for.

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

    def forward(self, input: Operand) -> Tensor:
        return input  # type: ignore[no-any-return]


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
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: The input has another number of features (MLC0367), no dimensions (MLC0364), or a size is negative
            (MLC0358).
        UserTypeError: The input is of another floating-point dtype (MLC0420).

    Example:
        >>> nn.Linear(2, 3)(mlc.ones(4, 2)).shape
        (4, 3)
    """

    _shown = ("in_features", "out_features")

    _parameters = ("weight", "bias")

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
                 dtype: DTypeLike = None, generator: init.Generator | None = None) -> None:
        self.in_features, self.out_features = in_features, out_features
        bound, dtype = init.bound(in_features), dtype or "float32"
        self.weight = init.uniform((out_features, in_features), -bound, bound, dtype, generator)
        self.bias = init.uniform((out_features,), -bound, bound, dtype, generator) if bias else None
        self.to(device=device)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, bias={self.bias is not None}"

    def reset_parameters(self) -> None:
        """Give the parameters the values of a new layer.

        Example:
            >>> nn.Linear(2, 3).reset_parameters()
        """
        anew.uniform(self.in_features, self.weight, self.bias)

    def forward(self, input: Operand) -> Tensor:
        return neural.linear(input, self.weight, self.bias)


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that the printed form of attention has in PyTorch.

    Args:
        in_features: Size of the last dimension of the input.
        out_features: Size of the last dimension of the result.
        bias: Whether a bias is added.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for that of `mlc.manual_seed`.

    Example:
        >>> nn.MultiheadAttention(4, 2).out_proj
        NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)
    """


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
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: The shapes of the inputs do not fit (MLC0367), a size is negative (MLC0358), or the float dtypes of
            the input and the parameters differ (MLC0420).

    Example:
        >>> nn.Bilinear(2, 3, 4)(mlc.ones(5, 2), mlc.ones(5, 3)).shape
        (5, 4)
    """

    _shown = ("in1_features", "in2_features", "out_features")

    _parameters = ("weight", "bias")

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
                 device: Any = None, dtype: DTypeLike = None, generator: init.Generator | None = None) -> None:
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        bound, dtype = init.bound(in1_features), dtype or "float32"
        self.weight = init.uniform((out_features, in1_features, in2_features), -bound, bound, dtype, generator)
        self.bias = init.uniform((out_features,), -bound, bound, dtype, generator) if bias else None
        self.to(device=device)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, bias={self.bias is not None}"

    def reset_parameters(self) -> None:
        """Give the parameters the values of a new layer.

        Example:
            >>> nn.Bilinear(2, 3, 4).reset_parameters()
        """
        anew.uniform(self.in1_features, self.weight, self.bias)

    def forward(self, input1: Operand, input2: Operand) -> Tensor:
        return neural.bilinear(input1, input2, self.weight, self.bias)


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
        max_norm: Rows of a greater norm are scaled to it as they are looked up, in the table itself; None for no bound.
            Where the module is an argument of a function that is recorded, as by `mlc.grad`, the table is not changed.
        norm_type: Order of that norm.
        scale_grad_by_freq: Whether the gradient by a row is divided by how often it occurs in the input.
        sparse: Whether `backward` gives the table a sparse gradient, as `mlc.optim.SparseAdam` takes it. Within
            recorded functions, gradients are dense.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the table; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: `padding_idx` is no row (MLC0366), or a size is negative (MLC0358).
        UserIndexError: An index is not in [0, num_embeddings) (MLC0340).
        UserTypeError: The indices are not integers (MLC0354).

    Example:
        >>> nn.Embedding(10, 3)(mlc.tensor([[1, 2], [4, 9]])).shape
        (2, 2, 3)
    """

    _parameters = ("weight",)

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                 sparse: bool = False, device: Any = None, dtype: DTypeLike = None,
                 generator: init.Generator | None = None) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.weight, self.padding_idx = _table(num_embeddings, embedding_dim, padding_idx, dtype, generator)
        self.to(device=device)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}{_shown(self)}"

    def reset_parameters(self) -> None:
        """Give the parameters the values of a new layer.

        Example:
            >>> nn.Embedding(2, 3).reset_parameters()
        """
        _reset(self)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None,
                        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                        sparse: bool = False) -> Embedding:
        """Make a layer of a table that exists.

        Args:
            embeddings: Tensor [num_embeddings, embedding_dim], which becomes the parameter.
            freeze: Whether it is not to be trained.
            padding_idx: Row that gets no gradient, or None.
            max_norm: As of the class, as are those below.
            norm_type: Order of that norm.
            scale_grad_by_freq: Whether the gradient by a row is divided by how often it occurs.
            sparse: Whether `backward` gives the table a sparse gradient.

        Returns:
            The layer.

        Example:
            >>> nn.Embedding.from_pretrained(mlc.ones(3, 2))(mlc.tensor([2]))
            tensor([[1., 1.]], dtype=mlc.float32)
        """
        return _of_table(cls, embeddings, freeze, padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
                         scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)

    def forward(self, input: Operand) -> Tensor:
        return neural.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                                self.scale_grad_by_freq, self.sparse)


class EmbeddingBag(Module):
    """Reduced lookup: y[i, :] = reduce over j of weight[x[i, j], :], with the sum, mean or maximum.

    Indices equal to `padding_idx` are left out, also of the number a mean divides by; an empty bag gives 0. Rows are at
    first standard normal, that of `padding_idx` is 0.

    Shape:
        [bags, size] of integers, and optionally per_sample_weights [bags, size] -> [bags, embedding_dim].

    Attributes:
        weight: Parameter [num_embeddings, embedding_dim].

    Args:
        num_embeddings: Number of rows.
        embedding_dim: Size of a row.
        max_norm: Rows of a greater norm are scaled to it as they are looked up, in the table itself; None for no bound.
            Where the module is an argument of a function that is recorded, as by `mlc.grad`, the table is not changed.
        norm_type: Order of that norm.
        scale_grad_by_freq: Whether the gradient by a row is divided by how often it occurs in the input.
        mode: "sum", "mean" or "max"; per_sample_weights goes with "sum" alone.
        sparse: Whether `backward` gives the table a sparse gradient, as `mlc.optim.SparseAdam` takes it. Within
            recorded functions, gradients are dense.
        include_last_offset: Whether the last of the offsets is the end of the last bag.
        padding_idx: Row that does not count, or None; negative numbers count from the last.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the table; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: `mode` is not allowed or does not go with per_sample_weights (MLC0360), `padding_idx` is no row
            (MLC0366), the input is no matrix (MLC0364), a size is negative (MLC0358), or the indices are not of
            integers (MLC0354).
        UserIndexError: An index is not in [0, num_embeddings) (MLC0340).

    Example:
        >>> nn.EmbeddingBag(10, 3)(mlc.tensor([[1, 2, 4], [4, 9, 9]])).shape
        (2, 3)
    """

    _parameters = ("weight",)

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                 include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None,
                 dtype: DTypeLike = None, generator: init.Generator | None = None) -> None:
        if mode not in ("sum", "mean", "max"):
            raise UserError(f"mode = {mode!r} is not a reduction of EmbeddingBag", code="MLC0360", loc=user_loc(),
                            hint='use "sum", "mean" or "max"')
        self.weight, self.padding_idx = _table(num_embeddings, embedding_dim, padding_idx, dtype, generator)
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse, self.include_last_offset = scale_grad_by_freq, sparse, include_last_offset
        self.to(device=device)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}{_shown(self)}, mode={self.mode}"

    def reset_parameters(self) -> None:
        """Give the parameters the values of a new layer.

        Example:
            >>> nn.EmbeddingBag(2, 3).reset_parameters()
        """
        _reset(self)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                        sparse: bool = False, include_last_offset: bool = False, padding_idx: int | None = None
                        ) -> EmbeddingBag:
        """Make a layer of a table that exists.

        Args:
            embeddings: Tensor [num_embeddings, embedding_dim], which becomes the parameter.
            freeze: Whether it is not to be trained.
            max_norm: As of the class, as are all below.
            norm_type: Order of that norm.
            scale_grad_by_freq: Whether the gradient by a row is divided by how often it occurs.
            mode: "sum", "mean" or "max".
            sparse: Whether `backward` gives the table a sparse gradient.
            include_last_offset: Whether the last of the offsets is the end of the last bag.
            padding_idx: Row that does not count, or None.

        Returns:
            The layer.

        Example:
            >>> nn.EmbeddingBag.from_pretrained(mlc.ones(3, 2), mode="sum")(mlc.tensor([[0, 2]]))
            tensor([[2., 2.]], dtype=mlc.float32)
        """
        return _of_table(cls, embeddings, freeze, max_norm=max_norm, norm_type=norm_type, mode=mode, sparse=sparse,
                         scale_grad_by_freq=scale_grad_by_freq, include_last_offset=include_last_offset,
                         padding_idx=padding_idx)

    def forward(self, input: Operand, offsets: Operand = None, per_sample_weights: Operand = None) -> Tensor:
        """Reduce each bag of rows of the table.

        Args:
            input: Indices [bags, size], integers, or [indices] with `offsets`.
            offsets: Where the bags begin in a 1-D `input`.
            per_sample_weights: Factors [bags, size] of the rows, only with mode "sum".

        Returns:
            Tensor [bags, embedding_dim] of the dtype of the table.
        """
        return neural.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                                    self.mode, self.sparse, per_sample_weights, self.include_last_offset,
                                    self.padding_idx)


def _shown(layer: Embedding | EmbeddingBag) -> str:
    """The settings that are not those by default."""
    usual = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False, "sparse": False}
    return "".join(f", {name}={getattr(layer, name)}" for name, x in usual.items() if getattr(layer, name) != x)


def _of_table(kind: type[L], embeddings: Tensor, freeze: bool, **settings: Any) -> L:
    """A layer of a table that exists."""
    rows, columns = embeddings.shape
    with init.shapes_only():
        layer = kind(rows, columns, dtype=embeddings.dtype, **settings)
    layer.weight = Parameter(embeddings, not freeze)
    return layer


def _reset(layer: Embedding | EmbeddingBag) -> None:
    """Give a table the values of a new one."""
    init.normal_(layer.weight)
    if layer.padding_idx is not None:
        init.zeros_(layer.weight[layer.padding_idx])


def _table(rows: int, columns: int, padding: int | None, dtype: DTypeLike,
           generator: init.Generator | None) -> tuple[Tensor, int | None]:
    """Normally distributed rows, and the index of the padding row, which is zero."""
    if padding is not None and not -rows <= padding < rows:
        raise UserError(f"padding_idx = {padding} is not within {rows} rows", code="MLC0366", loc=user_loc())
    weight = init.normal((rows, columns), dtype=dtype or "float32", generator=generator)
    if padding is None:
        return weight, None
    if not init.shapes.state.shapes_only:
        array = weight.array.copy()
        array[padding] = 0
        weight = Tensor(array)
    return weight, padding % rows
