"""Dropout: layers that draw random numbers in training.

A call draws from the default generator, as in PyTorch, eager and compiled: what `mlc.manual_seed` seeds trains the same
every time. In a branch on a tensor a compiled call draws whether the branch is taken or not. In loops on tensors and in
functions that are recorded by themselves, where each iteration or call would draw the same, a layer splits a key
(`mlc.random`) of its own, which it holds as a buffer: one half draws, the other becomes its key. A layer that is given
a generator always does so. Saved states do not hold keys.
"""

from __future__ import annotations

from mlc.frontend.functions import neural, random
from mlc.frontend.generator import default_generator
from mlc.frontend.in_place import written
from mlc.frontend.location import user_loc
from mlc.frontend.recorded_draws import in_loop, refuses_draws
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError
from mlc.nn import init
from mlc.nn.module import Module, set_buffer


class Keyed(Module):
    """Module that draws random numbers: from the default generator, or by a key of its own, which is a buffer.

    The key is not in `state_dict`, so that saved states fit models with and without dropout.

    Args:
        generator: Source of a key of its own, with which it always draws; None to draw from the default generator where
            that can be recorded.

    Example:
        >>> layer = nn.Dropout(0.5)
        >>> layer.next_key().shape
        (2,)
    """

    _buffers: tuple[str, ...] = ("key",)
    _unsaved: tuple[str, ...] = ("key",)

    key: Tensor
    _always = False                                        # whether it draws by its own key alone

    def __init__(self, generator: init.Generator | None = None) -> None:
        self.draw_key(generator)

    def draw_key(self, generator: init.Generator | None = None) -> None:
        """Replace the key by one drawn from a generator.

        Args:
            generator: Source of the key, which the module always draws by from then on; None for the default generator.
        """
        self.key = (generator or default_generator).next_key()
        self._always = generator is not None

    def next_key(self) -> Tensor:
        """A key that has not been used: the next one of the default generator, or half of the module's own.

        Returns:
            A key, uint32 [2].
        """
        if not self._always:
            if refuses_draws():
                default_generator.check_draw()
            if default_generator.may_draw():
                return default_generator.next_key()
        call = None if self._always else default_generator.key_of_call()
        if call is not None and not in_loop():
            return call                                    # in a branch
        keys = random.split(self.key)
        set_buffer(self, "key", keys[0])
        return keys[1] if call is None else random.fold_in(random.fold_in(call, keys[1][0]), keys[1][1])


class _Dropout(Keyed):
    _shown = ("p", "inplace")

    def __init__(self, p: float = 0.5, inplace: bool = False, generator: init.Generator | None = None) -> None:
        if isinstance(p, bool) or not 0 <= p <= 1:
            raise UserError(f"p = {p} is no probability", code="MLC0360", loc=user_loc(),
                            hint="it is from 0 to 1, as in p=0.5")
        super().__init__(generator)
        self.p, self.inplace = p, inplace

    def forward(self, input: Operand) -> Tensor:
        if not self.training or not self.p:
            return input  # type: ignore[no-any-return]
        key = self.next_key()
        return written(input, lambda: self.drop(input, key)) if self.inplace else self.drop(input, key)

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        raise NotImplementedError


class Dropout(_Dropout):
    """Dropout: in training 0 with probability p, else x / (1 - p), for each element independently; in evaluation x.

    It draws from the default generator: after the same `mlc.manual_seed` it drops the same elements, eagerly and
    compiled. In loops on tensors, and in functions that are recorded by themselves, it draws by a key of its own.
    (Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov 2014, "Dropout: A Simple Way to Prevent Neural
    Networks from Overfitting".)

    Shape:
        Any shape -> the same shape.

    Attributes:
        key: Buffer, uint32 [2], the key of its own, which `state_dict` leaves out.

    Args:
        p: Probability of 0.
        inplace: Whether the result is written to the input.
        generator: Source of a key of its own, with which it always draws; None for the default generator.

    Raises:
        UserError: `p` is not in [0, 1] (MLC0360).

    Example:
        >>> nn.Dropout(0.5).eval()(mlc.tensor([1.0, 2.0]))
        tensor([1., 2.], dtype=mlc.float32)
        >>> sorted({*nn.Dropout(0.5)(mlc.ones(100)).tolist()})
        [0.0, 2.0]
    """

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        return neural.dropout(x, self.p, key=key)


class Dropout1d(_Dropout):
    """Dropout of whole channels: in training each is 0 with probability p, else x / (1 - p); in evaluation x.

    It draws as `Dropout` does. (Tompson, Goroshin, Jain, LeCun and Bregler 2015,
    "Efficient Object Localization Using Convolutional Networks".)

    Shape:
        [n, c, l] or [c, l] -> the same shape.

    Attributes:
        key: Buffer, uint32 [2], the key of its own, which `state_dict` leaves out.

    Args:
        p: Probability that a channel is 0.
        inplace: Whether the result is written to the input.
        generator: Source of a key of its own, with which it always draws; None for the default generator.

    Raises:
        UserError: `p` is not in [0, 1] (MLC0360), or in training the input has another number of dimensions (MLC0364).

    Example:
        >>> y = nn.Dropout1d(0.5)(mlc.ones(2, 8, 3))
        >>> (y == y[:, :, :1]).all()
        tensor(True, dtype=mlc.bool)
    """

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        return neural.feature_dropout(x, self.p, spatial=1, key=key)


class Dropout2d(_Dropout):
    """Dropout of whole channels: in training each is 0 with probability p, else x / (1 - p); in evaluation x.

    It draws as `Dropout` does. (Tompson, Goroshin, Jain, LeCun and Bregler 2015,
    "Efficient Object Localization Using Convolutional Networks".)

    Shape:
        [n, c, h, w] or [c, h, w] -> the same shape.

    Attributes:
        key: Buffer, uint32 [2], the key of its own, which `state_dict` leaves out.

    Args:
        p: Probability that a channel is 0.
        inplace: Whether the result is written to the input.
        generator: Source of a key of its own, with which it always draws; None for the default generator.

    Raises:
        UserError: `p` is not in [0, 1] (MLC0360), or in training the input has another number of dimensions (MLC0364).

    Example:
        >>> y = nn.Dropout2d(0.5)(mlc.ones(2, 8, 3, 3))
        >>> (y == y[:, :, :1, :1]).all()
        tensor(True, dtype=mlc.bool)
    """

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        return neural.dropout2d(x, self.p, key=key)


class Dropout3d(_Dropout):
    """Dropout of whole channels: in training each is 0 with probability p, else x / (1 - p); in evaluation x.

    It draws as `Dropout` does. (Tompson, Goroshin, Jain, LeCun and Bregler 2015,
    "Efficient Object Localization Using Convolutional Networks".)

    Shape:
        [n, c, d, h, w] or [c, d, h, w] -> the same shape.

    Attributes:
        key: Buffer, uint32 [2], the key of its own, which `state_dict` leaves out.

    Args:
        p: Probability that a channel is 0.
        inplace: Whether the result is written to the input.
        generator: Source of a key of its own, with which it always draws; None for the default generator.

    Raises:
        UserError: `p` is not in [0, 1] (MLC0360), or in training the input has another number of dimensions (MLC0364).

    Example:
        >>> y = nn.Dropout3d(0.5)(mlc.ones(2, 8, 3, 3, 3))
        >>> (y == y[:, :, :1, :1, :1]).all()
        tensor(True, dtype=mlc.bool)
    """

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        return neural.feature_dropout(x, self.p, spatial=3, key=key)


class AlphaDropout(_Dropout):
    """Dropout that keeps the mean 0 and the variance 1 of activations of `SELU`; in evaluation it is the identity.

    In training an element becomes a * (x or, with probability p, s) + b, where s = -1.7580993408473766 is the limit of
    SELU for x -> -inf, a = ((1 - p) * (1 + p * s**2))**-0.5 and b = -a * p * s; with p = 1 it is 0. (Klambauer,
    Unterthiner, Mayr and Hochreiter 2017, "Self-Normalizing Neural Networks".)

    Shape:
        Any shape -> the same shape.

    Attributes:
        key: Buffer, uint32 [2], the key of its own, which `state_dict` leaves out.

    Args:
        p: Probability that an element is replaced.
        inplace: Whether the result is written to the input.
        generator: Source of a key of its own, with which it always draws; None for the default generator.

    Raises:
        UserError: `p` is not in [0, 1] (MLC0360).

    Example:
        >>> nn.AlphaDropout(0.5).eval()(mlc.tensor([1.0, 2.0]))
        tensor([1., 2.], dtype=mlc.float32)
    """

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        return neural.alpha_dropout(x, self.p, key=key)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels: all elements of a channel are replaced, or none.

    Shape:
        [n, c, ...] -> the same shape.

    Attributes:
        key: Buffer, uint32 [2], the key of its own, which `state_dict` leaves out.

    Args:
        p: Probability that a channel is replaced.
        inplace: Whether the result is written to the input.
        generator: Source of a key of its own, with which it always draws; None for the default generator.

    Raises:
        UserError: `p` is not in [0, 1] (MLC0360), or the input has less than two dimensions (MLC0364).

    Example:
        >>> nn.FeatureAlphaDropout(0.5).eval()(mlc.ones(1, 2))
        tensor([[1., 1.]], dtype=mlc.float32)
    """

    def drop(self, x: Operand, key: Tensor) -> Tensor:
        return neural.feature_alpha_dropout(x, self.p, True, key=key)
