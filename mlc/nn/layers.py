"""Layers, under the names and with the initial values of torch.nn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from mlc.frontend.functions import create, index, losses, neural
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import shape as S
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.nn import init
from mlc.nn.module import Module


class Linear(Module):
    """x @ weight.T + bias"""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: DTypeLike = "float32",
                 generator: init.Generator | None = None) -> None:
        bound = 1 / math.sqrt(in_features) if in_features else 0.0
        self.weight = init.uniform((out_features, in_features), -bound, bound, dtype, generator)
        self.bias = init.uniform((out_features,), -bound, bound, dtype, generator) if bias else None

    def forward(self, x: Operand) -> Tensor:
        return neural.linear(x, self.weight, self.bias)


class Sequential(Module):
    """Modules and functions, each applied to the result of the one before."""

    def __init__(self, *layers: Any) -> None:
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, i: int) -> Any:
        return self.layers[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions"""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, dtype: DTypeLike = "float32") -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps = shape, eps
        self.weight = create.ones(*shape, dtype=dtype) if elementwise_affine else None
        self.bias = create.zeros(*shape, dtype=dtype) if elementwise_affine and bias else None

    def forward(self, x: Operand) -> Tensor:
        return neural.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """x / sqrt(mean(x ** 2) + eps) * weight over the last dimensions"""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None,
                 elementwise_affine: bool = True, dtype: DTypeLike = "float32") -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps = shape, eps
        self.weight = create.ones(*shape, dtype=dtype) if elementwise_affine else None

    def forward(self, x: Operand) -> Tensor:
        return neural.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class Embedding(Module):
    """The rows of weight at the indices."""

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: DTypeLike = "float32",
                 generator: init.Generator | None = None) -> None:
        self.weight = init.normal((num_embeddings, embedding_dim), dtype=dtype, generator=generator)

    def forward(self, x: Operand) -> Tensor:
        return index.embedding(x, self.weight)


class Identity(Module):
    """x"""

    def forward(self, x: Any) -> Any:
        return x


class Flatten(Module):
    """The dimensions from start_dim to end_dim made one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Operand) -> Tensor:
        return S.flatten(x, self.start_dim, self.end_dim)


class ReLU(Module):
    """max(x, 0)"""

    def forward(self, x: Operand) -> Tensor:
        return neural.relu(x)


class LeakyReLU(Module):
    """x above 0, negative_slope * x below"""

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Operand) -> Tensor:
        return neural.leaky_relu(x, self.negative_slope)


class ELU(Module):
    """x above 0, alpha * (e ** x - 1) below"""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Operand) -> Tensor:
        return neural.elu(x, self.alpha)


class GELU(Module):
    """x * P(X <= x) for a standard normal X"""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Operand) -> Tensor:
        return neural.gelu(x, self.approximate)


class SiLU(Module):
    """x * sigmoid(x)"""

    def forward(self, x: Operand) -> Tensor:
        return neural.silu(x)


class Mish(Module):
    """x * tanh(softplus(x))"""

    def forward(self, x: Operand) -> Tensor:
        return neural.mish(x)


class Softplus(Module):
    """log(1 + e ** (beta * x)) / beta"""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta, self.threshold = beta, threshold

    def forward(self, x: Operand) -> Tensor:
        return neural.softplus(x, self.beta, self.threshold)


class Sigmoid(Module):
    """1 / (1 + e ** -x)"""

    def forward(self, x: Operand) -> Tensor:
        return E.sigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Operand) -> Tensor:
        return E.tanh(x)


class Softmax(Module):
    """e ** x / sum(e ** x) along dim"""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, x: Operand) -> Tensor:
        return neural.softmax(x, self.dim)


class LogSoftmax(Module):
    """log(softmax(x))"""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, x: Operand) -> Tensor:
        return neural.log_softmax(x, self.dim)


class CrossEntropyLoss(Module):
    """-log_softmax(x)[target]"""

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        self.weight, self.ignore_index = weight, ignore_index
        self.reduction, self.label_smoothing = reduction, label_smoothing

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction,
                                    self.label_smoothing)


class MSELoss(Module):
    """(x - target) ** 2"""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.mse_loss(input, target, self.reduction)


class L1Loss(Module):
    """|x - target|"""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return losses.l1_loss(input, target, self.reduction)
