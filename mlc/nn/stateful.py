"""Stateful: the part of a module that saves its tensors by name and loads them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mlc.frontend import tree
from mlc.frontend.autograd.differentiable import mark_parameter
from mlc.frontend.autograd.graph import alone
from mlc.frontend.autograd.hooks import RemovableHandle
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserTypeError
from mlc.nn.hierarchy import Hierarchy
from mlc.nn.hooks import NONE, Hook, Hooks, add
from mlc.nn.state import Incompatible, fitting

EXTRA = "_extra_state"


class Stateful(Hierarchy):
    """Base of modules: `state_dict` and `load_state_dict`, and what is registered to be called with them."""

    _unsaved: tuple[str, ...] = ()                         # buffers that `state_dict` leaves out
    _state_dict_pre_hooks: Hooks = NONE
    _state_dict_hooks: Hooks = NONE
    _load_state_dict_pre_hooks: Hooks = NONE
    _load_state_dict_post_hooks: Hooks = NONE

    def get_extra_state(self) -> Any:
        """Give what `state_dict` saves besides tensors; a module that has such state defines it.

        Returns:
            Anything; it is saved under "_extra_state".

        Raises:
            UserError: The class does not define it (MLC0738).

        Example:
            >>> class Counter(nn.Module):
            ...     count = 3
            ...     def get_extra_state(self):
            ...         return self.count
            ...     def set_extra_state(self, state):
            ...         self.count = state
            >>> Counter().state_dict()
            {'_extra_state': 3}
        """
        raise _undefined(self, "get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Take what `get_extra_state` gave; a module that has such state defines it.

        Args:
            state: What was saved.

        Raises:
            UserError: The class does not define it (MLC0738).
        """
        raise _undefined(self, "set_extra_state")

    def state_dict(self, *, destination: dict[str, Any] | None = None, prefix: str = "",
                   keep_vars: bool = False) -> dict[str, Any]:
        """Collect the parameters and the persistent buffers by name; what several names share is under each of them.

        Args:
            destination: A dict to add them to; None for a new one.
            prefix: Start of the names.
            keep_vars: Whether the parameters are given as they are, rather than tensors that require no gradient.

        Returns:
            Dict of tensors, which share the memory of those of the module; those on a device are copies.

        Example:
            >>> layer = nn.Linear(2, 3)
            >>> {name: tuple(x.shape) for name, x in layer.state_dict().items()}
            {'weight': (3, 2), 'bias': (3,)}
        """
        found: dict[str, Any] = {} if destination is None else destination
        _collect(self, found, prefix, keep_vars, {})
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Incompatible:
        """Replace parameters and buffers by copies of arrays, by name.

        An array has the shape of what it replaces, and its dtype or another of the same kind (bool, integer or float).
        Where something does not fit, nothing is replaced.

        Args:
            state_dict: Arrays by name.
            strict: Whether both must have the same names.
            assign: Whether the module takes the tensors of the state themselves, with their dtypes, instead of copies.

        Returns:
            Named tuple of missing_keys, which the module has alone, and unexpected_keys, which the state has alone.

        Raises:
            UserError: Names differ, or what is under several names of one parameter does (MLC0382).
            UserTypeError: It is no mapping, or shapes or kinds of dtypes differ (MLC0382).

        Example:
            >>> a, b = nn.Linear(2, 3), nn.Linear(2, 3)
            >>> _ = b.load_state_dict(a.state_dict())
            >>> mlc.equal(a.weight, b.weight)
            True
        """
        if not isinstance(state_dict, Mapping):
            raise UserTypeError(f"a state is a dict of arrays by name, found {type(state_dict).__name__}",
                                code="MLC0382", loc=user_loc())
        given, errors = OrderedDict(state_dict), list[str]()
        report = Incompatible([], [])
        modules = list(self.named_modules())
        for name, module in modules:
            module._load_from_state_dict(given, f"{name}." if name else "", {}, strict, *report, errors)
        extra = {f"{name}.{EXTRA}" if name else EXTRA: module for name, module in modules
                 if type(module).set_extra_state is not Stateful.set_extra_state}
        arrays = {name: x for name, x in given.items() if name not in extra}
        saved = {name: x for name, owner, attribute, x in self._state_by_name() if attribute not in owner._unsaved}
        new, found = fitting(arrays, saved, self._tied_by_name(), strict, type(self).__name__,
                             [name for name in extra if name not in given], errors)
        for keys, more in zip(report, found):
            keys += [key for key in more if key not in keys]
        if assign:
            self._adopt_state({name: x if type(x := given[name]) is Tensor else new[name] for name in new})
        else:
            self._assign_state(new)
        for name, module in extra.items():
            if name in given:
                module.set_extra_state(given[name])
        self._call_load_hooks(report)
        return report

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any],
                              strict: bool, missing_keys: list[str], unexpected_keys: list[str],
                              error_msgs: list[str]) -> None:
        """Call the hooks that change a state before it is loaded, for all modules at once. Classes override this to
        convert states that were saved by former versions of them, as in PyTorch."""
        for hook in list(self._load_state_dict_pre_hooks.values()):
            own = (self,) if hook.with_kwargs else ()
            hook.function(*own, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def _call_load_hooks(self, report: Incompatible) -> None:
        """Call the hooks of what has been loaded, those of the modules inside first."""
        for module in self.children():
            module._call_load_hooks(report)
        for hook in list(self._load_state_dict_post_hooks.values()):
            hook.function(self, report)

    def _adopt_state(self, new: Mapping[str, Tensor]) -> None:
        """Hold these tensors, by name, in place of those that are held."""
        for name, owner, attribute, _ in list(self._state_by_name()):
            if name in new:
                tensor, rest = new[name], name.rpartition(".")[2]
                if attribute in owner._parameters:
                    tensor = mark_parameter(tensor.detach(), attribute not in tree.frozen_names(owner))
                held = vars(owner)[attribute]
                if isinstance(held, dict):
                    held[rest] = tensor
                elif isinstance(held, list):
                    held[int(rest)] = tensor
                else:
                    setattr(owner, attribute, tensor)

    # -- hooks --------------------------------------------------------------------------------------------------------
    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function before the module's tensors are collected: hook(module, prefix, keep_vars).

        Args:
            hook: Function, whose result is ignored.

        Returns:
            A handle whose `remove()` unregisters the hook.
        """
        return add(vars(self).setdefault("_state_dict_pre_hooks", OrderedDict()), Hook(hook))

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function with the state that was collected: hook(module, state_dict, prefix, local_metadata).

        Args:
            hook: Function that may change the state in place.

        Returns:
            A handle whose `remove()` unregisters the hook.
        """
        return add(vars(self).setdefault("_state_dict_hooks", OrderedDict()), Hook(hook))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function before a state is loaded.

        It is hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs).

        Args:
            hook: Function that may change the dict, a copy of the caller's, and the lists in place.

        Returns:
            A handle whose `remove()` unregisters the hook.
        """
        return add(vars(self).setdefault("_load_state_dict_pre_hooks", OrderedDict()), Hook(hook, with_kwargs=True))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function after a state is loaded: hook(module, incompatible_keys).

        Args:
            hook: Function that may change the lists of keys in place.

        Returns:
            A handle whose `remove()` unregisters the hook.
        """
        return add(vars(self).setdefault("_load_state_dict_post_hooks", OrderedDict()), Hook(hook))


def _undefined(module: Any, name: str) -> UserError:
    return UserError(f"{type(module).__name__} has no {name}", code="MLC0738", loc=user_loc(),
                     hint="a module with state that is no tensor defines both get_extra_state and set_extra_state")


def _collect(module: Any, found: dict[str, Any], prefix: str, keep_vars: bool, constants: dict[int, Tensor]) -> None:
    """Add the state of a module, and of those inside it; `constants` has the tensors that stand for parameters."""
    for hook in list(module._state_dict_pre_hooks.values()):
        hook.function(module, prefix, keep_vars)
    for name, attribute, x in module._own_state():
        if attribute in module._unsaved:
            continue
        if not keep_vars and type(x) is Tensor:
            shares = isinstance(x._array, np.ndarray)      # a view on a device is a copy
            x = constants.setdefault(id(x), x.detach() if shares else alone(x))
        found[prefix + name] = x
    if type(module).get_extra_state is not Stateful.get_extra_state:
        found[prefix + EXTRA] = module.get_extra_state()
    for name, child in module._child_modules():
        if type(child).state_dict is Stateful.state_dict:
            _collect(child, found, f"{prefix}{name}.", keep_vars, constants)
        else:
            child.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in list(module._state_dict_hooks.values()):
        hook.function(module, found, prefix, {})
