"""Optimizers that hold parameters: `Adam(model.parameters(), lr=1e-3)`, `backward()`, `step()`.

Such an optimizer moves its parameters in place, by the same rules as `update`: all parameters of a group in one
compiled function.
"""

from __future__ import annotations

import copy
import difflib
import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mlc.api import compile
from mlc.frontend import unsupported_api
from mlc.frontend.arguments import coded_methods
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.autograd.graph import alone
from mlc.frontend.captures import take_over
from mlc.frontend.functions import create
from mlc.frontend.location import user_loc
from mlc.frontend.operands import tracer
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state as recording
from mlc.frontend.tree import AttributeTree, leaves
from mlc.ir.diag import UserError, UserTypeError
from mlc.optim.own_step import StepHooks, hands_parameters_on, hooked, loaded
from mlc.optim.recorded_step import advance, record_step
from mlc.optim.repeated_step import RepeatedStep
from mlc.optim.row_step import step_of_rows

if TYPE_CHECKING:
    from mlc.optim.optimizer import Optimizer

_NO_PARAMETERS = ("it was made without parameters, as the one of a functional step", "opt = Adam(model.parameters())")
FLAGS = {"foreach": None, "capturable": False, "differentiable": False, "fused": None}
"""PyTorch's choices of an implementation, and their defaults. An update is one compiled function under all of them."""
_HELD = ("param_groups", "state", "_updates", "_repeated", "_flags", "_names", "_before_step", "_after_step")
"""Attributes of an optimizer that holds parameters, which are no settings."""


class OptimizerType(type):
    """Class of optimizers: with parameters as the first argument, the others are as without."""

    flags: tuple[str, ...]

    def __call__(cls, *args: Any, **settings: Any) -> Any:
        _check_parameters(cls.__name__, (settings["params"],) if "params" in settings else args)
        return super().__call__(*args, **settings)

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of `__init__`, which comes after `params`, and the flags."""
        every = [*inspect.signature(cls.__init__).parameters.values()]  # type: ignore[misc]
        if hands_parameters_on(cls):
            return inspect.Signature(every[1:])
        flags = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
                 for name, default in FLAGS.items() if name in cls.flags]
        return inspect.Signature([*every[1:], *flags])


def are_parameters(x: Any) -> bool:
    """Whether an argument is parameters rather than a learning rate, which is a number, a tensor or a function."""
    return isinstance(x, Iterable) and not isinstance(x, str | Mapping | Tensor) and not callable(x)


def _check_parameters(name: str, args: tuple[Any, ...]) -> None:
    """UserTypeError for a module, or its method, in place of its parameters."""
    x: Any = args[0] if args else None
    if isinstance(x, AttributeTree) or isinstance(getattr(x, "__self__", None), AttributeTree):
        found = type(x).__name__ if isinstance(x, AttributeTree) else f"the method {x.__name__} itself"
        raise UserTypeError(f"{name} takes parameters, found {found}", code="MLC0383", loc=user_loc(),
                            hint=f"{name}(model.parameters(), lr=...)")


def _check_flags(name: str, flags: Mapping[str, Any]) -> None:
    """UserError for an implementation that does not exist."""
    if flags.get("differentiable"):
        raise UserError(f"{name} moves parameters in place, outside of the graph of derivatives", code="MLC0780",
                        loc=user_loc(), hint=f"{name}(lr=...).update(grads, state, params) is a function that has "
                                             "derivatives")
    if flags.get("foreach") and flags.get("fused"):
        raise UserError(f"{name} cannot be both foreach and fused", code="MLC0780", loc=user_loc(),
                        hint="leave both out: an update is one compiled function")


def taking_parameters(init: Callable[..., None]) -> Callable[..., None]:
    """`__init__` of settings, as one that may be given parameters first, which the optimizer then holds. With a dict
    of settings after them, these are all there are: its `step` is the subclass's."""

    @functools.wraps(init)
    def public(self: Any, *args: Any, **settings: Any) -> None:
        if "params" in settings:
            args = (settings.pop("params"), *args)
        flags = {name: settings.pop(name, default) for name, default in FLAGS.items() if name in self.flags}
        _check_flags(type(self).__name__, flags)
        if not args or not are_parameters(args[0]):
            init(self, *args, **settings)
            return
        defaults = args[1] if len(args) > 1 else settings.get("defaults")
        if isinstance(defaults, Mapping):
            self._flags, self.groups, self.defaults = {}, [], dict(defaults)
        else:
            before = {*vars(self)}
            init(self, *args[1:], **settings)
            self._flags, self._names = flags, tuple(name for name in vars(self) if name not in before)
        self.hold(args[0])

    return public


def after_parameters(init: Callable[..., None]) -> Callable[..., None]:
    """The `__init__` of an optimizer, typed as what may be called with parameters first."""
    return init


class ParameterGroups(StepHooks, metaclass=OptimizerType):
    """Part of an optimizer that holds parameters and their state.

    param_groups  dicts of the parameters ("params") and the settings of each group, which may be changed
    state         per parameter: the number of its updates ("step"), and its slots
    """

    flags: tuple[str, ...] = ()
    """Those of `FLAGS` that the constructor takes and the groups list."""
    takes_parts = False
    """Whether its rule is elementwise, so that complex parameters are trained as their real and imaginary parts."""
    trains_complex = False
    """Whether its steps are those of real and imaginary parts, which those with squares of gradients are not."""
    counts_updates = True
    """Whether a saved state says how many updates a parameter has had."""
    param_groups: list[dict[str, Any]]
    state: dict[Any, dict[str, Any]]
    _own: dict[str, Any] | None = None
    """The settings of an optimizer whose `step` is the subclass's, and whose state is what that makes it."""
    _names: tuple[str, ...] | None = None
    """Of one that holds parameters: the attributes that are settings. A subclass may set others afterwards."""
    _updates: dict[Any, Any]
    _repeated: dict[int, RepeatedStep | None]

    def __getstate__(self) -> dict[str, Any]:
        """Its attributes, without code, which copies compile for themselves."""
        held = dict(vars(self))
        return {**held, "_updates": {}, "_repeated": {}} if "_updates" in held else held

    def __getattr__(self, name: str) -> Any:
        why = _NO_PARAMETERS if name in ("param_groups", "state", "_updates", "_repeated", "_flags") else None
        raise unsupported_api.error(type(self).__name__, name, why, self)

    def hold(self, params: Iterable[Any]) -> None:
        """Take parameters, tensors or dicts of settings with "params", into groups."""
        if self.groups:
            raise UserError("groups are chosen by names, which parameters that are held do not have", code="MLC0383",
                            loc=user_loc(), hint='pass dicts: [{"params": [w]}, {"params": [b], "lr": 0.01}]')
        self.param_groups, self._updates, self._repeated = [], {}, {}
        self.state = {} if self._own is None else defaultdict(dict)
        given = list(params)
        if not given:
            raise UserError(f"{type(self).__name__} was given no parameters", code="MLC0378", loc=user_loc(),
                            hint="an iterator such as model.parameters() is empty once it has been gone through")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings of their own.

        Args:
            param_group: Dict of "params", a tensor or several, and of the settings that differ. Other entries are
                kept.

        Raises:
            UserError: A setting is misspelt or out of range (MLC0383), or a parameter is held already or is no leaf
                (MLC0378).
            UserTypeError: What is given is no dict, or a parameter is no tensor (MLC0378).

        Example:
            >>> w, b = mlc.ones(2, requires_grad=True), mlc.zeros(2, requires_grad=True)
            >>> opt = mlc.optim.SGD([w], lr=0.1)
            >>> opt.add_param_group({"params": b, "lr": 0.01})
            >>> [group["lr"] for group in opt.param_groups]
            [0.1, 0.01]
        """
        if "params" not in param_group:
            raise UserTypeError("a group of parameters is a dict with the key 'params'", code="MLC0378", loc=user_loc())
        given = param_group["params"]
        if not isinstance(given, Iterable):
            raise UserTypeError(f"the parameters of a group are tensors, found {type(given).__name__}", code="MLC0378",
                                loc=user_loc(), hint='{"params": model.parameters(), "lr": 0.01}')
        if isinstance(given, set | frozenset):
            raise UserTypeError("the order of a set is not that of a saved state", code="MLC0378", loc=user_loc(),
                                hint="pass a list")
        entries = [given] if isinstance(given, Tensor) else list(given)
        params = [x[1] if isinstance(x, tuple) else x for x in entries]
        names = [x[0] for x in entries if isinstance(x, tuple)]
        if (names and (len(names) != len(params) or any("param_names" not in g for g in self.param_groups))) or (
                not names and any("param_names" in g for g in self.param_groups)):
            raise UserError("either all parameters have names or none", code="MLC0378", loc=user_loc(),
                            hint="pass model.named_parameters() for every group, or model.parameters()")
        held = {id(p) for group in self.param_groups for p in group["params"]}
        for p in params:
            if not isinstance(p, Tensor):
                raise UserTypeError(f"a parameter is a tensor, found {type(p).__name__}", code="MLC0378",
                                    loc=user_loc(), hint=f"{type(self).__name__}(model.parameters(), lr=...)")
            if not p.is_leaf:
                raise UserError("only leaves can be trained, and this is the result of an operation", code="MLC0378",
                                loc=user_loc(), hint="x.detach().requires_grad_() is a leaf of the same elements")
            if id(p) in held:
                raise UserError("a parameter is held twice", code="MLC0378", loc=user_loc(),
                                hint="model.parameters() has shared parameters once")
            self.check_dtype(p)
            held.add(id(p))
            self.check_parameter(p)
        settings = {**self._settings(), **self._flags}
        for unknown in sorted(set(param_group) - {*settings, "params"}):
            if similar := difflib.get_close_matches(unknown, settings, 1, 0.7):
                raise UserError(f"{type(self).__name__} has no setting {unknown}", code="MLC0383", loc=user_loc(),
                                hint=f"it has {similar[0]}; entries of one's own have names unlike those of settings")
        _check_flags(type(self).__name__, group := {**settings, **param_group, "params": params})
        self._with(group)
        self.param_groups.append({**group, "param_names": names} if names else group)

    def check_dtype(self, p: Any) -> None:
        """UserTypeError if a parameter is complex, and this optimizer trains real ones only."""
        if not (self.trains_complex or self.takes_parts) and isinstance(p, Tensor) and p.is_complex():
            raise UserTypeError(f"{type(self).__name__} does not train complex parameters", code="MLC0378",
                                loc=user_loc(), hint="train mlc.view_as_real(w), and compute with "
                                                     "mlc.view_as_complex of it")

    def check_parameter(self, p: Tensor) -> None:
        """Raise UserError (MLC0378) if a parameter is none that this optimizer can train.

        Args:
            p: Parameter that it is given.
        """

    @property
    def defaults(self) -> dict[str, Any]:
        """The settings of a group that has none of its own."""
        return self._own if self._own is not None else {**self._settings(), **self._flags}

    @defaults.setter
    def defaults(self, settings: dict[str, Any]) -> None:
        self._own = settings

    def __repr__(self) -> str:
        if "param_groups" not in vars(self):
            return f"{type(self).__name__}({', '.join(f'{n}={x!r}' for n, x in self._settings().items())})"
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])

    @property
    def has_own_step(self) -> bool:
        """Whether its `step` is the subclass's, which keeps in `state` what it needs."""
        return self._own is not None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters.

        Args:
            set_to_none: Whether they become None, rather than zeros in place.

        Example:
            >>> w = mlc.ones(2, requires_grad=True)
            >>> opt = mlc.optim.SGD([w], lr=0.1)
            >>> w.sum().backward()
            >>> opt.zero_grad()
            >>> w.grad is None
            True
        """
        for p in (p for group in self.param_groups for p in group["params"]):
            if set_to_none:
                p.grad = None
            elif (grad := p.grad) is not None:
                (grad.detach_() if grad.requires_grad else grad).zero_()

    @hooked
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the parameters by their gradients, in place; those without a gradient stay.

        Args:
            closure: Function that computes the loss and its gradients anew.

        Returns:
            The result of the closure; None without one.

        Example:
            >>> w = mlc.tensor([1.0, -2.0], requires_grad=True)
            >>> opt = mlc.optim.SGD([w], lr=0.1)
            >>> (w * w).sum().backward()
            >>> opt.step()
            >>> w
            tensor([ 0.8, -1.6], dtype=mlc.float32, requires_grad=True)
        """
        if self.has_own_step:
            raise NotImplementedError(f"{type(self).__name__} has no step")
        loss = None
        if closure is not None:
            with GradMode(True):
                loss = closure()
        with GradMode(False):
            for number, group in enumerate(self.param_groups):
                repeated = self._repeated.get(number)
                if recording.trace is not None:
                    self._step(group)
                elif repeated is None or not repeated.run(group, self.state, self.check):
                    self._repeated[number] = self._step(group)
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Collect the state and the settings, with numbers in place of the parameters.

        Returns:
            Dict of "state", by the number of the parameter, with the tensors of the optimizer, and "param_groups".
        """
        numbers = self._numbers()
        rates = {id(p): group["lr"] for group in self.param_groups for p in group["params"]}
        state: dict[Any, Any] = {numbers[id(p)]: self._saved(held, callable(rates[id(p)]))
                                 for p, held in self.state.items() if isinstance(p, Tensor)}
        state = {number: held for number, held in state.items() if held}
        state.update((key, x) for key, x in self.state.items() if not isinstance(key, Tensor))
        groups = [{**group, "params": [numbers[id(p)] for p in group["params"]]} for group in self.param_groups]
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over the state and the settings of an optimizer of parameters of the same shapes.

        Args:
            state_dict: Result of `state_dict`.

        Raises:
            UserError: The groups are of other sizes, or a slot is missing or of another shape (MLC0377).

        Example:
            >>> w = mlc.tensor([1.0, -2.0], requires_grad=True)
            >>> opt, other = mlc.optim.SGD([w], lr=0.1), mlc.optim.SGD([w], lr=0.3)
            >>> other.load_state_dict(opt.state_dict())
            >>> other.param_groups[0]["lr"]
            0.1
        """
        for name in ("state", "param_groups"):
            if name not in state_dict:
                raise UserError(f"the state of an optimizer has an entry {name!r}, and this has none", code="MLC0377",
                                loc=user_loc(), hint="load the result of state_dict of an optimizer that holds "
                                                     "parameters")
        groups = state_dict["param_groups"]
        sizes, own = [len(g.get("params", ())) for g in groups], [len(g["params"]) for g in self.param_groups]
        if sizes != own:
            raise UserError(f"the state is of groups of {sizes} parameters, the optimizer's are of {own}",
                            code="MLC0377", loc=user_loc(), hint="make the optimizer with the parameters of the one "
                                                                 "that was saved, in the same groups")
        state: dict[Any, dict[str, Any]] = {} if self._own is None else defaultdict(dict)
        for theirs, ours in zip(groups, self.param_groups):
            rule = self._with({**ours, **theirs})
            for number, p in zip(theirs["params"], ours["params"]):
                if number in state_dict["state"]:
                    state[p] = _checked(rule, number, p, state_dict["state"][number])
        state.update((key, x) for key, x in state_dict["state"].items() if not isinstance(key, int))
        self.state = state
        for theirs, ours in zip(groups, self.param_groups):
            ours.update({name: x for name, x in theirs.items() if name != "params"})

    def _saved(self, held: Mapping[str, Any], counts: bool) -> dict[str, Any]:
        """The state of a parameter as PyTorch writes it: the number of updates is a float32."""
        if self._own is not None:
            return dict(held)
        slots = {name: x for name, x in held.items() if name != "step"}
        if "step" in held and (self.counts_updates or counts):
            return {"step": create.tensor(float(held["step"]), dtype="float32"), **slots}
        return slots

    def _numbers(self) -> dict[int, int]:
        """The number of each parameter, in the order of the groups."""
        every = [p for group in self.param_groups for p in group["params"]]
        return {id(p): i for i, p in enumerate(every)}

    def _settings(self: Any) -> dict[str, Any]:
        if self._own is not None:
            return dict(self._own)
        return {name: x for name, x in vars(self).items() if name not in _HELD and name != "groups" and (
            self._names is None or name in self._names)}

    def _with(self: Any, group: dict[str, Any]) -> Optimizer:
        """The optimizer under the settings of a group."""
        if self._own is not None:
            return self  # type: ignore[no-any-return]
        other = copy.copy(self)
        for name in _HELD:
            vars(other).pop(name, None)
        vars(other).update({name: group[name] for name in self._settings()})
        if isinstance(other.lr, int | float):
            other.check("lr", other.lr)
        other.validate()
        return other  # type: ignore[no-any-return]

    def _step(self, group: dict[str, Any]) -> RepeatedStep | None:
        """Update the parameters of a group: together those that have been updated as often. Returns the steps after
        this one, if they may be repeated."""
        rule, together = self._with(group), dict[int, list[Tensor]]()
        if recording.trace is not None:
            rule.check_dense()
            record_step(self, group, rule)
            return None
        for p in group["params"]:
            if p.grad is not None:
                held = self.state.setdefault(p, {"step": 0})
                if any(held.get(name) is None for name in rule.slots_of(p)):   # at first, or settings have changed
                    fresh = dict(zip(rule.slots, rule.fresh(p)))
                    present = {name: x for name, x in held.items() if x is not None}
                    self.state[p] = {**{name: fresh[name] for name in rule.slots_of(p)}, **present}
                if p.grad.composite:
                    step_of_rows(self, group, rule, p)
                else:
                    rule.check_dense()
                    together.setdefault(int(held["step"]), []).append(p)
        if not together:
            return None
        update, numbers = self._update_of(group, rule)
        for count, params in together.items():
            own = [self.state[p] for p in params]
            every = [own[i] if len(rule.slots_of(p)) == len(rule.slots) else
                     {**dict(zip(rule.slots, rule.fresh(p))), **own[i]} for i, p in enumerate(params)]
            slots = {name: [x[name] for x in every] for name in rule.slots}
            lr = group["lr"](count) if callable(group["lr"]) else group["lr"]
            new, after = update([p.grad for p in params], create.tensor(count), float(lr), numbers, params, slots)
            for i, (p, moved) in enumerate(zip(params, new)):
                p.copy_(moved)
                for name in rule.slots_of(p):
                    take_over(own[i][name], after[name][i].backing_array)
            advance(self.state, params, count + 1)
        if len(together) > 1 or len(params) != len(group["params"]) or any(
                len(rule.slots_of(p)) != len(rule.slots) for p in params):
            return None
        settings = {name: x for name, x in group.items() if name not in ("params", "lr")}
        return RepeatedStep.of(settings, params, own, rule.slots, update.compiled.cache.all(), numbers)

    def with_settings(self: Any, settings: Mapping[str, Any]) -> Any:
        """The optimizer with other settings, which are not checked.

        Args:
            settings: Their values by name.

        Returns:
            A copy.
        """
        other = copy.copy(self)
        vars(other).update(settings)
        return other

    def _update_of(self, group: dict[str, Any], rule: Optimizer) -> tuple[Any, dict[str, Any]]:
        """The compiled `update` under the settings of a group, and those of them that are its arguments."""
        numbers, constants = dict[str, Any](), list[str]()
        for name in self._settings().keys() - {"lr"}:
            x = group[name]
            if name in rule.dynamic_settings and rule.enabled(x):
                numbers[name] = tuple(map(float, x)) if isinstance(x, list | tuple) else float(x)
            else:
                constants.append(f"{name} = {x!r}")
        key = tuple(sorted(constants))
        if key not in self._updates:
            def update(grads: Any, count: Any, lr: Any, numbers: Any, params: Any, slots: Any) -> Any:
                old = [x.value for x in leaves((params, slots))]
                new, after = rule.with_settings(numbers).update(grads, {"step": count, **slots}, params, lr)
                after = {name: after[name] for name in rule.slots}
                assert recording.trace is not None
                recording.trace.updates |= zip((tracer(x).value for x in leaves((new, after))), old, strict=True)
                return new, after

            self._updates[key] = compile(update, dynamic=False)
        return self._updates[key], numbers


coded_methods(ParameterGroups)


def _checked(rule: Optimizer, number: int, p: Tensor, held: Mapping[str, Any]) -> dict[str, Any]:
    """The loaded state of a parameter; UserError if it is none of this optimizer and of this shape."""
    if rule.has_own_step:
        return loaded(held, p)
    if rule.counts_updates and "step" not in held:
        raise UserError(f"the state of parameter {number} has no step", code="MLC0377", loc=user_loc())
    wanted = {name: x for name, x in zip(rule.slots, rule.fresh(p)) if name in rule.slots_of(p)}
    out = dict(held)
    for name, x in wanted.items():
        if name not in held or (held[name] is not None and held[name].shape != x.shape):
            raise UserError(f"the state of parameter {number} has no {name} of shape {list(x.shape)}", code="MLC0377",
                            loc=user_loc())
        if held[name] is not None:
            out[name] = alone(held[name].to(x.dtype))
    if wanted or "step" in held:
        out["step"] = int(held.get("step", 1))
    return out
