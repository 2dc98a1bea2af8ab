"""`Generator`: a source of random keys with a state, for programs that pass no keys themselves.

Key n of a seed is Threefry-2x32 of the counter n under that seed, so the state is the seed and the number of draws.
What is drawn with a key is a function of that key alone (frontend/functions/random).
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import numpy as np

from mlc.dialects.tensor.random import threefry_arrays
from mlc.frontend.arguments import coded, coded_methods
from mlc.frontend.axes import any_int
from mlc.frontend.devices import CPU, Devices, as_device
from mlc.frontend.location import user_loc
from mlc.frontend.recorded_draws import at_once, mapping, once, refuses_draws
from mlc.frontend.tensor import OPERATIONS, Array, Tensor, wrap
from mlc.frontend.trace import state
from mlc.ir.diag import UserError, UserTypeError

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_SEED = 67280421310721
"""PyTorch's seed of a generator that has not been given one."""
WORD = (1 << 64) - 1
BLOCK = 64
"""Number of keys that are computed at once."""


class Generator:
    """Source of random numbers with a state: a seed, and the number of draws since it was set.

    Generators of equal states give equal numbers. A draw advances the state by one, whatever its size. Threads that
    share a generator draw different numbers.

    Args:
        device: Device that the state belongs to, as PyTorch asks for it; the numbers are the same on all.

    Raises:
        UserError: There is no such device (MLC0337).

    Example:
        >>> g = mlc.Generator().manual_seed(0)
        >>> saved = g.get_state()
        >>> x = mlc.rand(2, generator=g)
        >>> _ = g.set_state(saved)
        >>> mlc.equal(mlc.rand(2, generator=g), x)
        True
    """

    __slots__ = ("_block", "_count", "_keys", "_lock", "_seed", "device", "times_seeded")

    def __init__(self, device: Any = CPU) -> None:
        self.device = as_device(device) or CPU
        if self.device != CPU:
            Devices.check(self.device)
        self._lock = threading.Lock()
        self.times_seeded = 0
        self._restart(DEFAULT_SEED, 0)

    def _restart(self, seed: int, count: int) -> None:
        if state.trace is not None and not once.allowed:
            raise UserError("a generator is seeded, or its state is set, within a function that is being recorded: "
                            "that would happen once, not in each call", code="MLC0716", loc=user_loc(),
                            hint="seed it outside of the function")
        with self._lock:
            self._seed, self._count, self._block = seed, count, -1
            self.times_seeded += 1                         # or restored: generators that follow this one look at it

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed, and begin with its first number.

        Args:
            seed: Integer from -2^63 to 2^64 - 1; 2^64 is added to a negative one.

        Returns:
            The generator itself.

        Raises:
            UserError: `seed` is out of range (MLC0360).
            UserTypeError: `seed` is no integer (MLC0355).

        Example:
            >>> g = mlc.Generator().manual_seed(3)
            >>> mlc.equal(mlc.rand(2, generator=g), mlc.rand(2, generator=g.manual_seed(3)))
            True
        """
        number = any_int(seed, "seed")
        if not -1 << 63 <= number <= WORD:
            raise UserError(f"seed = {number}, expected an integer of 64 bits", code="MLC0360", loc=user_loc())
        self._restart(number & WORD, 0)
        return self

    def seed(self) -> int:
        """Set a seed from the operating system's source of random numbers.

        Returns:
            The seed, an integer of 64 bits.

        Example:
            >>> g = mlc.Generator()
            >>> g.seed() == g.initial_seed()
            True
        """
        seed = int.from_bytes(os.urandom(8), "little")
        self._restart(seed, 0)
        return seed

    def initial_seed(self) -> int:
        """The seed that the numbers come from.

        Returns:
            The seed, an integer of 64 bits; of a new generator 67280421310721, as in PyTorch.

        Example:
            >>> mlc.Generator().manual_seed(3).initial_seed()
            3
        """
        return self._seed

    def get_state(self) -> Tensor:
        """State of the generator.

        Returns:
            Tensor of 16 bytes, the seed and the number of draws, which may be saved like any other.

        Example:
            >>> mlc.Generator().manual_seed(3).get_state()[:8]
            tensor([3, 0, 0, 0, 0, 0, 0, 0], dtype=mlc.uint8)
        """
        with self._lock:
            return wrap(np.frombuffer(np.array([self._seed, self._count], "<u8").tobytes(), np.uint8))

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state.

        Args:
            new_state: Tensor that `get_state` returned.

        Returns:
            The generator itself.

        Raises:
            UserTypeError: The tensor is no state of a generator (MLC0717).

        Example:
            >>> g = mlc.Generator()
            >>> state = g.get_state()
            >>> mlc.equal(mlc.rand(2, generator=g), mlc.rand(2, generator=g.set_state(state)))
            True
        """
        array = new_state.array
        if array.dtype != np.uint8 or array.shape != (16,):
            raise UserTypeError(f"a tensor of shape {list(array.shape)} and {new_state.dtype} is no state of a "
                                "generator, which has 16 bytes", code="MLC0717", loc=user_loc(),
                                hint="pass what get_state of an mlc generator returned")
        seed, count = np.frombuffer(array.tobytes(), "<u8").tolist()
        self._restart(seed, count)
        return self

    def clone_state(self) -> Generator:
        """A generator of its own that continues from the present state.

        Returns:
            The new generator, on the same device.

        Example:
            >>> g = mlc.Generator()
            >>> mlc.equal(mlc.rand(2, generator=g.clone_state()), mlc.rand(2, generator=g))
            True
        """
        return Generator(self.device).set_state(self.get_state())

    def check_draw(self, recorded: bool = True) -> None:
        """Raise an error where numbers drawn would become constants of a function that is being recorded.

        In a compiled function, each draw takes a key that each call draws anew, in the same order as eager code. That
        is not so in loops and branches on tensors, and in functions that are recorded to run several times or for many
        examples, as by mlc.vmap. A function that mlc.grad or the like records in each call draws while it is recorded.

        Args:
            recorded: Whether what is made of the key can be recorded.

        Raises:
            UserError: The draw cannot be recorded (MLC0716).
        """
        if refuses_draws():
            raise UserError("a draw from a generator within a function that vmap records would be the same for all "
                            "examples", code="MLC0716", loc=user_loc(),
                            hint='pass randomness="same", or a key for each example, as of mlc.random.split(key, n)')
        if not self.may_draw(recorded):
            raise UserError("a draw from a generator within a function that is being recorded would be recorded as a "
                            "constant: every call would see the same numbers", code="MLC0716", loc=user_loc(),
                            hint="pass a key as an argument and draw with mlc.random, or draw outside of the function; "
                                 "a module such as nn.Dropout has a key of its own for that")

    def may_draw(self, recorded: bool = True) -> bool:
        """Whether each call of what is being recorded, if anything is, can draw, in the order of eager code.

        Args:
            recorded: Whether what is made of the key can be recorded.
        """
        trace = state.trace
        return trace is None or (recorded and not mapping.refuses and not trace.in_region and (
            trace.root.captures is not None or at_once.draws is not None))

    def key_of_call(self) -> Tensor | None:
        """A key that each call of what is being recorded draws, whether the region where it is used runs or not, and
        however often; None where there is none, as no call draws."""
        trace = state.trace
        if trace is None:
            return None
        if trace.root.captures is not None:
            return trace.root.captures.key(self)
        return None if at_once.draws is None else at_once.draws.next(self)

    def _next(self) -> Array:
        """The next key, as two words."""
        if not once.allowed:
            self.check_draw(recorded=False)
        return self._taken().copy()

    def _taken(self) -> Array:
        """The next key, as two words of an array that is not to be changed."""
        with self._lock:
            block, place = divmod(self._count, BLOCK)
            if block != self._block:
                at = np.arange(block * BLOCK, (block + 1) * BLOCK, dtype=np.uint64)
                words = np.array([self._seed >> 32, self._seed & 0xFFFFFFFF], np.uint32)
                self._keys = np.stack(threefry_arrays(words, (at >> np.uint64(32)).astype(np.uint32),
                                                      at.astype(np.uint32)), 1)
                self._block = block
            self._count += 1
            return self._keys[place]  # type: ignore[no-any-return]

    def next_key(self) -> Tensor:
        """Draw a key for the functions of `mlc.random`.

        Returns:
            Tensor of two uint32.

        Raises:
            UserError: The draw cannot be recorded (MLC0716).
        """
        if state.trace is not None and not once.allowed:
            self.check_draw()
            captures = state.trace.root.captures
            return at_once.draws.next(self) if captures is None else captures.key(self)  # type: ignore[union-attr]
        return wrap(self._next())

    def numpy(self) -> np.random.Generator:
        """Draw a numpy generator: one that the next key seeds.

        Returns:
            A numpy.random.Generator.

        Raises:
            UserError: A function is being recorded (MLC0716).
        """
        return np.random.Generator(np.random.Philox(key=int.from_bytes(self._next().tobytes(), "little")))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.device, self.get_state())

    def __repr__(self) -> str:
        return f"<mlc.Generator device={self.device!r} seed={self._seed}>"


def _restored(device: str, kept: Tensor) -> Generator:
    return Generator(device).set_state(kept)


default_generator = Generator()
"""Generator of all draws that name no other; the operating system seeds it."""
default_generator.seed()


@coded
def manual_seed(seed: int) -> Generator:
    """Seed the default generator, which initial weights, dropout and functions such as `rand` draw from.

    Two programs that set the same seed and draw in the same order get the same numbers, with any number of threads.
    Generators of one's own (`mlc.Generator`) are not affected.

    Args:
        seed: Integer from -2^63 to 2^64 - 1; 2^64 is added to a negative one.

    Returns:
        The default generator.

    Raises:
        UserError: `seed` is out of range (MLC0360).
        UserTypeError: `seed` is no integer (MLC0355).

    Example:
        >>> _ = mlc.manual_seed(0)
        >>> x = mlc.randn(3)
        >>> _ = mlc.manual_seed(0)
        >>> mlc.equal(mlc.randn(3), x)
        True
    """
    return default_generator.manual_seed(seed)


@coded
def seed() -> int:
    """Seed the default generator from the operating system's source of random numbers.

    Returns:
        The seed.

    Example:
        >>> mlc.seed() == mlc.initial_seed()
        True
    """
    return default_generator.seed()


@coded
def initial_seed() -> int:
    """The seed of the default generator.

    Returns:
        The seed, an integer of 64 bits.

    Example:
        >>> mlc.manual_seed(5).initial_seed(), mlc.initial_seed()
        (5, 5)
    """
    return default_generator.initial_seed()


@coded
def get_rng_state() -> Tensor:
    """State of the default generator.

    With `set_rng_state` it repeats what was drawn, as after a checkpoint. The tensor is a copy: later draws do not
    change it.

    Returns:
        Tensor of 16 bytes, the seed and the number of draws.

    Example:
        >>> mlc.get_rng_state().shape
        (16,)
    """
    return default_generator.get_state()


@coded
def set_rng_state(new_state: Tensor) -> None:
    """Let the default generator continue from a state.

    What is drawn afterwards is what was drawn after the state was taken. The seed is that of the state, too.

    Args:
        new_state: Tensor that `get_rng_state` returned.

    Raises:
        UserTypeError: The tensor is no state of a generator (MLC0717).

    Example:
        >>> saved = mlc.get_rng_state()
        >>> x = mlc.rand(2)
        >>> mlc.set_rng_state(saved)
        >>> mlc.equal(mlc.rand(2), x)
        True
    """
    default_generator.set_state(new_state)


@coded
@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Context after which the default generator continues from where it was before.

    Args:
        devices: Accepted for PyTorch's sake: there is one default generator for all devices.
        enabled: Whether the state is restored; otherwise the context does nothing.

    Returns:
        A context manager.

    Example:
        >>> _ = mlc.manual_seed(0)
        >>> with mlc.random.fork_rng():
        ...     x = mlc.rand(2)
        >>> mlc.equal(mlc.rand(2), x)
        True
    """
    saved = default_generator.get_state()
    try:
        yield
    finally:
        if enabled:
            default_generator.set_state(saved)


def _on_device_of(args: tuple[Any, ...], key: Tensor) -> Tensor:
    """A key where the tensors are that it is used with."""
    elsewhere = next((x.device for x in args if type(x) is Tensor and not isinstance(x._array, np.ndarray)), None)
    return key if elsewhere is None or type(key) is not Tensor else key.to_device(elsewhere)


def _parameters(f: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Any], int]:
    """The names of the parameters of a function that may be given by position, the defaults, and how many there are."""
    parameters = inspect.signature(f).parameters.values()
    assert all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters), f.__name__
    return (tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD),
            {p.name: p.default for p in parameters if p.default is not p.empty}, len(parameters))


def drawing(needed: Callable[[Mapping[str, Any]], Any],
            key: str = "key") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let calls of a public function that leave its argument `key` out draw one from the default generator.

    needed   whether a call draws numbers at all, of its arguments by name
    """
    def decorate(f: Callable[P, R]) -> Callable[P, R]:
        parameters = functools.cache(lambda: _parameters(f))

        def draws(args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
            names, defaults, count = parameters()          # Signature.bind takes four times as long
            given = {**defaults, **dict(zip(names, args)), **keywords}
            wrong = len(args) > len(names) or len(given) != count or not keywords.keys().isdisjoint(names[:len(args)])
            return not wrong and needed(given)             # f reports what is wrong

        @functools.wraps(f)
        def public(*args: P.args, **keywords: P.kwargs) -> R:
            if not state.in_operation and keywords.get(key) is None and draws(args, keywords):
                keywords[key] = _on_device_of(args, default_generator.next_key())
            return f(*args, **keywords)

        OPERATIONS[f.__name__] = public
        return public

    return decorate


coded_methods(Generator)
coded_methods(Generator, ("__init__",))
