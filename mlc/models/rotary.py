"""Rotary position embeddings and their scalings: the angles by which queries and keys are turned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlc
from mlc import nn
from mlc.frontend.tensor import Tensor
from mlc.models.fields import Fields

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Rotary:
    """How a model turns queries and keys, as `rope_parameters` of a `config.json` says.

    kind        "default", "linear", "dynamic", "yarn", "longrope" or "llama3", the names of transformers, or "divided"
    size        number of elements of a head that are turned
    theta       base of the frequencies theta^(-2i / size)
    factor      by which the scaling extends the context
    trained     context of the training (`original_max_position_embeddings`); what `dynamic` extends
    magnitude   factor of the cosines and sines, which yarn and longrope have
    betas       of yarn: rotations within the trained context beyond which a frequency is kept, and below which it is
                divided by `factor`; of llama3: the factors of its long and short wavelengths
    truncate    of yarn: whether the borders of the ramp are integers
    short, long of longrope: divisors of the frequencies up to the trained context, and beyond it; short also of divided
    """

    kind: str
    size: int
    theta: float
    factor: float = 1.0
    trained: int = 0
    magnitude: float = 1.0
    betas: tuple[float, float] = (0.0, 0.0)
    truncate: bool = True
    short: tuple[float, ...] = ()
    long: tuple[float, ...] = ()

    def frequencies(self) -> list[float]:
        """The angle per position of each pair of elements, in float32."""
        if self.kind == "linear":
            return self.plain_frequencies([self.factor])
        if self.kind in ("longrope", "divided"):
            return self.plain_frequencies(self.short)
        plain = np.array(self.plain_frequencies([1.0]), np.float32)
        if self.kind == "llama3":
            plain = self._llama3(plain)
        elif self.kind == "yarn":
            plain = self._yarn(plain)
        return [float(x) for x in plain]

    def plain_frequencies(self, divisors: Sequence[float]) -> list[float]:
        """theta^(-2i / size), each divided by its divisor."""
        steps = np.arange(0, self.size, 2, dtype=np.float32) / np.float32(self.size)
        powers = (np.array(divisors, np.float32) * np.float32(self.theta) ** steps).astype(np.float32)
        return [float(x) for x in np.float32(1.0) / powers]

    def _llama3(self, plain: Array) -> Array:
        """Long wavelengths are divided by the factor, short ones kept, and those between interpolated."""
        low, high = self.betas
        waves = 2 * math.pi / plain
        smooth = (self.trained / waves - low) / (high - low)
        between = (1 - smooth) * plain / self.factor + smooth * plain
        out: Array = np.where(waves > self.trained / low, plain / self.factor,
                              np.where(waves < self.trained / high, plain, between)).astype(np.float32)
        return out

    def _yarn(self, plain: Array) -> Array:
        """A ramp from the frequencies that turn often in the trained context, which are kept, to the slow ones."""
        def border(rotations: float) -> float:
            return self.size * math.log(self.trained / (rotations * 2 * math.pi)) / (2 * math.log(self.theta))

        low, high = border(self.betas[0]), border(self.betas[1])
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, self.size - 1)
        ramp = np.clip((np.arange(self.size // 2, dtype=np.float32) - low) / (high - low or 0.001), 0, 1)
        out: Array = (plain / self.factor * ramp + plain * (1 - ramp)).astype(np.float32)
        return out


class RotaryEmbedding(nn.Module):
    """Cosines and sines of the angles of positions.

    Shape:
        positions [batch, n] and lengths [batch] of integers -> two tensors [batch, 1, n, size / 2] of floats.

    Args:
        rotary: The frequencies and their scaling.

    Example:
        >>> from mlc.models.rotary import Rotary, RotaryEmbedding
        >>> cos, sin = RotaryEmbedding(Rotary("default", 4, 10000.0))(mlc.tensor([[0, 1]]), mlc.tensor([2]))
        >>> cos.shape
        (1, 1, 2, 2)
    """

    def __init__(self, rotary: Rotary) -> None:
        self.rotary = rotary
        self.plain = rotary.frequencies()

    def forward(self, positions: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        frequencies = self._frequencies(lengths)
        angles = positions.to("float32")[:, :, None] * frequencies[:, None, :]
        cos, sin = mlc.cos(angles)[:, None], mlc.sin(angles)[:, None]
        if self.rotary.magnitude != 1.0:
            cos, sin = cos * self.rotary.magnitude, sin * self.rotary.magnitude
        return cos, sin

    def _frequencies(self, lengths: Tensor) -> Tensor:
        """[1 or batch, size / 2]: those of two scalings depend on the length of the sequence."""
        rotary = self.rotary
        plain = mlc.tensor([self.plain])
        if rotary.kind == "longrope":
            long = mlc.tensor([rotary.plain_frequencies(rotary.long)])
            chosen: Tensor = mlc.where(lengths[:, None] > rotary.trained, long, plain)
            return chosen
        if rotary.kind == "dynamic":
            beyond = lengths.to("float32").clamp(min=float(rotary.trained)) / float(rotary.trained)
            stretch = (beyond * rotary.factor - (rotary.factor - 1)) ** (rotary.size / (rotary.size - 2))
            steps = mlc.arange(0, rotary.size, 2, dtype="float32")[None] / rotary.size
            return plain * stretch[:, None] ** -steps
        return plain


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [batch, heads, n, head size] with the pairs (i, i + size / 2) of its first `size` elements turned."""
    half = cos.shape[-1]
    a, b = x[..., :half], x[..., half: 2 * half]
    pieces = [a * cos - b * sin, b * cos + a * sin]
    if 2 * half != x.shape[-1]:
        pieces.append(x[..., 2 * half:])
    return mlc.cat(pieces, -1)


_KINDS = ("default", "linear", "dynamic", "yarn", "longrope", "llama3")


def read_rotary(fields: Fields, head_size: int, context: int, theta: float = 10000.0,
                given: Mapping[str, Any] | None = None) -> Rotary:
    """The rotary embedding that a `config.json` describes, by `rope_parameters` or the older `rope_scaling`."""
    found = given if given is not None else {**(fields.mapping("rope_scaling") or {}),
                                             **(fields.mapping("rope_parameters") or {})}
    rope = Fields(found, f"{fields.origin}: rope_parameters")
    kind = rope.text("rope_type", rope.text("type", "default"))
    kind = {"su": "longrope", "ntk": "dynamic"}.get(kind, kind)
    if kind not in _KINDS:
        raise fields.refusal(f"the rotary embedding has the type {kind!r}", "mlc knows " + ", ".join(_KINDS))
    theta = rope.positive("rope_theta", fields.positive("rope_theta", theta))
    part = rope.number("partial_rotary_factor", fields.number("partial_rotary_factor", 1.0))
    size = int(head_size * part)
    if kind == "default":
        return Rotary(kind, size, theta)
    trained = rope.integer("original_max_position_embeddings",
                           fields.integer("original_max_position_embeddings", context))
    if trained < 1:
        raise fields.refusal(f"original_max_position_embeddings is {trained}")
    if kind == "longrope":
        factor = rope.positive("factor", context / trained)
        magnitude = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(trained))
        short, long = _divisors(rope, "short_factor", size), _divisors(rope, "long_factor", size)
        return Rotary(kind, size, theta, factor, trained, rope.number("attention_factor", magnitude), short=short,
                      long=long)
    factor = rope.positive("factor")
    if kind == "yarn":
        return Rotary(kind, size, theta, factor, trained, rope.number("attention_factor", _magnitude(rope, factor)),
                      (rope.number("beta_fast", 32.0), rope.number("beta_slow", 1.0)), rope.flag("truncate", True))
    if kind == "llama3":
        return Rotary(kind, size, theta, factor, trained,
                      betas=(rope.number("low_freq_factor"), rope.number("high_freq_factor")))
    return Rotary(kind, size, theta, factor, context)


def _divisors(rope: Fields, name: str, size: int) -> tuple[float, ...]:
    values: Sequence[Any] = rope.sequence(name)
    if len(values) != size // 2 or not all(isinstance(x, int | float) for x in values):
        raise rope.refusal(f"{name} is no list of {size // 2} numbers")
    return tuple(map(float, values))


def _magnitude(rope: Fields, factor: float) -> float:
    """The factor of yarn's cosines and sines that is recommended for the factor of the context."""
    def scale(m: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * m * math.log(factor) + 1.0

    m, every = rope.number("mscale", 0.0), rope.number("mscale_all_dim", 0.0)
    return scale(m) / scale(every) if m and every else scale(1.0)
