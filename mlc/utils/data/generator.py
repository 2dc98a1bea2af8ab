"""Random numbers of samplers and loaders, which come from a generator of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.frontend.axes import plain_int
from mlc.frontend.generator import Generator, default_generator
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserTypeError

GeneratorLike = int | Generator | None
"""A seed, a generator, or None for one that the default generator seeds."""
State = dict[str, Any]


class GeneratorSource:
    """The generator that `generator` stands for.

    For None it is one of its own, whose seed is drawn from the default generator when it is first needed, and again
    after each time that the default generator is seeded. That is why a saved state determines all later numbers:
    nothing else draws from it.
    """

    def __init__(self, generator: GeneratorLike) -> None:
        self._follows = generator is None
        self._seeded: int | None = None
        self._loaded = False
        self._generator = generator if isinstance(generator, Generator) else Generator()
        if not self._follows and not isinstance(generator, Generator):
            self._generator.manual_seed(_seed(generator))

    @property
    def generator(self) -> Generator:
        """The generator to draw from."""
        if self._follows and self._seeded != default_generator.times_seeded:
            if not self._loaded:                           # or the state of the default generator was loaded with it
                self._generator.manual_seed(int(default_generator.numpy().integers(2**63)))
            self._seeded, self._loaded = default_generator.times_seeded, False
        return self._generator

    def numpy(self) -> np.random.Generator:
        """A numpy generator for the next numbers."""
        return self.generator.numpy()

    def draw_seed(self) -> int:
        """A seed of 62 bits, so that numbers of workers can be added to it."""
        return int(self.numpy().integers(2**62))

    def state_dict(self) -> State:
        """State of the generator: its bytes."""
        return {"generator": self.generator.get_state().tolist()}

    def load_state_dict(self, state: State) -> None:
        """Continue from a state that `state_dict` returned."""
        found = state.get("generator")
        if not isinstance(found, list) or len(found) != 16 or not all(type(b) is int and 0 <= b < 256 for b in found):
            raise UserError("the state is not that of a generator, which has 16 bytes", code="MLC0709", loc=user_loc())
        self._generator.set_state(Tensor(np.array(found, np.uint8)))
        self._loaded = True


def _seed(generator: Any) -> int:
    if isinstance(generator, bool) or not hasattr(generator, "__index__"):
        raise UserTypeError(f"generator is {type(generator).__name__} {generator!r}"[:120], code="MLC0713",
                            loc=user_loc(), hint="it may be an integer seed, an mlc.Generator, or None for one that "
                                                 "mlc.manual_seed seeds")
    if (seed := plain_int(generator, "generator")) < 0:
        raise UserError(f"generator = {seed}, expected a seed of at least 0", code="MLC0360", loc=user_loc())
    return seed
