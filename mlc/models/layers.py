"""Layers that decoders are built of. Activations are float32, whatever weights are stored in: 16-bit weights
and quantised ones are widened where a product reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mlc
from mlc import nn
from mlc.frontend.tensor import Tensor
from mlc.models.parameters import Place, Weight
from mlc.models.quantized import QuantizedTensor

ACTIVATIONS: Mapping[str, Callable[[Any], Any]] = {
    "silu": nn.functional.silu, "gelu": nn.functional.gelu, "relu": nn.functional.relu,
    "gelu_tanh": lambda x: nn.functional.gelu(x, approximate="tanh")}


class Linear(nn.Module):
    """Affine map of the last dimension, x @ weight.T + bias, in float32.

    Shape:
        [..., columns] -> [..., rows].

    Args:
        place: Where its parameters `weight` [rows, columns] and `bias` [rows] come from.
        columns: Size of the last dimension of the input.
        rows: Size of the last dimension of the result.
        bias: Whether there is a bias.

    Example:
        >>> from mlc.models.parameters import Drawn, Place
        >>> from mlc.models.layers import Linear
        >>> Linear(Place(Drawn(0)), 4, 3)(mlc.ones(2, 4)).shape
        (2, 3)
    """

    def __init__(self, place: Place, columns: int, rows: int, bias: bool = False) -> None:
        self.weight = place.take("weight", rows, columns)
        self.bias = place.take("bias", rows) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return product(x, self.weight, self.bias)


def product(x: Tensor, weight: Weight, bias: Weight | None = None) -> Tensor:
    """x @ weight.T + bias, with both widened to float32."""
    if isinstance(weight, QuantizedTensor):
        out = weight.product(x)
        return out if bias is None else out + bias.float()
    return nn.functional.linear(x, weight.float(), None if bias is None else bias.float())


class Embedding(nn.Module):
    """Rows of a table, in float32.

    Shape:
        integers [...] -> [..., width].

    Args:
        place: Where its parameter `weight` [rows, width] comes from.
        rows: Number of rows.
        width: Size of a row.

    Raises:
        UserIndexError: A number is that of no row (MLC0340).

    Example:
        >>> from mlc.models.parameters import Drawn, Place
        >>> from mlc.models.layers import Embedding
        >>> Embedding(Place(Drawn(0)), 5, 4)(mlc.tensor([[1, 4]])).shape
        (1, 2, 4)
    """

    def __init__(self, place: Place, rows: int, width: int) -> None:
        self.weight = place.take("weight", rows, width)

    def forward(self, numbers: Tensor) -> Tensor:
        if isinstance(self.weight, QuantizedTensor):       # the rows that are read are all that is widened
            return nn.functional.embedding(numbers, self.weight.float())
        return nn.functional.embedding(numbers, self.weight).float()


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + epsilon) * weight along the last dimension; Gemma's weights are deviations from 1.

    Shape:
        [..., width] -> the same.

    Args:
        place: Where its parameter `weight` [width] comes from.
        width: Size of the last dimension.
        epsilon: What is added to the mean.
        from_one: Whether the factor is 1 + weight.

    Example:
        >>> from mlc.models.parameters import Drawn, Place
        >>> from mlc.models.layers import RMSNorm
        >>> RMSNorm(Place(Drawn(0, trained=False)), 2, 0.0)(mlc.tensor([[3.0, -3.0]]))
        tensor([[ 1., -1.]], dtype=mlc.float32)
    """

    def __init__(self, place: Place, width: int, epsilon: float, from_one: bool = False) -> None:
        self.weight = place.take("weight", width)
        self.epsilon, self.from_one = epsilon, from_one

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight.float()
        if self.from_one:
            weight = weight + 1
        return nn.functional.rms_norm(x, (x.shape[-1],), weight, self.epsilon)


class LayerNorm(nn.Module):
    """(x - mean) / sqrt(variance + epsilon) * weight + bias along the last dimension.

    Shape:
        [..., width] -> the same.

    Args:
        place: Where its parameters `weight` and `bias` [width] come from.
        width: Size of the last dimension.
        epsilon: What is added to the variance.

    Example:
        >>> from mlc.models.parameters import Drawn, Place
        >>> from mlc.models.layers import LayerNorm
        >>> LayerNorm(Place(Drawn(0, trained=False)), 2, 0.0)(mlc.tensor([[1.0, 3.0]]))
        tensor([[-1.,  1.]], dtype=mlc.float32)
    """

    def __init__(self, place: Place, width: int, epsilon: float) -> None:
        self.weight, self.bias = place.take("weight", width), place.take("bias", width)
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.layer_norm(x, (x.shape[-1],), self.weight.float(), self.bias.float(), self.epsilon)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float, cap: float | None = None) -> Tensor:
    """Attention of queries [batch, heads, n, size] to keys and values [batch, kv heads, m, size].

    The result is [batch, n, heads * size]. `mask` [batch, 1, n, m] is true where a query sees a key. With `cap`, scores
    s become cap * tanh(s / cap).
    """
    batch, heads, n, size = q.shape
    if cap is None:
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=True)
    else:
        groups = q.reshape(batch, k.shape[1], heads // k.shape[1], n, size)
        scores = groups @ k[:, :, None].transpose(-1, -2) * scale
        scores = mlc.where(mask[:, None], mlc.tanh(scores / cap) * cap, float("-inf"))
        mixed = (mlc.softmax(scores, dim=-1) @ v[:, :, None]).reshape(batch, heads, n, size)
    return mixed.transpose(1, 2).reshape(batch, n, heads * size)
