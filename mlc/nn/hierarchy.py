"""Hierarchy: the part of a module that finds the modules and tensors in it by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mlc.frontend import tree
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state
from mlc.ir.diag import UserAttributeError


class Hierarchy:
    """Base of modules: what they hold, in attributes and in lists, tuples and dicts that are attributes."""

    _parameters: tuple[str, ...]
    _buffers: tuple[str, ...]

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Iterate over the modules that this one holds itself, also in lists and dicts; a shared one comes once.

        Returns:
            Iterator of pairs of a name and a module.

        Example:
            >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            >>> [name for name, _ in model.named_children()]
            ['0', '1']
        """
        seen = set[int]()
        for name, x in self._child_modules():
            if id(x) not in seen:
                seen.add(id(x))
                yield name, x

    def _child_modules(self) -> Iterator[tuple[str, Any]]:
        for name, held in vars(self).items():
            kind = type(held)
            if kind in NEITHER or kind is Tensor:
                continue
            if isinstance(held, Hierarchy):
                yield name, held
            else:
                yield from ((path, x) for path, x in tensors_and_modules(held, name) if isinstance(x, Hierarchy))

    def children(self) -> Iterator[Any]:
        """Iterate over the modules that this one holds itself.

        Example:
            >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            >>> list(model.children())
            [Linear(in_features=2, out_features=3, bias=True), ReLU()]
        """
        return (x for _, x in self.named_children())

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Iterate over this module and all inside it, each before those it holds.

        Args:
            memo: Modules to leave out; those found are added to it.
            prefix: Name of this module.
            remove_duplicate: Whether a module that several hold comes once, under its first name.

        Returns:
            Iterator of pairs of a name, such as "layers.0", and a module.

        Example:
            >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            >>> [name for name, _ in model.named_modules()]
            ['', '0', '1']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._child_modules():
            yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Any]:
        """Iterate over this module and all inside it, each before those it holds.

        Example:
            >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            >>> [type(m).__name__ for m in model.modules()]
            ['Sequential', 'Linear', 'ReLU']
        """
        return (x for _, x in self.named_modules())

    def get_submodule(self, target: str) -> Any:
        """Find a module by its name.

        Args:
            target: Name, such as "layers.0".

        Returns:
            The module.

        Raises:
            UserAttributeError: There is none of this name (MLC0385).

        Example:
            >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            >>> model.get_submodule("1")
            ReLU()
        """
        return self._find_by_target(target, dict(self.named_modules(remove_duplicate=False)), "module")

    def get_parameter(self, target: str) -> Tensor:
        """Find a parameter by its name.

        Args:
            target: Name, such as "layers.0.weight".

        Returns:
            The parameter.

        Raises:
            UserAttributeError: There is none of this name (MLC0385).

        Example:
            >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            >>> tuple(model.get_parameter("0.bias").shape)
            (3,)
        """
        found: Tensor = self._find_by_target(target, self._tied_by_name(), "parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """Find a buffer by its name.

        Args:
            target: Name, such as "norm.running_mean".

        Returns:
            The buffer.

        Raises:
            UserAttributeError: There is none of this name (MLC0385).

        Example:
            >>> nn.Sequential(nn.BatchNorm1d(2)).get_buffer("0.running_mean")
            tensor([0., 0.], dtype=mlc.float32)
        """
        found: Tensor = self._find_by_target(target, dict(self.named_buffers(remove_duplicate=False)), "buffer")
        return found

    def _find_by_target(self, target: str, by_name: Mapping[str, Any], what: str) -> Any:
        if target not in by_name:
            names = ", ".join(name for name in by_name if name)
            raise UserAttributeError(f"{type(self).__name__} has no {what} {target!r}", code="MLC0385", loc=user_loc(),
                                     hint=f"it has {names}" if names else f"it has no {what}")
        return by_name[target]

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Replace a module by its name, or add one.

        Args:
            target: Name, such as "layers.0".
            module: The module to have under this name.
            strict: Whether there has to be one of this name already.

        Raises:
            UserAttributeError: There is no module to hold it (MLC0385), or none of this name, which `strict` requires.
            UserError: The name is empty (MLC0386).

        Example:
            >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            >>> model.set_submodule("1", nn.Tanh())
            >>> model[1]
            Tanh()
        """
        parent, _, name = target.rpartition(".")
        if strict:
            self.get_submodule(target)
        holder = self.get_submodule(parent)
        if isinstance(vars(holder).get(name), Hierarchy):
            setattr(holder, name, module)
        else:
            holder.register_module(name, module)

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the parameters, frozen ones too; shared ones come once, under their first name.

        Args:
            prefix: Start of the names.
            recurse: Whether those of the modules inside come too.
            remove_duplicate: Whether shared ones come once.

        Returns:
            Iterator of pairs of a name, such as "layers.0.weight", and a tensor.

        Example:
            >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            >>> [name for name, _ in model.named_parameters()]
            ['0.weight', '0.bias']
        """
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the parameters, in the order of `named_parameters`.

        Args:
            recurse: Whether those of the modules inside come too.

        Returns:
            Iterator of tensors.

        Example:
            >>> layer = nn.Linear(2, 3)
            >>> [tuple(p.shape) for p in layer.parameters()]
            [(3, 2), (3,)]
        """
        return (x for _, x in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the buffers.

        Args:
            prefix: Start of the names.
            recurse: Whether those of the modules inside come too.
            remove_duplicate: Whether shared ones come once.

        Returns:
            Iterator of pairs of a name and a tensor.

        Example:
            >>> [name for name, _ in nn.BatchNorm1d(3).named_buffers()]
            ['running_mean', 'running_var', 'num_batches_tracked']
        """
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, in the order of `named_buffers`.

        Args:
            recurse: Whether those of the modules inside come too.

        Returns:
            Iterator of tensors.

        Example:
            >>> [tuple(b.shape) for b in nn.BatchNorm1d(3).buffers()]
            [(3,), (3,), ()]
        """
        return (x for _, x in self.named_buffers(recurse=recurse))

    def _named_members(self, kind: str, prefix: str, recurse: bool,
                       remove_duplicate: bool) -> Iterator[tuple[str, Tensor]]:
        seen = set[int]()
        for path, owner in self.named_modules(remove_duplicate=False) if recurse else (("", self),):
            if attributes := getattr(owner, kind):
                start = "".join(f"{part}." for part in (prefix, path) if part)
                for attribute, held in vars(owner).items():
                    for name, x in tensors_and_modules(held, attribute) if attribute in attributes else ():
                        if isinstance(x, Tensor) and id(x) not in seen:
                            if remove_duplicate:
                                seen.add(id(x))
                            yield start + name, x

    def num_parameters(self, trained: bool = False) -> int:
        """Count the elements of all parameters.

        Args:
            trained: Whether to leave out frozen ones.

        Returns:
            An integer.

        Example:
            >>> nn.Linear(2, 3).num_parameters()
            9
        """
        frozen = {id(x) for _, owner, attribute, x in self._tensors_by_name()
                  if trained and attribute in tree.frozen_names(owner)}
        return sum(x.numel() for x in self.parameters() if id(x) not in frozen)

    def _held_by_name(self) -> Iterator[tuple[str, Any]]:
        """The modules and tensors that the attributes hold, in containers too, but not those inside the modules."""
        for name, x in vars(self).items():
            if type(x) not in NEITHER:
                yield from tensors_and_modules(x, name)

    def _tensors_by_name(self) -> Iterator[tuple[str, Any, str, Tensor]]:
        """(name, the module that holds it, the attribute it is in, tensor) of every tensor."""
        for prefix, owner in self.named_modules(remove_duplicate=False):
            for name, x in owner._held_by_name():
                if isinstance(x, Tensor):
                    yield f"{prefix}.{name}" if prefix else name, owner, name.split(".")[0], x

    def _tied_by_name(self) -> dict[str, Tensor]:
        """Every parameter under each of its names."""
        return {name: x for name, owner, attribute, x in self._tensors_by_name() if attribute in owner._parameters}

    def _assign_state(self, new: Mapping[str, Tensor]) -> None:
        """Have the tensors of these names take over the elements of new ones, so that optimizers hold the same tensors
        as before; a shared parameter takes those of its first name. While a function is recorded, tensors of modules
        that are its arguments are replaced."""
        ties = self._tied_by_name()
        first = {id(x): new[name] for name, x in reversed(ties.items()) if name in new}
        new = {**new, **{name: first[id(x)] for name, x in ties.items() if id(x) in first}}
        for name, _, _, x in list(self._tensors_by_name()):
            if name in new and type(x) is Tensor and (state.trace is not None or type(new[name]) is Tensor):
                _take_over(x, new.pop(name))
        for prefix, owner in self.named_modules(remove_duplicate=False) if new else ():
            start = f"{prefix}." if prefix else ""
            for name, x in list(vars(owner).items()):
                if not isinstance(x, Hierarchy) and any(True for _ in tensors_and_modules(x, name)):
                    setattr(owner, name, replaced(x, start + name, new))

    def _own_state(self) -> list[tuple[str, str, Tensor]]:
        held = [(name, name.split(".")[0], x) for name, x in self._held_by_name() if isinstance(x, Tensor)]
        return [entry for names in (self._parameters, self._buffers) for entry in held if entry[1] in names]

    def _state_by_name(self) -> Iterator[tuple[str, Any, str, Tensor]]:
        return ((f"{prefix}.{name}" if prefix else name, owner, attribute, x)
                for prefix, owner in self.named_modules(remove_duplicate=False)
                for name, attribute, x in owner._own_state())


@contextmanager
def with_tensors(module: Any, new: Mapping[str, Tensor]) -> Iterator[None]:
    """Context in which a module holds other tensors, by name; afterwards it holds those that it held before."""
    before: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for prefix, owner in list(module.named_modules(remove_duplicate=False)):
            start, held = f"{prefix}." if prefix else "", vars(owner)
            for name, x in list(held.items()):
                inside = () if isinstance(x, Hierarchy) else tensors_and_modules(x, start + name)
                if any(path in new for path, _ in inside):
                    before.append((held, name, x))
                    held[name] = replaced(x, start + name, new)
        yield
    finally:
        for held, name, x in reversed(before):
            held[name] = x


def _take_over(x: Tensor, new: Tensor) -> None:
    """Have a tensor take over the elements of another: in its memory, where the new ones fit in."""
    if state.trace is not None or (new.dtype is x.dtype and new.device == x.device and new.shape == x.shape):
        with GradMode(False):
            x.copy_(new)
    else:
        x.replace_elements(new)


NEITHER = frozenset({bool, int, float, complex, str, bytes, type(None)})
"""Types of most attributes that are neither tensors nor modules, and hold none."""


def tensors_and_modules(x: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The tensors and modules in a value, each with its path; what is inside the modules is not among them."""
    if isinstance(x, Hierarchy | Tensor):
        yield name, x
        return
    if not NEITHER.issuperset(map(type, x) if type(x) in (list, tuple) else (type(x),)):
        for step, child in tree.children(x):
            if type(child) not in NEITHER:
                yield from tensors_and_modules(child, name + step)


def replaced(x: Any, name: str, new: Mapping[str, Tensor]) -> Any:
    """x with the tensors in it replaced by those of their names; modules stay as they are."""
    if isinstance(x, Hierarchy):
        return x
    if isinstance(x, Tensor):
        return new.get(name, x)
    inside = tree.children(x)
    return tree.with_children(x, [replaced(child, name + step, new) for step, child in inside]) if inside else x


def paths_in(module: Hierarchy) -> dict[int, str]:
    """The path of a module and of all in it, by id, as `named_modules` gives them; a class may define that anew, to
    have effects or to list fewer, and what a profile or a location says does not depend on it."""
    found, left = dict[int, str](), [(module, "")]
    while left:
        at, path = left.pop()
        if id(at) not in found:
            found[id(at)] = path
            below = reversed(list(Hierarchy._child_modules(at)))
            left += [(x, f"{path}.{name}" if path else name) for name, x in below]
    return found
