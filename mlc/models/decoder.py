"""Decoders of the Llama family: one module, whose parts are those that a `DecoderConfig` says."""

from __future__ import annotations

import mlc
from mlc import nn
from mlc.frontend.tensor import Tensor
from mlc.models.cache import Cache, LayerCache, Seen
from mlc.models.causal_lm import CausalLM
from mlc.models.config import DecoderConfig
from mlc.models.experts import MixtureOfExperts
from mlc.models.layers import ACTIVATIONS, Embedding, Linear, RMSNorm
from mlc.models.parameters import Place
from mlc.models.rotary import RotaryEmbedding, turned

Angles = tuple[Tensor, Tensor]


class Attention(nn.Module):
    """Each token looks at those before it and at itself; groups of heads share keys and values."""

    def __init__(self, config: DecoderConfig, place: Place) -> None:
        self.config = config
        inner, shared = config.heads * config.head_size, config.kv_heads * config.head_size
        if config.fused:
            self.qkv_proj = Linear(place.at("qkv_proj"), config.width, inner + 2 * shared)
        else:
            self.q_proj = Linear(place.at("q_proj"), config.width, inner, config.qkv_bias)
            self.k_proj = Linear(place.at("k_proj"), config.width, shared, config.qkv_bias)
            self.v_proj = Linear(place.at("v_proj"), config.width, shared, config.qkv_bias)
        self.o_proj = Linear(place.at("o_proj"), inner, config.width, config.out_bias)
        if config.qk_norm:
            self.q_norm = RMSNorm(place.at("q_norm"), config.head_size, config.epsilon, config.unit_norms)
            self.k_norm = RMSNorm(place.at("k_norm"), config.head_size, config.epsilon, config.unit_norms)

    def forward(self, x: Tensor, angles: Angles, mask: Tensor, seen: Seen, cache: LayerCache | None
                ) -> tuple[Tensor, LayerCache | None]:
        config, (batch, n, _) = self.config, x.shape
        q, k, v = self._projected(x)
        q = q.reshape(batch, n, config.heads, config.head_size)
        k, v = (y.reshape(batch, n, config.kv_heads, config.head_size) for y in (k, v))
        if config.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        if config.paired:
            q, k = _halves(q), _halves(k)
        q, k = turned(q.transpose(1, 2), *angles), turned(k.transpose(1, 2), *angles).transpose(1, 2)
        mixed, cache = seen.attend(cache, q, k, v, mask, config.scale, config.score_cap)
        return self.o_proj(mixed), cache

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if not self.config.fused:
            return self.q_proj(x), self.k_proj(x), self.v_proj(x)
        inner, shared = (h * self.config.head_size for h in (self.config.heads, self.config.kv_heads))
        all = self.qkv_proj(x)
        return all[..., :inner], all[..., inner: inner + shared], all[..., inner + shared:]


def _halves(x: Tensor) -> Tensor:
    """The elements of heads [batch, n, heads, size] that lie in pairs as two halves, the form that `turned` takes.

    The weights stay as they are in the file: their rows are computed in its order, and the results put into ours.
    """
    *lead, size = x.shape
    return x.reshape(*lead, size // 2, 2).transpose(-1, -2).reshape(*lead, size)


class FeedForward(nn.Module):
    """down(activation(gate(x)) * up(x))."""

    def __init__(self, config: DecoderConfig, place: Place) -> None:
        self.activation, self.fused = ACTIVATIONS[config.activation], config.fused
        width, inner = config.width, config.inner_width
        if config.fused:
            self.gate_up_proj = Linear(place.at("gate_up_proj"), width, 2 * inner)
        else:
            self.gate_proj = Linear(place.at("gate_proj"), width, inner, config.mlp_bias)
            self.up_proj = Linear(place.at("up_proj"), width, inner, config.mlp_bias)
        self.down_proj = Linear(place.at("down_proj"), inner, width, config.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).chunk(2, -1) if self.fused else (self.gate_proj(x), self.up_proj(x))
        out: Tensor = self.down_proj(self.activation(gate) * up)
        return out


class Layer(nn.Module):
    """Attention and a feed-forward network, each on what is normalised, and added to what goes in."""

    def __init__(self, config: DecoderConfig, number: int, place: Place) -> None:
        def norm(name: str) -> RMSNorm:
            return RMSNorm(place.at(name), config.width, config.epsilon, config.unit_norms)

        self.after_norms = config.after_norms
        self.self_attn = Attention(config, place.at("self_attn"))
        self.input_layernorm = norm("input_layernorm")
        self.post_attention_layernorm = norm("post_attention_layernorm")
        if config.after_norms:
            self.pre_feedforward_layernorm = norm("pre_feedforward_layernorm")
            self.post_feedforward_layernorm = norm("post_feedforward_layernorm")
        name = "block_sparse_moe" if config.experts and config.experts.style == "mixtral" else "mlp"
        self.mlp = (MixtureOfExperts(config, config.experts, place.at(name)) if config.experts
                    else FeedForward(config, place.at(name)))

    def forward(self, x: Tensor, angles: Angles, mask: Tensor, seen: Seen, cache: LayerCache | None
                ) -> tuple[Tensor, LayerCache | None]:
        mixed, cache = self.self_attn(self.input_layernorm(x), angles, mask, seen, cache)
        if not self.after_norms:
            x = x + mixed
            return x + self.mlp(self.post_attention_layernorm(x)), cache
        x = x + self.post_attention_layernorm(mixed)
        return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x))), cache


class Decoder(nn.Module):
    """Tokens to the numbers that scores are computed of."""

    def __init__(self, config: DecoderConfig, place: Place) -> None:
        self.config = config
        self.embed_tokens = Embedding(place.at("embed_tokens"), config.vocabulary, config.width)
        self.layers = nn.ModuleList([Layer(config, i, place.at(f"layers.{i}")) for i in range(config.layers)])
        self.norm = RMSNorm(place.at("norm"), config.width, config.epsilon, config.unit_norms)
        self.rotary = RotaryEmbedding(config.rotary)
        self.local_rotary = RotaryEmbedding(config.local_rotary) if config.local_rotary else None

    def forward(self, tokens: Tensor, seen: Seen, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        config = self.config
        x = self.embed_tokens(tokens)
        if config.embedding_scale != 1.0:
            x = x * config.embedding_scale
        angles = self.rotary(seen.positions, seen.lengths)
        local = self.local_rotary(seen.positions, seen.lengths) if self.local_rotary is not None else angles
        masks = {window: seen.mask(window) for window in dict.fromkeys(config.windows)}
        written: Cache = []
        for i, layer in enumerate(self.layers):
            window = config.windows[i]
            x, pair = layer(x, local if window else angles, masks[window], seen, None if cache is None else cache[i])
            written += [] if pair is None else [pair]
        return self.norm(x), written


class DecoderForCausalLM(CausalLM):
    """A decoder with the scores of the next token.

    Shape:
        tokens [batch, n] of integers -> scores [batch, n, vocabulary] of the token after each.

    Args:
        config: What it consists of.
        place: Where its parameters come from.

    Example:
        >>> from mlc.models.config import read_config
        >>> from mlc.models.decoder import DecoderForCausalLM
        >>> from mlc.models.fields import Fields
        >>> from mlc.models.parameters import Drawn, Place
        >>> config = read_config(Fields({"architectures": ["LlamaForCausalLM"], "vocab_size": 50, "hidden_size": 16,
        ...     "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}, "config.json"))
        >>> DecoderForCausalLM(config, Place(Drawn(0)))(mlc.tensor([[1, 2, 3]])).shape
        (1, 3, 50)
    """

    def __init__(self, config: DecoderConfig, place: Place) -> None:
        self.config = config
        self.model = Decoder(config, place.at("model"))
        self.lm_head = None if config.tied else Linear(place.at("lm_head"), config.width, config.vocabulary)

    @property
    def layers(self) -> Decoder:
        return self.model

    @property
    def embedding(self) -> Embedding:
        return self.model.embed_tokens

    def scores(self, hidden: Tensor) -> Tensor:
        """The scores of the next token [..., vocabulary]."""
        out = super().scores(hidden)
        if (cap := self.config.logit_cap) is not None:
            out = mlc.tanh(out / cap) * cap
        return out
