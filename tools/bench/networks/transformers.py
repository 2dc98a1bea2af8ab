"""Transformers: ViT-tiny, BERT-base and GPT-2."""

from __future__ import annotations

from typing import Any

from mlc.tools.bench.library import Library


def layer(a: Library, width: int, heads: int, causal: bool = False, norms_first: bool = True) -> Any:
    """Attention and a feed-forward network, with norms before them (GPT-2, ViT) or after them (BERT)."""
    nn = a.nn

    class Layer(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh" if causal else "none"),
                                       nn.Linear(4 * width, width))

        def attention(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = (p.reshape(b, t, heads, c // heads).transpose(1, 2) for p in self.qkv(x).split(c, 2))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            return self.out(y.transpose(1, 2).reshape(b, t, c))

        def forward(self, x: Any) -> Any:
            if norms_first:
                x = x + self.attention(self.first(x))
                return x + self.inner(self.second(x))
            x = self.first(x + self.attention(x))
            return self.second(x + self.inner(x))

    return Layer()


def vit_tiny(a: Library) -> Any:
    """Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021, in the width of DeiT-tiny."""
    nn = a.nn

    class ViT(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 192, 16, 16)
            self.token = nn.Parameter(a.lib.zeros(1, 1, 192))
            self.places = nn.Parameter(a.lib.zeros(1, 197, 192))
            self.layers = nn.Sequential(*(layer(a, 192, 3) for _ in range(12)))
            self.norm, self.head = nn.LayerNorm(192), nn.Linear(192, 1000)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = a.lib.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
            return self.head(self.norm(self.layers(x))[:, 0])

    return ViT()


def _language(a: Library, words: int, causal: bool) -> Any:
    nn = a.nn
    width = 768

    class Language(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(512, width)
            self.layers = nn.Sequential(*(layer(a, width, 12, causal, causal) for _ in range(12)))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, words, bias=False) if causal else nn.Linear(width, 2)

        def forward(self, x: Any) -> Any:
            y = self.words(x) + self.places(a.lib.arange(x.shape[1], device=x.device))
            if causal:
                return self.head(self.norm(self.layers(y)))
            return self.head(self.layers(self.norm(y))[:, 0])

    return Language()


def bert_base(a: Library) -> Any:
    """Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2018, with two classes."""
    return _language(a, 30522, False)


def gpt2(a: Library) -> Any:
    """Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, with a head of its own weights."""
    return _language(a, 50257, True)
