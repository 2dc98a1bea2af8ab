"""Dropout: layers that draw random numbers in training.

Each layer holds a key (`mlc.random`) as a buffer. A call splits it: one half draws, the other becomes the layer's
key. So a model that is seeded (`mlc.manual_seed`) trains the same every time, eager and compiled, and a compiled step
hands the next keys on as it does the statistics of a BatchNorm: in the model that it returns, or in the one it is
given. Saved states do not hold keys.
"""

from __future__ import annotations

from mlc.frontend.functions import neural, random
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError
from mlc.nn import init
from mlc.nn.module import Module


class Keyed(Module):
    """A module that draws random numbers: it holds a key, and `next_key` gives out new ones."""

    _buffers = ("key",)
    _unsaved = ("key",)

    key: Tensor

    def __init__(self, generator: init.Generator | None = None) -> None:
        self.draw_key(generator)

    def draw_key(self, generator: init.Generator | None = None) -> None:
        """Take a key from the generator of initial values."""
        self.key = random.key(int((generator or init.default_generator()).integers(1 << 63)))

    def next_key(self) -> Tensor:
        """A key that has not been used; the module keeps another one."""
        keys = random.split(self.key)
        self.key = keys[0]
        return keys[1]


class _Dropout(Keyed):
    def __init__(self, p: float = 0.5, inplace: bool = False, generator: init.Generator | None = None) -> None:
        if isinstance(p, bool) or not 0 <= p <= 1:
            raise UserError(f"p = {p} is no probability", code="MLC0360", loc=user_loc())
        super().__init__(generator)
        self.p = p

    def forward(self, x: Operand) -> Tensor:
        if not self.training or not self.p:
            return x  # type: ignore[no-any-return]
        return self.drop(x, self.next_key())

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        raise NotImplementedError


class Dropout(_Dropout):
    """In training, each element 0 with probability p, else x / (1 - p)."""

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        return neural.dropout(x, self.p, key=key)


class Dropout1d(_Dropout):
    """Dropout of whole channels of [n, c, l] or [c, l]."""

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        return neural.feature_dropout(x, self.p, spatial=1, key=key)


class Dropout2d(_Dropout):
    """Dropout of whole channels of [n, c, h, w] or [c, h, w]."""

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        return neural.feature_dropout(x, self.p, spatial=2, key=key)


class Dropout3d(_Dropout):
    """Dropout of whole channels of [n, c, d, h, w] or [c, d, h, w]."""

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        return neural.feature_dropout(x, self.p, spatial=3, key=key)


class AlphaDropout(_Dropout):
    """Dropout for what comes out of SELU: mean and variance stay."""

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        return neural.alpha_dropout(x, self.p, key=key)
