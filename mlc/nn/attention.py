"""MultiheadAttention, with the parameters and arguments of torch.nn.MultiheadAttention; and PyTorch's choice of a
kernel for attention, of which mlc has one."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlc.frontend.functions import create
from mlc.frontend.functions.attention import multi_head_attention_forward
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.ir.diag import UserError
from mlc.nn import init
from mlc.nn.dropout import Keyed
from mlc.nn.linear import NonDynamicallyQuantizableLinear


class MultiheadAttention(Keyed):
    """Multi-head attention: out_proj(concat of softmax(q_i @ k_i.T / sqrt(d) + mask) @ v_i over the heads i).

    q, k and v are affine maps of query, key and value, of which each head takes d = embed_dim / num_heads features.
    Projections are at first Xavier uniform, their biases 0, the weight of out_proj that of `Linear`, bias_k and bias_v
    normal with deviation 1/sqrt(embed_dim). (Vaswani et al. 2017, "Attention Is All You Need".)

    Shape:
        query [lq, n, embed_dim], key [lk, n, kdim], value [lk, n, vdim] -> [lq, n, embed_dim], and weights [n, lq, lk]
        or None. With batch_first n comes first; it may be left out of all.

    Attributes:
        in_proj_weight: Parameter [3 * embed_dim, embed_dim], or None where kdim or vdim differ from embed_dim.
        q_proj_weight, k_proj_weight, v_proj_weight: Parameters [embed_dim, features] where in_proj_weight is None.
        in_proj_bias: Parameter [3 * embed_dim], or None.
        out_proj: `Linear` from embed_dim to embed_dim.
        bias_k, bias_v: Parameters [1, 1, embed_dim], or None.

    Args:
        embed_dim: Features of queries and results.
        num_heads: Number of heads, which divides embed_dim.
        dropout: Probability in training that a weight is dropped.
        bias: Whether the projections have biases.
        add_bias_kv: Whether one trained key and value are added to those given.
        add_zero_attn: Whether a key and a value of zeros are added.
        kdim: Features of keys; None for embed_dim.
        vdim: Features of values; None for embed_dim.
        batch_first: Whether the batch is dimension 0 rather than 1.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: `num_heads` does not divide `embed_dim`, or one is 0 (MLC0358), or the inputs have the wrong number
            of dimensions (MLC0364) or features, a mask the wrong shape (MLC0367), or the float dtypes of the input and
            the parameters differ (MLC0420).

    Example:
        >>> x = mlc.ones(3, 1, 4)
        >>> y, weights = nn.MultiheadAttention(4, 2)(x, x, x)
        >>> y.shape, weights.shape
        ((3, 1, 4), (1, 3, 3))
    """

    _parameters = ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "bias_k",
                   "bias_v")

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, device: Any = None, dtype: DTypeLike = None,
                 generator: init.Generator | None = None) -> None:
        if num_heads < 1 or embed_dim < 1 or embed_dim % num_heads:
            raise UserError(f"embed_dim = {embed_dim} is not divisible by num_heads = {num_heads}", code="MLC0358",
                            loc=user_loc(), hint="each head has embed_dim / num_heads features")
        self.num_heads, self.batch_first, self.add_zero_attn = num_heads, batch_first, add_zero_attn
        self.embed_dim, self.head_dim = embed_dim, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        dtype = dtype or "float32"
        self.to(device=device)

        def xavier(rows: int, columns: int) -> Tensor:
            return init.xavier_uniform((rows, columns), dtype=dtype, generator=generator)

        if kdim in (None, embed_dim) and vdim in (None, embed_dim):
            self.in_proj_weight: Tensor | None = xavier(3 * embed_dim, embed_dim)
        else:
            self.in_proj_weight = None
            self.q_proj_weight = xavier(embed_dim, embed_dim)
            self.k_proj_weight = xavier(embed_dim, embed_dim if kdim is None else kdim)
            self.v_proj_weight = xavier(embed_dim, embed_dim if vdim is None else vdim)
        self.in_proj_bias = create.zeros(3 * embed_dim, dtype=dtype) if bias else None
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype, generator)
        if bias:
            self.out_proj.bias = create.zeros(embed_dim, dtype=dtype)
        std = 1 / math.sqrt(embed_dim)
        self.bias_k = init.normal((1, 1, embed_dim), 0, std, dtype, generator) if add_bias_kv else None
        self.bias_v = init.normal((1, 1, embed_dim), 0, std, dtype, generator) if add_bias_kv else None
        self.dropout = dropout
        self.key = None  # type: ignore[assignment]
        if dropout:
            self.draw_key(generator)

    def forward(self, query: Operand, key: Operand, value: Operand, key_padding_mask: Operand = None,
                need_weights: bool = True, attn_mask: Operand = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """Attend from each query to the keys, and mix their values.

        Boolean masks are True where attention is forbidden; masks of floats are added to the scores. A query that may
        attend to no key gives NaN.

        Args:
            query: Tensor [lq, n, embed_dim], or as the class says.
            key: Tensor [lk, n, kdim].
            value: Tensor [lk, n, vdim].
            key_padding_mask: Mask [n, lk] of keys that nothing attends to.
            need_weights: Whether the weights are returned; without them fused attention is used.
            attn_mask: Mask [lq, lk] or [n * num_heads, lq, lk].
            average_attn_weights: Whether the weights are averaged over the heads.
            is_causal: Forbid attention to later keys; unlike in PyTorch, `attn_mask` may be left out, and if it is
                given, it alone counts.

        Returns:
            The result, and the weights [n, lq, lk] ([n, num_heads, lq, lk] if not averaged) or None.
        """
        drops = self.training and self.dropout > 0
        separate = self.in_proj_weight is None
        weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight) if separate else (None, None, None)
        return multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, drops,
            key_padding_mask, need_weights, attn_mask, separate, weights[0], weights[1], weights[2],
            average_attn_weights=average_attn_weights, is_causal=is_causal, batch_first=self.batch_first,
            dropout_key=self.next_key() if drops else None)


class SDPBackend(enum.IntEnum):
    """PyTorch's kernels of `scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Context in which PyTorch chooses among kernels of attention; the compiler makes the one that there is.

    Args:
        backends: The kernels that may be used; they change nothing.
        set_priority: Whether they are in order of preference.

    Example:
        >>> with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        ...     nn.functional.scaled_dot_product_attention(mlc.ones(1, 2), mlc.ones(3, 2), mlc.ones(3, 2))
        tensor([[1., 1.]], dtype=mlc.float32)
    """
    yield
