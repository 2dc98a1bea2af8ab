"""Inputs of the code of a function besides its arguments: what it reaches, as each call finds it."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, Protocol

import numpy as np

from mlc.frontend.tensor import Tensor


class Input(Protocol):
    """An input of the entry besides the arguments."""

    def operand(self, given: Sequence[Any]) -> Any:
        """The tensor or array of a call, whose arguments are `given`."""


class CapturedTensor:
    """A tensor."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def operand(self, given: Sequence[Any]) -> Tensor:
        return self.tensor


class CapturedBuffer:
    """A buffer of a module, which is another tensor in each call."""

    __slots__ = ("module", "name")

    def __init__(self, module: Any, name: str) -> None:
        self.module, self.name = module, name

    def operand(self, given: Sequence[Any]) -> Tensor:
        return getattr(self.module, self.name)  # type: ignore[no-any-return]


class CapturedGradient:
    """The gradient of a tensor, or of an argument, by its number."""

    __slots__ = ("owner",)

    def __init__(self, owner: Tensor | int) -> None:
        self.owner = owner

    def operand(self, given: Sequence[Any]) -> Tensor:
        found = owner_of(self.owner, given).grad
        assert found is not None, "guarded"
        return found


class CapturedNumber:
    """A number in a mapping, or in a sequence of numbers there.

    check  raises an error for what is no such number that the function was recorded for
    """

    __slots__ = ("check", "index", "key", "mapping")

    def __init__(self, mapping: MutableMapping[str, Any], key: str, index: int | None,
                 check: Callable[[Any], None]) -> None:
        self.mapping, self.key, self.index, self.check = mapping, key, index, check

    def number(self) -> Any:
        """The current number."""
        found = self.mapping[self.key]
        if self.index is not None:
            found = found[self.index]
        self.check(found)
        return found

    def operand(self, given: Sequence[Any]) -> Any:
        return np.array(self.number(), np.float64)


class CapturedKey:
    """A random key that each call draws."""

    __slots__ = ("generator",)

    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def operand(self, given: Sequence[Any]) -> Tensor:
        return self.generator.next_key()  # type: ignore[no-any-return]

    def words(self) -> Any:
        """The key of a call, as an array that is not to be changed."""
        return self.generator._taken()


def owner_of(owner: Tensor | int, given: Sequence[Any]) -> Tensor:
    """A tensor that is given by itself, or by its number among the arguments of a call."""
    return given[owner] if isinstance(owner, int) else owner
