"""Mixtures of experts: a router chooses a few feed-forward networks for each token."""

from __future__ import annotations

import mlc
from mlc import nn
from mlc.frontend.tensor import Tensor
from mlc.models.config import DecoderConfig, Experts
from mlc.models.layers import ACTIVATIONS, Linear
from mlc.models.parameters import Place

_NAMES = {"mixtral": ("w1", "w3", "w2"), "qwen": ("gate_proj", "up_proj", "down_proj")}


class Expert(nn.Module):
    """down(activation(gate(x)) * up(x)), under the names of a style."""

    def __init__(self, place: Place, names: tuple[str, str, str], width: int, inner: int, activation: str) -> None:
        self.activation, self.names = ACTIVATIONS[activation], names
        for name, shape in zip(names, ((width, inner), (width, inner), (inner, width))):
            setattr(self, name, Linear(place.at(name), *shape))

    def forward(self, x: Tensor) -> Tensor:
        gate, up, down = (getattr(self, name) for name in self.names)
        out: Tensor = down(self.activation(gate(x)) * up(x))
        return out


class MixtureOfExperts(nn.Module):
    """The sum of the experts that the router chooses for a token, by their weights, and of one that all tokens have.

    All experts are computed for all tokens, with the weight 0 for those that are not chosen.
    """

    def __init__(self, config: DecoderConfig, experts: Experts, place: Place) -> None:
        self.settings = experts
        names = _NAMES[experts.style]

        def expert(at: Place, inner: int) -> Expert:
            return Expert(at, names, config.width, inner, config.activation)

        self.gate = Linear(place.at("gate"), config.width, experts.count)
        self.experts = nn.ModuleList([expert(place.at(f"experts.{i}"), experts.width) for i in range(experts.count)])
        if experts.shared_width:
            self.shared_expert = expert(place.at("shared_expert"), experts.shared_width)
            self.shared_expert_gate = Linear(place.at("shared_expert_gate"), config.width, 1)

    def forward(self, x: Tensor) -> Tensor:
        settings = self.settings
        chances = mlc.softmax(self.gate(x), dim=-1)
        best, chosen = mlc.topk(chances, settings.chosen, -1)
        if settings.normalised:
            best = best / best.sum(-1, keepdim=True)
        weights = mlc.scatter(mlc.zeros_like(chances), -1, chosen, best)
        out: Tensor = sum(weights[..., i: i + 1] * expert(x) for i, expert in enumerate(self.experts))
        if settings.shared_width:
            out = out + mlc.sigmoid(self.shared_expert_gate(x)) * self.shared_expert(x)
        return out
