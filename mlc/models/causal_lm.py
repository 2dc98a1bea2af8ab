"""The head of a language model: the scores of the next token, of what the layers give."""

from __future__ import annotations

from mlc import nn
from mlc.frontend.tensor import Tensor
from mlc.models.cache import Cache, Seen, whole
from mlc.models.layers import Embedding, Linear, product


class CausalLM(nn.Module):
    """Layers with the scores of the next token; a subclass says what its layers and its embedding are called."""

    lm_head: Linear | None                                 # None where the embedding's weight is the head's

    @property
    def layers(self) -> nn.Module:
        """The module of tokens, what has been seen and a cache that gives the numbers of each token, and the cache."""
        raise NotImplementedError

    @property
    def embedding(self) -> Embedding:
        """The module that tokens are looked up in."""
        raise NotImplementedError

    def forward(self, tokens: Tensor) -> Tensor:
        return self.scores(self.hidden(tokens, whole(tokens))[0])

    def hidden(self, tokens: Tensor, seen: Seen, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """The numbers of each token that `scores` takes, and the cache with the tokens."""
        out: tuple[Tensor, Cache] = self.layers(tokens, seen, cache)
        return out

    def scores(self, hidden: Tensor) -> Tensor:
        """The scores of the next token [..., vocabulary]."""
        out: Tensor = product(hidden, self.embedding.weight) if self.lm_head is None else self.lm_head(hidden)
        return out
