"""Transformers, with the parameters and arguments of those in torch.nn."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from mlc.frontend.functions import create, neural
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
    """Common base of encoder and decoder layers: self-attention, two linear maps, the order of norm and sum."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int, dropout: float, activation: Activation,
                 layer_norm_eps: float, batch_first: bool, norm_first: bool, bias: bool, device: Any,
                 dtype: DTypeLike, generator: init.Generator | None) -> None:
        if isinstance(activation, str) and activation not in ("relu", "gelu"):
            raise UserError(f"activation = {activation!r}", code="MLC0360", loc=user_loc(),
                            hint='use "relu", "gelu" or a function')
        self.norm_first = norm_first
        named: dict[str, Callable[..., Tensor]] = {"relu": neural.relu, "gelu": neural.gelu}
        self.activation = named[activation] if isinstance(activation, str) else activation
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device,
                                            dtype=dtype, generator=generator)
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype, generator)
        self.dropout = Dropout(dropout, generator=generator)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype, generator)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.dropout1 = Dropout(dropout, generator=generator)
        self.dropout2 = Dropout(dropout, generator=generator)

    def _sum(self, x: Tensor, norm: LayerNorm, part: Callable[[Tensor], Tensor]) -> Tensor:
        """Residual connection around a part of the layer, with pre- or post-normalisation."""
        if self.norm_first:
            return x + part(norm(x))
        out: Tensor = norm(x + part(x))
        return out

    def _feed_forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return out


class TransformerEncoderLayer(_Layer):
    """Encoder layer of a Transformer: norm1(x + attention(x)), then norm2(x + linear2(activation(linear1(x)))).

    With norm_first it is x + attention(norm1(x)), then x + linear2(activation(linear1(norm2(x)))). (Vaswani et al.
    2017, "Attention Is All You Need"; norm_first: Xiong et al. 2020, "On Layer Normalization in the Transformer
    Architecture".)

    Shape:
        [l, n, d_model], with batch_first [n, l, d_model], or [l, d_model] -> the same shape.

    Attributes:
        self_attn: `MultiheadAttention`.
        linear1, linear2: `Linear` layers to dim_feedforward and back.
        norm1, norm2: `LayerNorm` layers.
        dropout, dropout1, dropout2: `Dropout` of the hidden features, and of each result before it is added.

    Args:
        d_model: Features of the input.
        nhead: Number of heads, which divides d_model.
        dim_feedforward: Hidden features.
        dropout: Probability in training that an element is dropped.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: eps of the normalizations.
        batch_first: Whether the batch is dimension 0 rather than 1.
        norm_first: Whether the input of each part is normalized rather than the sum.
        bias: Whether linear layers and normalizations have biases.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: `activation` is unknown (MLC0360), `nhead` does not divide `d_model` (MLC0358), the float dtypes of
            the input and the parameters differ (MLC0420), the number of dimensions is wrong (MLC0364), or numbers of
            features differ (MLC0367).

    Example:
        >>> nn.TransformerEncoderLayer(4, 2, dim_feedforward=8)(mlc.ones(3, 1, 4)).shape
        (3, 1, 4)
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: DTypeLike = None,
                 generator: init.Generator | None = None) -> None:
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                         bias, device, dtype, generator)

    def forward(self, src: Operand, src_mask: Operand = None, src_key_padding_mask: Operand = None,
                is_causal: bool = False) -> Tensor:
        """Apply the layer to a sequence.

        Args:
            src: Sequence, of a shape that the class names.
            src_mask: Mask [l, l] of attention, as of `MultiheadAttention`.
            src_key_padding_mask: Mask [n, l] of positions that nothing attends to.
            is_causal: Forbid attention to later positions.

        Returns:
            Tensor of the shape of `src`.
        """
        def attention(x: Tensor) -> Tensor:
            out: Tensor = self.dropout1(self.self_attn(x, x, x, src_key_padding_mask, False, src_mask,
                                                       is_causal=is_causal)[0])
            return out

        x = self._sum(src, self.norm1, attention)
        return self._sum(x, self.norm2, lambda x: self.dropout2(self._feed_forward(x)))


class TransformerDecoderLayer(_Layer):
    """Decoder layer of a Transformer: as `TransformerEncoderLayer`, with attention to a memory between the two parts.

    x = norm1(x + self_attn(x)); x = norm2(x + multihead_attn(x, memory)); norm3(x + linear2(activation(linear1(x)))).
    (Vaswani et al. 2017, "Attention Is All You Need".)

    Shape:
        [l, n, d_model] and memory [m, n, d_model], with batch_first the batch first, or both without it -> the first
        shape.

    Attributes:
        self_attn, multihead_attn: `MultiheadAttention` to the sequence and to the memory.
        linear1, linear2: `Linear` layers to dim_feedforward and back.
        norm1, norm2, norm3: `LayerNorm` layers.
        dropout, dropout1, dropout2, dropout3: `Dropout` of the hidden features, and of each result before it is added.

    Args:
        d_model: Features of the input.
        nhead: Number of heads, which divides d_model.
        dim_feedforward: Hidden features.
        dropout: Probability in training that an element is dropped.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: eps of the normalizations.
        batch_first: Whether the batch is dimension 0 rather than 1.
        norm_first: Whether the input of each part is normalized rather than the sum.
        bias: Whether linear layers and normalizations have biases.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: `activation` is unknown (MLC0360), `nhead` does not divide `d_model` (MLC0358), the float dtypes of
            the input and the parameters differ (MLC0420), the number of dimensions is wrong (MLC0364), or numbers of
            features differ (MLC0367).

    Example:
        >>> nn.TransformerDecoderLayer(4, 2, dim_feedforward=8)(mlc.ones(3, 1, 4), mlc.ones(5, 1, 4)).shape
        (3, 1, 4)
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: DTypeLike = None,
                 generator: init.Generator | None = None) -> None:
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                         bias, device, dtype, generator)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device,
                                                 dtype=dtype, generator=generator)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.dropout3 = Dropout(dropout, generator=generator)
        held = vars(self)                                  # in PyTorch's order, which that of the parameters follows
        for name in ("linear1", "dropout", "linear2", "norm1", "norm2", "norm3", "dropout1", "dropout2", "dropout3"):
            held[name] = held.pop(name)

    def forward(self, tgt: Operand, memory: Operand, tgt_mask: Operand = None, memory_mask: Operand = None,
                tgt_key_padding_mask: Operand = None, memory_key_padding_mask: Operand = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        """Apply the layer to a sequence and a memory.

        Args:
            tgt: Sequence, of a shape that the class names.
            memory: Result of the encoder.
            tgt_mask: Mask [l, l] of attention to the sequence, as of `MultiheadAttention`.
            memory_mask: Mask [l, m] of attention to the memory.
            tgt_key_padding_mask: Mask [n, l] of positions that nothing attends to.
            memory_key_padding_mask: Mask [n, m] of positions of the memory that nothing attends to.
            tgt_is_causal: Forbid attention to later positions.
            memory_is_causal: Forbid attention to later positions of the memory.

        Returns:
            Tensor of the shape of `tgt`.
        """
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
    """Stack of encoder layers: norm(layer_n(... layer_1(src))).

    The layers are copies of one, so that they begin with the same values, as in PyTorch; each draws dropout of its own.

    Shape:
        As of the layer.

    Attributes:
        layers: `ModuleList` of the copies.
        norm: The module that comes last, or None.

    Args:
        encoder_layer: Layer that is copied.
        num_layers: Number of copies.
        norm: Module applied to the result, or None.
        enable_nested_tensor: Accepted, without effect: positions of padding are computed like the others. (PyTorch,
            in evaluation and without gradients, leaves them out and has zeros there.)
        mask_check: Accepted, without effect.

    Raises:
        UserError: The float dtypes of the input and the parameters differ (MLC0420), the number of dimensions is wrong
            (MLC0364), or numbers of features differ (MLC0367).
        UserTypeError: `encoder_layer` is no module (MLC0421).

    Example:
        >>> layer = nn.TransformerEncoderLayer(4, 2, dim_feedforward=8)
        >>> nn.TransformerEncoder(layer, 2)(mlc.ones(3, 1, 4)).shape
        (3, 1, 4)
    """

    def __init__(self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None,
                 enable_nested_tensor: bool = True, mask_check: bool = True) -> None:
        self.layers = ModuleList([_copy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Operand, mask: Operand = None, src_key_padding_mask: Operand = None,
                is_causal: bool | None = None) -> Tensor:
        """Apply the layers to a sequence.

        Args:
            src: Sequence, of a shape that the class names.
            mask: Mask [l, l] of attention, as of `MultiheadAttention`.
            src_key_padding_mask: Mask [n, l] of positions that nothing attends to.
            is_causal: Forbid attention to later positions; None for what `mask` says.

        Returns:
            Tensor of the shape of `src`.
        """
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, bool(is_causal))
        return x if self.norm is None else self.norm(x)  # type: ignore[no-any-return]


class TransformerDecoder(Module):
    """Stack of decoder layers: norm(layer_n(... layer_1(tgt, memory), memory)).

    The layers are copies of one, so that they begin with the same values, as in PyTorch; each draws dropout of its own.

    Shape:
        As of the layer.

    Attributes:
        layers: `ModuleList` of the copies.
        norm: The module that comes last, or None.

    Args:
        decoder_layer: Layer that is copied.
        num_layers: Number of copies.
        norm: Module applied to the result, or None.

    Raises:
        UserError: The float dtypes of the input and the parameters differ (MLC0420), the number of dimensions is wrong
            (MLC0364), or numbers of features differ (MLC0367).
        UserTypeError: `decoder_layer` is no module (MLC0421).

    Example:
        >>> layer = nn.TransformerDecoderLayer(4, 2, dim_feedforward=8)
        >>> nn.TransformerDecoder(layer, 2)(mlc.ones(3, 1, 4), mlc.ones(5, 1, 4)).shape
        (3, 1, 4)
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList([_copy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Operand, memory: Operand, tgt_mask: Operand = None, memory_mask: Operand = None,
                tgt_key_padding_mask: Operand = None, memory_key_padding_mask: Operand = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        """Apply the layers to a sequence and a memory.

        Args:
            tgt: Sequence, of a shape that the class names.
            memory: Result of the encoder.
            tgt_mask: Mask [l, l] of attention to the sequence, as of `MultiheadAttention`.
            memory_mask: Mask [l, m] of attention to the memory.
            tgt_key_padding_mask: Mask [n, l] of positions that nothing attends to.
            memory_key_padding_mask: Mask [n, m] of positions of the memory that nothing attends to.
            tgt_is_causal: Forbid attention to later positions; None for what `tgt_mask` says.
            memory_is_causal: Forbid attention to later positions of the memory.

        Returns:
            Tensor of the shape of `tgt`.
        """
        x = tgt
        for layer in self.layers:
            x = layer(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                      bool(tgt_is_causal), memory_is_causal)
        return x if self.norm is None else self.norm(x)  # type: ignore[no-any-return]


class Transformer(Module):
    """Transformer: a decoder of the target that attends to the encoding of the source.

    All weight matrices are at first Xavier uniform. (Vaswani et al. 2017, "Attention Is All You Need".)

    Shape:
        src [s, n, d_model] and tgt [t, n, d_model], with batch_first the batch first, or both without it -> shape of
        tgt.

    Attributes:
        encoder: `TransformerEncoder` with a final `LayerNorm`.
        decoder: `TransformerDecoder` with a final `LayerNorm`.

    Args:
        d_model: Features of source and target.
        nhead: Number of heads, which divides d_model.
        num_encoder_layers: Number of encoder layers.
        num_decoder_layers: Number of decoder layers.
        dim_feedforward: Hidden features.
        dropout: Probability in training that an element is dropped.
        activation: "relu", "gelu" or a function.
        custom_encoder: Module in place of the encoder; None for one of these settings.
        custom_decoder: Module in place of the decoder; None for one of these settings.
        layer_norm_eps: eps of the normalizations.
        batch_first: Whether the batch is dimension 0 rather than 1.
        norm_first: Whether the input of each part is normalized rather than the sum.
        bias: Whether linear layers and normalizations have biases.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: `activation` is unknown (MLC0360), `nhead` does not divide `d_model` (MLC0358), the float dtypes of
            the input and the parameters differ (MLC0420), the number of dimensions is wrong (MLC0364), or numbers of
            features differ (MLC0367).

    Example:
        >>> model = nn.Transformer(4, 2, 1, 1, dim_feedforward=8)
        >>> model(mlc.ones(3, 1, 4), mlc.ones(2, 1, 4)).shape
        (2, 1, 4)
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = "relu",
                 custom_encoder: Module | None = None, custom_decoder: Module | None = None,
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
                 device: Any = None, dtype: DTypeLike = None, generator: init.Generator | None = None) -> None:
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        settings: Any = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                         bias, device, dtype, generator)
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*settings), num_encoder_layers,
            LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype))
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*settings), num_decoder_layers,
            LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype))
        self._assign_state({name: init.xavier_uniform(p.shape, dtype=p.dtype, generator=generator).to(p.device)
                      for name, p in self.named_parameters() if p.ndim > 1})

    def forward(self, src: Operand, tgt: Operand, src_mask: Operand = None, tgt_mask: Operand = None,
                memory_mask: Operand = None, src_key_padding_mask: Operand = None,
                tgt_key_padding_mask: Operand = None, memory_key_padding_mask: Operand = None,
                src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        """Encode the source, and decode the target.

        Args:
            src: Source sequence.
            tgt: Target sequence.
            src_mask: Mask [s, s] of attention within the source.
            tgt_mask: Mask [t, t] of attention within the target.
            memory_mask: Mask [t, s] of attention to the encoded source.
            src_key_padding_mask: Mask [n, s] of positions of the source.
            tgt_key_padding_mask: Mask [n, t] of positions of the target.
            memory_key_padding_mask: Mask [n, s] of positions of the encoded source.
            src_is_causal: Forbid attention to later positions of the source; None for what `src_mask` says.
            tgt_is_causal: Forbid attention to later positions of the target; None for what `tgt_mask` says.
            memory_is_causal: Forbid attention to later positions of the encoded source.

        Returns:
            Tensor of the shape of `tgt`.
        """
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        out: Tensor = self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                                   tgt_is_causal, memory_is_causal)
        return out

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: DTypeLike = None) -> Tensor:
        """Mask of floats that forbids attention to later positions: -inf where the column is beyond the row, else 0.

        Args:
            sz: Length of the sequence.
            device: Device of the mask; None for the CPU.
            dtype: Floating-point dtype; None for float32.

        Returns:
            Tensor [sz, sz].

        Example:
            >>> nn.Transformer.generate_square_subsequent_mask(2)
            tensor([[  0., -inf],
                    [  0.,   0.]], dtype=mlc.float32)
        """
        return create.full((sz, sz), float("-inf"), dtype=dtype or "float32", device=device).triu(1)


def _copy(layer: M) -> M:
    """A copy of a layer with the same initial values and other random keys."""
    if not isinstance(layer, Module):
        raise UserTypeError(f"the layer is a {type(layer).__name__}, expected a module", code="MLC0421")
    out = copy.deepcopy(layer)
    for module in out.modules():
        if isinstance(module, Keyed):
            module.draw_key()
    return out
