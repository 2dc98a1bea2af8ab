"""A small classifier with a mixture of experts, in the form of GShard: tokens are sent to experts and back by products
with masks, so that dividing groups of tokens and experts along one axis of a mesh makes these exchanges all-to-alls.

(Lepikhin et al., "GShard", 2020; one expert for each token, as in Fedus, Zoph, Shazeer, "Switch Transformers", 2021.)
"""

from __future__ import annotations

from typing import Any

import mlc
from mlc import nn

F = nn.functional


class MixtureOfExperts(nn.Module):
    """Tokens [groups, tokens, width] to the same shape. An expert takes up to `capacity` tokens of each group; those
    that find no place in theirs become zeros."""

    def __init__(self, width: int, experts: int, inner: int, capacity: int) -> None:
        self.experts, self.capacity = experts, capacity
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(mlc.randn(experts, width, inner) * width ** -0.5)
        self.down = nn.Parameter(mlc.randn(experts, inner, width) * inner ** -0.5)

    def forward(self, x: mlc.Tensor) -> mlc.Tensor:
        chances = mlc.softmax(self.router(x), dim=-1)
        chosen = F.one_hot(chances.argmax(-1), self.experts).float()
        place = chosen.cumsum(1) * chosen - 1                        # -1 where another expert is chosen
        sent = (place.unsqueeze(-1) == mlc.arange(self.capacity).float()).float()
        tokens = mlc.einsum("gsec,gsw->egcw", sent, x)
        answers = mlc.einsum("egcf,efw->egcw", mlc.relu(mlc.einsum("egcw,ewf->egcf", tokens, self.up)), self.down)
        out: mlc.Tensor = mlc.einsum("gsec,egcw->gsw", sent * chances.unsqueeze(-1), answers)
        return out


class Classifier(nn.Module):
    """64 pixels, as 4 tokens for each image, to 10 scores."""

    def __init__(self, groups: int = 8) -> None:
        self.groups = groups
        self.embed = nn.Linear(16, 32)
        self.moe = MixtureOfExperts(32, experts=8, inner=64, capacity=8)
        self.scores = nn.Linear(128, 10)

    def forward(self, images: mlc.Tensor) -> mlc.Tensor:
        count = images.shape[0]
        x = self.embed(images.reshape(self.groups, count // self.groups * 4, 16))
        x = x + self.moe(x)
        scores: mlc.Tensor = self.scores(x.reshape(count, 128))
        return scores


def loss(model: Any, images: Any, labels: Any) -> Any:
    return F.cross_entropy(model(images), labels)
