"""A multilayer perceptron, an LSTM, a recommender with embeddings, and the U-Net of a diffusion model."""

from __future__ import annotations

import math
from typing import Any

from mlc.tools.bench.library import Library


def mlp(a: Library) -> Any:
    """784-512-512-10."""
    nn = a.nn
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def lstm(a: Library) -> Any:
    """A tagger: two layers of an LSTM (Hochreiter and Schmidhuber, 1997) over embeddings."""
    nn = a.nn

    class Tagger(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.cells = nn.Embedding(10000, 256), nn.LSTM(256, 512, 2, batch_first=True)
            self.out = nn.Linear(512, 64)

        def forward(self, x: Any) -> Any:
            return self.out(self.cells(self.words(x))[0])

    return Tagger()


def recommender(a: Library) -> Any:
    """Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation Systems", 2019."""
    nn = a.nn
    tables, rows, width = 26, 10000, 64

    class Recommender(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList([nn.Embedding(rows, width) for _ in range(tables)])
            self.bottom = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
            pairs = (tables + 1) * tables // 2
            self.top = nn.Sequential(nn.Linear(width + pairs, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                     nn.Linear(256, 1))
            at = [(i, j) for i in range(tables + 1) for j in range(i)]
            self.register_buffer("pairs", a.lib.tensor([i * (tables + 1) + j for i, j in at]))

        def forward(self, dense: Any, sparse: Any) -> Any:
            x = self.bottom(dense)
            y = a.lib.stack([x, *(table(sparse[:, i]) for i, table in enumerate(self.tables))], 1)
            products = (y @ y.transpose(1, 2)).flatten(1)
            return self.top(a.lib.cat([x, products[:, self.pairs]], 1))

    return Recommender()


def diffusion(a: Library) -> Any:
    """Ho, Jain, Abbeel, "Denoising Diffusion Probabilistic Models", 2020: three sizes, attention at the smallest."""
    nn = a.nn
    embedded = 256

    class Residual(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, channels: int, out: int) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.GroupNorm(8, channels), nn.SiLU(), nn.Conv2d(channels, out, 3, padding=1))
            self.time = nn.Linear(embedded, out)
            self.second = nn.Sequential(nn.GroupNorm(8, out), nn.SiLU(), nn.Conv2d(out, out, 3, padding=1))
            self.short = nn.Identity() if channels == out else nn.Conv2d(channels, out, 1)

        def forward(self, x: Any, t: Any) -> Any:
            return self.short(x) + self.second(self.first(x) + self.time(t)[:, :, None, None])

    class Attention(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.norm = nn.GroupNorm(8, channels)
            self.qkv, self.out = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

        def forward(self, x: Any) -> Any:
            b, c, h, w = x.shape
            q, k, v = (p.reshape(b, 4, c // 4, h * w).transpose(2, 3) for p in self.qkv(self.norm(x)).chunk(3, 1))
            y = nn.functional.scaled_dot_product_attention(q, k, v)
            return x + self.out(y.transpose(2, 3).reshape(b, c, h, w))

    class Diffusion(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.time = nn.Sequential(nn.Linear(64, embedded), nn.SiLU(), nn.Linear(embedded, embedded))
            self.stem = nn.Conv2d(3, 64, 3, padding=1)
            self.down = nn.ModuleList([Residual(64, 64), Residual(64, 128), Residual(128, 256)])
            self.middle, self.attention = Residual(256, 256), Attention(256)
            self.up = nn.ModuleList([Residual(512, 128), Residual(256, 64), Residual(128, 64)])
            self.out = nn.Sequential(nn.GroupNorm(8, 64), nn.SiLU(), nn.Conv2d(64, 3, 3, padding=1))

        def forward(self, x: Any, steps: Any) -> Any:
            frequencies = a.lib.exp(a.lib.arange(32) * (-math.log(10000.0) / 32))
            angles = steps[:, None] * frequencies
            t = self.time(a.lib.cat([a.lib.sin(angles), a.lib.cos(angles)], 1))
            x, shortcuts = self.stem(x), []
            for i, down in enumerate(self.down):
                x = down(nn.functional.avg_pool2d(x, 2) if i else x, t)
                shortcuts.append(x)
            x = self.attention(self.middle(x, t))
            for i, up in enumerate(self.up):
                x = nn.functional.interpolate(x, scale_factor=2.0) if i else x
                x = up(a.lib.cat([x, shortcuts[-1 - i]], 1), t)
            return self.out(x)

    return Diffusion()
