"""Transformers, with the parameters and arguments of those in torch.nn."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from mlc.frontend.functions import create, neural
from mlc.frontend.functions import elementwise as E
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.ir.diag import UserError, UserTypeError
from mlc.nn import init
from mlc.nn.attention import MultiheadAttention
from mlc.nn.containers import ModuleList
from mlc.nn.dropout import Dropout, Keyed
from mlc.nn.linear import Linear
from mlc.nn.module import Module
from mlc.nn.normalization import LayerNorm

Activation = str | Callable[[Any], Tensor]
M = TypeVar("M", bound=Module)


class _Layer(Module):
    """What encoder and decoder layers share: self-attention, two linear maps, the order of norm and sum."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int, dropout: float, activation: Activation,
                 layer_norm_eps: float, batch_first: bool, norm_first: bool, bias: bool, dtype: DTypeLike,
                 generator: init.Generator | None) -> None:
        if isinstance(activation, str) and activation not in ("relu", "gelu"):
            raise UserError(f"activation = {activation!r}", code="MLC0360", loc=user_loc(),
                            hint='use "relu", "gelu" or a function')
        self.norm_first = norm_first
        self.activation = {"relu": neural.relu, "gelu": neural.gelu}[activation] if isinstance(
            activation, str) else activation
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype,
                                            generator=generator)
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype, generator)
        self.dropout = Dropout(dropout, generator=generator)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype, generator)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout, generator=generator)
        self.dropout2 = Dropout(dropout, generator=generator)

    def _sum(self, x: Tensor, norm: LayerNorm, part: Callable[[Tensor], Tensor]) -> Tensor:
        """x plus a part of the layer, normalised before the part or after the sum."""
        if self.norm_first:
            return x + part(norm(x))
        out: Tensor = norm(x + part(x))
        return out

    def _feed_forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return out


class TransformerEncoderLayer(_Layer):
    """x + attention(x), then x + linear2(activation(linear1(x))), with layer norms after the sums or, norm_first,
    before what is added."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, dtype: DTypeLike = "float32",
                 generator: init.Generator | None = None) -> None:
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                         bias, dtype, generator)

    def forward(self, src: Operand, src_mask: Operand = None, src_key_padding_mask: Operand = None,
                is_causal: bool = False) -> Tensor:
        def attention(x: Tensor) -> Tensor:
            out: Tensor = self.dropout1(self.self_attn(x, x, x, src_key_padding_mask, False, src_mask,
                                                       is_causal=is_causal)[0])
            return out

        x = self._sum(src, self.norm1, attention)
        return self._sum(x, self.norm2, lambda x: self.dropout2(self._feed_forward(x)))


class TransformerDecoderLayer(_Layer):
    """As TransformerEncoderLayer, with x + attention(x, memory) between the two."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, dtype: DTypeLike = "float32",
                 generator: init.Generator | None = None) -> None:
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                         bias, dtype, generator)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype,
                                                 generator=generator)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout3 = Dropout(dropout, generator=generator)

    def forward(self, tgt: Operand, memory: Operand, tgt_mask: Operand = None, memory_mask: Operand = None,
                tgt_key_padding_mask: Operand = None, memory_key_padding_mask: Operand = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        def to_itself(x: Tensor) -> Tensor:
            out: Tensor = self.dropout1(self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask,
                                                       is_causal=tgt_is_causal)[0])
            return out

        def to_memory(x: Tensor) -> Tensor:
            out: Tensor = self.dropout2(self.multihead_attn(x, memory, memory, memory_key_padding_mask, False,
                                                            memory_mask, is_causal=memory_is_causal)[0])
            return out

        x = self._sum(tgt, self.norm1, to_itself)
        x = self._sum(x, self.norm2, to_memory)
        return self._sum(x, self.norm3, lambda x: self.dropout3(self._feed_forward(x)))


class TransformerEncoder(Module):
    """`num_layers` copies of a layer, one after the other, and a norm."""

    def __init__(self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList([_copy(encoder_layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(self, src: Operand, mask: Operand = None, src_key_padding_mask: Operand = None,
                is_causal: bool = False) -> Tensor:
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, is_causal)
        return x if self.norm is None else self.norm(x)  # type: ignore[no-any-return]


class TransformerDecoder(Module):
    """`num_layers` copies of a layer, one after the other, and a norm."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList([_copy(decoder_layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(self, tgt: Operand, memory: Operand, tgt_mask: Operand = None, memory_mask: Operand = None,
                tgt_key_padding_mask: Operand = None, memory_key_padding_mask: Operand = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        x = tgt
        for layer in self.layers:
            x = layer(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
                      memory_is_causal)
        return x if self.norm is None else self.norm(x)  # type: ignore[no-any-return]


class Transformer(Module):
    """An encoder of src, and a decoder of tgt that attends to what the encoder says."""

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = "relu",
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
                 dtype: DTypeLike = "float32", generator: init.Generator | None = None) -> None:
        settings: Any = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                         bias, dtype, generator)
        self.encoder = TransformerEncoder(TransformerEncoderLayer(*settings), num_encoder_layers,
                                          LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
        self.decoder = TransformerDecoder(TransformerDecoderLayer(*settings), num_decoder_layers,
                                          LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
        self._assign({name: init.xavier_uniform(p.shape, dtype=dtype, generator=generator)
                      for name, p in self.named_parameters() if p.ndim > 1})

    def forward(self, src: Operand, tgt: Operand, src_mask: Operand = None, tgt_mask: Operand = None,
                memory_mask: Operand = None, src_key_padding_mask: Operand = None,
                tgt_key_padding_mask: Operand = None, memory_key_padding_mask: Operand = None,
                src_is_causal: bool = False, tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        out: Tensor = self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                                   tgt_is_causal, memory_is_causal)
        return out

    @staticmethod
    def generate_square_subsequent_mask(sz: int, dtype: DTypeLike = "float32") -> Tensor:
        """-inf where the column is beyond the row, 0 elsewhere."""
        later = create.arange(sz).unsqueeze(1) < create.arange(sz)
        return E.where(later, float("-inf"), create.zeros(dtype=dtype))


def _copy(layer: M) -> M:
    """A layer with the same initial values, that draws other random numbers."""
    if not isinstance(layer, Module):
        raise UserTypeError(f"the layer is a {type(layer).__name__}, expected a module", code="MLC0421")
    out = copy.deepcopy(layer)
    for module in out.modules():
        if isinstance(module, Keyed):
            module.draw_key()
    return out
