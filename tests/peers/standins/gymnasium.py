"""Stand-in for gymnasium: a pole on a cart, with the equations of motion of Barto, Sutton and Anderson (1983)."""

from __future__ import annotations

from math import cos, sin
from types import SimpleNamespace
from typing import Any

import numpy as np


class CartPole:
    """An episode ends when the pole falls, the cart leaves its track, or after 500 steps."""

    def __init__(self) -> None:
        self.rng, self.spec = np.random.default_rng(0), SimpleNamespace(reward_threshold=475.0)

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.state, self.steps = self.rng.uniform(-0.05, 0.05, 4), 0
        return self.state.astype(np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        _, speed, angle, turning = self.state
        pushed = ((10.0 if action else -10.0) + 0.05 * turning**2 * sin(angle)) / 1.1
        spin = (9.8 * sin(angle) - cos(angle) * pushed) / (0.5 * (4 / 3 - 0.1 * cos(angle) ** 2 / 1.1))
        push = pushed - 0.05 * spin * cos(angle) / 1.1
        self.state = self.state + 0.02 * np.array([speed, push, turning, spin])
        self.steps += 1
        fallen = bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095)
        return self.state.astype(np.float32), 1.0, fallen, self.steps >= 500, {}


def make(name: str, render_mode: str | None = None) -> CartPole:
    """The environment, which is not shown."""
    if name != "CartPole-v1" or render_mode is not None:
        raise ValueError(f"only CartPole-v1 without a window, found {name}")
    return CartPole()
