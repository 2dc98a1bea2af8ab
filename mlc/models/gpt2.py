"""GPT-2: learned positions, layer norms, and linear maps whose weights are stored transposed."""

from __future__ import annotations

from mlc import nn
from mlc.frontend.tensor import Tensor
from mlc.models.cache import Cache, LayerCache, Seen
from mlc.models.causal_lm import CausalLM
from mlc.models.config import GPT2Config
from mlc.models.layers import ACTIVATIONS, Embedding, LayerNorm, Linear
from mlc.models.parameters import Place


class Conv1D(nn.Module):
    """x @ weight + bias, under the name that transformers has for it."""

    def __init__(self, place: Place, columns: int, rows: int) -> None:
        self.weight, self.bias = place.take("weight", columns, rows), place.take("bias", rows)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.float() + self.bias.float()


def linear_map(config: GPT2Config, place: Place, columns: int, rows: int) -> nn.Module:
    """An affine map in the layout that the weights have: transposed in the files of transformers, and not in GGUF."""
    return Conv1D(place, columns, rows) if config.transposed else Linear(place, columns, rows, bias=True)


class Attention(nn.Module):
    """Each token looks at those before it and at itself."""

    def __init__(self, config: GPT2Config, place: Place) -> None:
        self.heads, self.size = config.heads, config.head_size
        self.scale = config.head_size ** -0.5 if config.scaled else 1.0
        self.c_attn = linear_map(config, place.at("c_attn"), config.width, 3 * config.width)
        self.c_proj = linear_map(config, place.at("c_proj"), config.width, config.width)

    def forward(self, x: Tensor, mask: Tensor, seen: Seen, cache: LayerCache | None
                ) -> tuple[Tensor, LayerCache | None]:
        batch, n, _ = x.shape
        q, k, v = (y.reshape(batch, n, self.heads, self.size) for y in self.c_attn(x).chunk(3, -1))
        mixed, cache = seen.attend(cache, q.transpose(1, 2), k, v, mask, self.scale)
        return self.c_proj(mixed), cache


class FeedForward(nn.Module):
    """Two linear maps with an activation between them."""

    def __init__(self, config: GPT2Config, place: Place) -> None:
        self.activation = ACTIVATIONS[config.activation]
        self.c_fc = linear_map(config, place.at("c_fc"), config.width, config.inner_width)
        self.c_proj = linear_map(config, place.at("c_proj"), config.inner_width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.c_proj(self.activation(self.c_fc(x)))
        return out


class Layer(nn.Module):
    """Attention and a feed-forward network, each on what is normalised, and added to what goes in."""

    def __init__(self, config: GPT2Config, place: Place) -> None:
        self.ln_1 = LayerNorm(place.at("ln_1"), config.width, config.epsilon)
        self.attn = Attention(config, place.at("attn"))
        self.ln_2 = LayerNorm(place.at("ln_2"), config.width, config.epsilon)
        self.mlp = FeedForward(config, place.at("mlp"))

    def forward(self, x: Tensor, mask: Tensor, seen: Seen, cache: LayerCache | None
                ) -> tuple[Tensor, LayerCache | None]:
        mixed, cache = self.attn(self.ln_1(x), mask, seen, cache)
        x = x + mixed
        return x + self.mlp(self.ln_2(x)), cache


class Transformer(nn.Module):
    """Tokens to the numbers that scores are computed of."""

    def __init__(self, config: GPT2Config, place: Place) -> None:
        self.wte = Embedding(place.at("wte"), config.vocabulary, config.width)
        self.wpe = Embedding(place.at("wpe"), config.context, config.width)
        self.h = nn.ModuleList([Layer(config, place.at(f"h.{i}")) for i in range(config.layers)])
        self.ln_f = LayerNorm(place.at("ln_f"), config.width, config.epsilon)

    def forward(self, tokens: Tensor, seen: Seen, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        x, mask, written = self.wte(tokens) + self.wpe(seen.positions), seen.mask(0), Cache()
        for i, layer in enumerate(self.h):
            x, pair = layer(x, mask, seen, None if cache is None else cache[i])
            written += [] if pair is None else [pair]
        return self.ln_f(x), written


class GPT2ForCausalLM(CausalLM):
    """GPT-2 with the scores of the next token.

    Shape:
        tokens [batch, n] of integers -> scores [batch, n, vocabulary] of the token after each.

    Args:
        config: What it consists of.
        place: Where its parameters come from.

    Example:
        >>> from mlc.models.config import read_config
        >>> from mlc.models.fields import Fields
        >>> from mlc.models.gpt2 import GPT2ForCausalLM
        >>> from mlc.models.parameters import Drawn, Place
        >>> config = read_config(Fields({"architectures": ["GPT2LMHeadModel"], "vocab_size": 50, "n_embd": 16,
        ...     "n_layer": 1, "n_head": 2, "n_positions": 32}, "config.json"))
        >>> GPT2ForCausalLM(config, Place(Drawn(0)))(mlc.tensor([[1, 2, 3]])).shape
        (1, 3, 50)
    """

    def __init__(self, config: GPT2Config, place: Place) -> None:
        self.config = config
        self.transformer = Transformer(config, place.at("transformer"))
        self.lm_head = None if config.tied else Linear(place.at("lm_head"), config.width, config.vocabulary)

    @property
    def layers(self) -> Transformer:
        return self.transformer

    @property
    def embedding(self) -> Embedding:
        return self.transformer.wte
