"""Encoders of the BERT family: tokens of texts to numbers for each of them, of which vectors of texts are made."""

from __future__ import annotations

import mlc
from mlc import nn
from mlc.frontend.tensor import Tensor
from mlc.models.encoder_config import EncoderConfig
from mlc.models.layers import ACTIVATIONS, Embedding, LayerNorm, Linear, attend
from mlc.models.parameters import Place
from mlc.models.rotary import RotaryEmbedding, turned


class Part(nn.Module):
    """A module with parts at paths, so that parameters have the names of transformers, whatever the architecture."""

    def put(self, path: str, part: nn.Module) -> None:
        """Have `part` be the one at a path, such as `attention.self.query`."""
        first, _, rest = path.partition(".")
        if not rest:
            setattr(self, first, part)
            return
        if not hasattr(self, first):
            setattr(self, first, Part())
        getattr(self, first).put(rest, part)


class Layer(Part):
    """Attention and a feed-forward network, each added to what goes in, with a norm behind."""

    def __init__(self, config: EncoderConfig, place: Place) -> None:
        self.config = config
        width, inner = config.width, config.inner_width
        for part, columns, rows in (("query", width, width), ("key", width, width), ("value", width, width),
                                    ("mixed", width, width), ("inner", width, inner), ("outer", inner, width)):
            self.put(config.names[part], Linear(place.at(config.names[part]), columns, rows, bias=True))
        for part in ("mixed_norm", "outer_norm"):
            self.put(config.names[part], LayerNorm(place.at(config.names[part]), width, config.epsilon))

    def forward(self, x: Tensor, rows: Tensor, mask: Tensor) -> Tensor:
        config, (batch, n, width) = self.config, x.shape
        size = width // config.heads
        q = self._run("query", x).reshape(batch, n, config.heads, size).transpose(1, 2)
        k, v = (self._run(part, x).reshape(batch, n, config.heads, size)[:, rows].transpose(1, 2)
                for part in ("key", "value"))
        mixed = self._run("mixed", attend(q, k, v, mask, size ** -0.5))
        x = self._run("mixed_norm", x + mixed)
        inner = ACTIVATIONS[config.activation](self._run("inner", x))
        return self._run("outer_norm", x + self._run("outer", inner))

    def _run(self, part: str, x: Tensor) -> Tensor:
        out: Tensor = self.get_submodule(self.config.names[part])(x)
        return out


class NomicLayer(Part):
    """The same with queries and keys that are turned by their positions, a gate, and no biases: nomic-bert."""

    def __init__(self, config: EncoderConfig, place: Place) -> None:
        self.config = config
        width, inner = config.width, config.inner_width
        for part, columns, rows in (("projected", width, 3 * width), ("mixed", width, width), ("inner", width, inner),
                                    ("gate", width, inner), ("outer", inner, width)):
            self.put(config.names[part], Linear(place.at(config.names[part]), columns, rows))
        for part in ("mixed_norm", "outer_norm"):
            self.put(config.names[part], LayerNorm(place.at(config.names[part]), width, config.epsilon))

    def forward(self, x: Tensor, rows: Tensor, mask: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        config, (batch, n, width) = self.config, x.shape
        size = width // config.heads
        parts = self._run("projected", x).reshape(batch, n, 3, config.heads, size)
        q, k, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
        q, k = turned(q, *angles), turned(k, *angles)
        x = self._run("mixed_norm", x + self._run("mixed", attend(q, k[:, :, rows], v[:, :, rows], mask, size ** -0.5)))
        inner = self._run("inner", x) * ACTIVATIONS[config.activation](self._run("gate", x))
        return self._run("outer_norm", x + self._run("outer", inner))

    def _run(self, part: str, x: Tensor) -> Tensor:
        out: Tensor = self.get_submodule(self.config.names[part])(x)
        return out


class Encoder(Part):
    """Texts to the numbers of each of their tokens, which see all of their text.

    Shape:
        tokens [batch, n] of integers, lengths [batch] -> [batch, n, width]; rows behind a length have no meaning.

    Args:
        config: What it consists of.
        place: Where its parameters come from.

    Example:
        >>> from mlc.models.encoder import Encoder
        >>> from mlc.models.encoder_config import read_encoder_config
        >>> from mlc.models.fields import Fields
        >>> from mlc.models.parameters import Drawn, Place
        >>> config = read_encoder_config(Fields({"architectures": ["BertModel"], "vocab_size": 50, "hidden_size": 16,
        ...     "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}, "config.json"))
        >>> Encoder(config, Place(Drawn(0)))(mlc.tensor([[1, 2, 3]]), mlc.tensor([3])).shape
        (1, 3, 16)
    """

    def __init__(self, config: EncoderConfig, place: Place) -> None:
        self.config = config
        tables = [("embeddings.word_embeddings", config.vocabulary)]
        if config.rotary is None:
            tables.append(("embeddings.position_embeddings", config.rows))
        if config.types:
            tables.append((config.names["types"], config.types))
        for path, rows in tables:
            self.put(path, Embedding(place.at(path), rows, config.width))
        norm, at, layer = config.names["norm"], config.names["layers"], NomicLayer if config.rotary else Layer
        self.put(norm, LayerNorm(place.at(norm), config.width, config.epsilon))
        self.rotary = RotaryEmbedding(config.rotary) if config.rotary is not None else None
        self.put(at, nn.ModuleList([layer(config, place.at(f"{at}.{i}")) for i in range(config.layers)]))

    def forward(self, tokens: Tensor, lengths: Tensor, window: int | None = None) -> Tensor:
        """The numbers of tokens.

        lengths  of the texts; what is behind is padding
        window   how many rows attention adds over, at least n: by a multiple of `cache.PAGE`, the sums are the same
                 however much padding there is
        """
        config, (batch, n) = self.config, tokens.shape
        table = self.get_submodule("embeddings")
        x = table.word_embeddings(tokens)
        if config.types:
            x = x + table.token_type_embeddings(mlc.zeros(1, dtype="int64"))
        more: list[tuple[Tensor, Tensor]] = []
        if self.rotary is None:
            x = x + table.position_embeddings(self._positions(tokens))
        else:
            more = [self.rotary(mlc.arange(n)[None].expand(batch, n), lengths)]
        x = self.get_submodule(config.names["norm"])(x)
        every = mlc.arange(n if window is None else window)
        rows, mask = mlc.minimum(every, n - 1), (every[None] < lengths[:, None])[:, None, None, :]
        mask = mask.expand(batch, 1, n, every.shape[0])
        for layer in self.get_submodule(config.names["layers"]):
            x = layer(x, rows, mask, *more)
        return x  # type: ignore[no-any-return]

    def _positions(self, tokens: Tensor) -> Tensor:
        """The position of each token; RoBERTa's count from the number of the padding token, which it has itself."""
        padding = self.config.padding
        if padding is None:
            return mlc.arange(tokens.shape[1])[None].expand(*tokens.shape)
        real = (tokens != padding).long()
        return mlc.cumsum(real, 1) * real + padding
