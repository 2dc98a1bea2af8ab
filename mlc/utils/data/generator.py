"""Random numbers of samplers and loaders, which come from a generator of their own or from that of this thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.frontend.axes import plain_int
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError, UserTypeError
from mlc.nn.init.generator import Generator, default_generator

GeneratorLike = int | Generator | None
"""A seed, a numpy generator, or None for one that is seeded by `mlc.manual_seed`."""
State = dict[str, Any]


class GeneratorSource:
    """The generator that `generator` stands for.

    For None it is one of its own, whose seed is drawn from the generator of `mlc.manual_seed` when it is first needed,
    and again after each call of `mlc.manual_seed`. That is why a saved state determines all later numbers: nothing else
    draws from it.
    """

    def __init__(self, generator: GeneratorLike) -> None:
        self._follows = generator is None
        self._seeded_by: Generator | None = None
        self._generator: Generator | None = None
        if isinstance(generator, Generator):
            self._generator = generator
        elif generator is not None:
            self._generator = np.random.default_rng(_seed(generator))

    @property
    def generator(self) -> Generator:
        """The numpy generator to draw from."""
        if self._generator is None or (self._follows and self._seeded_by is not default_generator()):
            self._seeded_by = default_generator()
            self._generator = np.random.default_rng(int(self._seeded_by.integers(2**63)))
        return self._generator

    def draw_seed(self) -> int:
        """A seed of 62 bits, so that numbers of workers can be added to it."""
        return int(self.generator.integers(2**62))

    def state_dict(self) -> State:
        """State of the generator, as numpy has it: a dict of names and numbers."""
        return dict(self.generator.bit_generator.state)

    def load_state_dict(self, state: State) -> None:
        """Continue from a state that `state_dict` returned."""
        found, expected = state.get("bit_generator"), type(self.generator.bit_generator).__name__
        if found != expected:
            raise UserError(f"the state is of a {found} generator, this one is a {expected}", code="MLC0709",
                            loc=user_loc(), hint="give the same kind of generator as when the state was saved")
        self.generator.bit_generator.state = state


def _seed(generator: Any) -> int:
    if isinstance(generator, bool) or not hasattr(generator, "__index__"):
        raise UserTypeError(f"generator is {type(generator).__name__} {generator!r}"[:120], code="MLC0713",
                            loc=user_loc(), hint="it may be an integer seed, a numpy.random.Generator, or None for one "
                                                 "that mlc.manual_seed seeds")
    if (seed := plain_int(generator, "generator")) < 0:
        raise UserError(f"generator = {seed}, expected a seed of at least 0", code="MLC0360", loc=user_loc())
    return seed
