"""Modules that hold modules or parameters: Sequential, ModuleList, ModuleDict, ParameterList.

What they hold are attributes under the names that saved states give them: "0", "1", ..., or the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from mlc.frontend.autograd.differentiable import mark_parameter
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserIndexError, UserKeyError, UserTypeError
from mlc.nn.module import Module


class Shown:
    """Something whose `repr` is this text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _shown_parameters(pairs: Iterable[tuple[str, Any]]) -> str:
    """A line for each tensor, indented as PyTorch does it."""
    return "\n".join(f"  ({name}): Parameter containing: [{x.dtype} of size {'x'.join(map(str, x.shape))}]"
                     for name, x in pairs)


class _Named(Module):
    """An ordered container of named items."""

    _item_names: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._item_names = ()

    def __setattr__(self, name: str, x: Any) -> None:
        super().__setattr__(name, x)
        if isinstance(x, Module) and name not in self._item_names:
            self._item_names = (*self._item_names, name)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if name in self._item_names:
            self._item_names = tuple(n for n in self._item_names if n != name)

    def _add(self, name: str, x: Any) -> None:
        if not name or "." in name or hasattr(self, name):
            raise UserError(f"{name!r} cannot name a part of a {type(self).__name__}", code="MLC0386", loc=user_loc(),
                            hint="it is empty, has a dot, or is the name of an attribute already")
        setattr(self, name, x)
        self._item_names = (*(n for n in self._item_names if n != name), name)

    def _refill(self, things: Iterable[tuple[str, Any]]) -> None:
        for name in self._item_names:
            delattr(self, name)
        self._item_names = ()
        for name, x in things:
            self._add(name, x)

    def _things(self) -> list[Any]:
        return [getattr(self, name) for name in self._item_names]

    def __len__(self) -> int:
        return len(self._item_names)


class _Listed(_Named):
    """A container of items by position, named "0", "1", ..."""

    def __init__(self, things: Iterable[Any] | None = ()) -> None:
        super().__init__()
        self.extend(() if things is None else things)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._things())

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Any: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._like(self._item_names[index])
        return getattr(self, self._name(index))

    def __setitem__(self, index: int, x: Any) -> None:
        setattr(self, self._name(index), x)

    def __delitem__(self, index: int | slice) -> None:
        gone = self._item_names[index] if isinstance(index, slice) else (self._name(index),)
        self._refill_without(gone)

    def __reversed__(self) -> Iterator[Any]:
        return iter(self._things()[::-1])

    def __iadd__(self, things: Iterable[Any]) -> Any:
        return self.extend(things)

    def __add__(self, things: Iterable[Any]) -> Any:
        return self._like(()).extend(self._things()).extend(things)

    def _refill_without(self, names: Iterable[str]) -> None:
        kept = [getattr(self, name) for name in self._item_names if name not in {*names}]
        self._refill((str(i), x) for i, x in enumerate(kept))

    def pop(self, index: int = -1) -> Any:
        """Take one away; those after it are renumbered.

        Args:
            index: Position, from the end if negative.

        Returns:
            The module or parameter.
        """
        x = self[index]
        del self[index]
        return x

    def _like(self, names: Iterable[str]) -> Any:
        return type(self)([getattr(self, name) for name in names])

    def _name(self, index: int) -> str:
        if not isinstance(index, int):
            raise UserTypeError(f"a {type(self).__name__} has positions, found {index!r}", code="MLC0355",
                                loc=user_loc())
        if not -len(self) <= index < len(self):
            raise UserIndexError(f"position {index} in a {type(self).__name__} of {len(self)}", code="MLC0366",
                                 loc=user_loc())
        return self._item_names[index]

    def append(self, x: Any) -> Any:
        """Add one more at the end.

        Args:
            x: The module or parameter.

        Returns:
            The container itself.
        """
        self._add(str(len(self)), x)
        return self

    def extend(self, things: Iterable[Any]) -> Any:
        """Add several at the end, in order.

        Args:
            things: Modules or parameters.

        Returns:
            The container itself.
        """
        for x in things:
            self.append(x)
        return self

    def insert(self, index: int, x: Any) -> None:
        """Add one before position `index`; those after it are renumbered.

        Args:
            index: Position, as of `list.insert`.
            x: The module or parameter.
        """
        things = self._things()
        things.insert(index, x)
        self._refill((str(i), t) for i, t in enumerate(things))


class Sequential(_Listed):
    """Composition of layers: each is applied to the result of the one before.

    Layers are attributes named "0", "1", ..., or by the keys of a dict. An index gives a layer, a slice a Sequential of
    the same layers; `append`, `extend` and `insert` change it. A function may stand for a layer.

    Shape:
        The input of the first layer -> the result of the last.

    Args:
        layers: Modules or functions of one argument, or a single dict of them by name.

    Raises:
        UserError: A name is empty, has a dot or is an attribute already (MLC0386).
        UserIndexError: A position is out of range (MLC0366).
        UserTypeError: Something that is no function is called (MLC0349), or a position is no integer (MLC0355).

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        >>> model(mlc.ones(5, 2)).shape
        (5, 1)
        >>> len(model[:2])
        2
    """

    def __init__(self, *layers: Any) -> None:
        named = layers[0] if len(layers) == 1 and isinstance(layers[0], Mapping) else None
        super().__init__(layers if named is None else ())
        for name, layer in (named or {}).items():
            self._add(name, layer)

    def _like(self, names: Iterable[str]) -> Sequential:
        return Sequential({name: getattr(self, name) for name in names})

    def _refill_without(self, names: Iterable[str]) -> None:
        kept = [(name, getattr(self, name)) for name in self._item_names if name not in {*names}]
        numbered = self._item_names == tuple(map(str, range(len(self))))
        self._refill((str(i) if numbered else name, x) for i, (name, x) in enumerate(kept))

    def __mul__(self, times: int) -> Sequential:
        if times < 1:
            raise UserTypeError(f"a Sequential is repeated a number of times, found {times!r}", code="MLC0355",
                                loc=user_loc())
        return Sequential(*self._things() * times)

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        self._refill((str(i), x) for i, x in enumerate((self * times)._things()))
        return self

    def forward(self, input: Any) -> Any:
        """Apply the layers in order.

        Args:
            input: Input of the first layer; without layers it is the result.

        Returns:
            The result of the last layer.
        """
        for name, layer in zip(self._item_names, self._things()):
            if not callable(layer):
                raise UserTypeError(f"layer {name} of a Sequential is {layer!r}, expected a module or a function",
                                    code="MLC0349", loc=user_loc())
            input = layer(input)
        return input


class ModuleList(_Listed):
    """List of modules, whose parameters are those of the module that holds it.

    Modules are named "0", "1", ... Indexing, slices, iteration, `len`, `append`, `extend` and `insert` work as those of
    a list. It has no forward: calling it is an error.

    Args:
        modules: Its modules.

    Raises:
        UserIndexError: A position is out of range (MLC0366).
        UserTypeError: It is called (MLC0349), or a position is no integer (MLC0355).

    Example:
        >>> layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        >>> len(layers), [name for name, _ in layers.named_parameters()][:2]
        (3, ['0.weight', '0.bias'])
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__(modules)

    def _printed_children(self) -> Iterator[tuple[str, Any]]:
        runs: list[list[Any]] = []                         # equal modules in a row are shown once
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        return ((str(a) if a == b else f"{a}-{b}", Shown(text if a == b else f"{b - a + 1} x {text}"))
                for a, b, text in runs)


class ParameterList(_Listed):
    """List of parameters: each tensor it is given becomes one.

    They are named "0", "1", ... Indexing, slices, iteration, `len`, `append`, `extend` and `insert` work as those of a
    list.

    Args:
        values: Tensors or `nn.Parameter`s.

    Raises:
        UserIndexError: A position is out of range (MLC0366).
        UserTypeError: It is called (MLC0349), or a position is no integer (MLC0355).

    Example:
        >>> nn.ParameterList([mlc.ones(2), mlc.zeros(3)])
        ParameterList(
          (0): Parameter containing: [mlc.float32 of size 2]
          (1): Parameter containing: [mlc.float32 of size 3]
        )
    """

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        super().__init__(values)

    def __repr__(self) -> str:
        lines = _shown_parameters(zip(self._item_names, self._things()))
        return f"{self._get_name()}(\n{lines}\n)" if lines else f"{self._get_name()}()"

    def __setattr__(self, name: str, x: Any) -> None:
        is_element = type(x) is Tensor and name.isdigit()
        super().__setattr__(name, mark_parameter(x, x.frozen is not True) if is_element else x)


class _Dict(_Named):
    """A container of items by key."""

    def __getitem__(self, key: str) -> Any:
        if key not in self._item_names:
            hint = "there is " + (", ".join(self._item_names) or "none")
            raise UserKeyError(f"there is no {key!r}", code="MLC0386", loc=user_loc(), hint=hint)
        return getattr(self, key)

    def __setitem__(self, key: str, x: Any) -> None:
        if key in self._item_names:
            setattr(self, key, x)
        else:
            self._add(key, x)

    def __delitem__(self, key: str) -> None:
        self[key]
        self._refill([(name, x) for name, x in self.items() if name != key])

    def __contains__(self, key: object) -> bool:
        return key in self._item_names

    def __iter__(self) -> Iterator[str]:
        return iter(self._item_names)

    def update(self, entries: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add entries, or replace those whose keys are there already.

        Args:
            entries: A mapping, or pairs of a name and a module or parameter.

        Raises:
            UserError: A name is empty, has a dot or is an attribute already (MLC0386).
        """
        for key, x in dict(entries).items():
            self[key] = x

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._item_names)

    def keys(self) -> list[str]:
        """The names, in order."""
        return list(self._item_names)

    def values(self) -> list[Any]:
        """The modules or parameters, in order."""
        return self._things()

    def items(self) -> list[tuple[str, Any]]:
        """Pairs of a name and a module or parameter, in order."""
        return list(zip(self._item_names, self._things()))

    def pop(self, key: str) -> Any:
        """Remove an entry.

        Args:
            key: Its name.

        Returns:
            The module or parameter.

        Raises:
            UserKeyError: There is none of this name (MLC0386).
        """
        found = self[key]
        del self[key]
        return found

    def clear(self) -> None:
        """Remove all entries."""
        self._refill(())


class ModuleDict(_Dict):
    """Dict of modules, whose parameters are those of the module that holds it.

    Keys keep the order in which they came. It has no forward: calling it is an error.

    Args:
        modules: A mapping, or pairs of a name and a module.

    Raises:
        UserError: A name is empty, has a dot or is an attribute already, such as "keys"; or a key is absent (MLC0386).
        UserTypeError: It is called (MLC0349).

    Example:
        >>> heads = nn.ModuleDict({"policy": nn.Linear(2, 3), "value": nn.Linear(2, 1)})
        >>> heads["value"](mlc.ones(2)).shape
        (1,)
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        self.update(modules or {})


class ParameterDict(_Dict):
    """Dict of parameters: each tensor it is given becomes one.

    Keys keep the order in which they came.

    Args:
        parameters: A mapping, or pairs of a name and a tensor.

    Raises:
        UserError: A name is empty, has a dot or is an attribute already, such as "keys"; or a key is absent (MLC0386).

    Example:
        >>> scales = nn.ParameterDict({"left": mlc.ones(2), "right": mlc.zeros(3)})
        >>> [name for name, _ in scales.named_parameters()], scales["left"].shape
        (['left', 'right'], (2,))
    """

    def __init__(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter under a name, or `default` if there is none.

        Args:
            key: The name.
            default: What is given in its place.

        Returns:
            The parameter, or `default`.

        Example:
            >>> nn.ParameterDict({"left": mlc.ones(2)}).get("right") is None
            True
        """
        return self[key] if key in self else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter under a name, which becomes `default` if there is none.

        Args:
            key: The name.
            default: Tensor that is added.

        Returns:
            The parameter.

        Example:
            >>> scales = nn.ParameterDict()
            >>> scales.setdefault("left", mlc.ones(2)).shape, scales.keys()
            ((2,), ['left'])
        """
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Remove the entry that came last.

        Returns:
            Its name, and the parameter.

        Raises:
            UserKeyError: There is none (MLC0386).

        Example:
            >>> nn.ParameterDict({"left": mlc.ones(2)}).popitem()[0]
            'left'
        """
        key = self._item_names[-1] if self._item_names else ""
        return key, self.pop(key)

    def copy(self) -> ParameterDict:
        """Another dict of the same parameters.

        Returns:
            The dict.

        Example:
            >>> nn.ParameterDict({"left": mlc.ones(2)}).copy().keys()
            ['left']
        """
        return ParameterDict(self.items())

    def __or__(self, other: ParameterDict) -> ParameterDict:
        return self.copy().__ior__(other)

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other.items())
        return self

    def __repr__(self) -> str:
        lines = _shown_parameters(self.items())
        return f"{self._get_name()}(\n{lines}\n)" if lines else f"{self._get_name()}()"

    def __setattr__(self, name: str, x: Any) -> None:
        super().__setattr__(name, mark_parameter(x, x.frozen is not True) if type(x) is Tensor else x)
