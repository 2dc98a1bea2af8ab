"""Common base of optimisers: settings, groups of parameters, and one rule per parameter applied over trees."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Self

from mlc.frontend import tree
from mlc.frontend.arguments import coded_methods, described
from mlc.frontend.autograd.differentiable import mark_parameter
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.elementwise.complex_numbers import view_as_complex, view_as_real
from mlc.frontend.location import user_loc
from mlc.frontend.nested import call
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import state as recording
from mlc.ir.diag import UserError, UserTypeError
from mlc.optim.own_step import hands_parameters_on, hooked
from mlc.optim.parameter_groups import ParameterGroups, are_parameters, taking_parameters

Schedule = Callable[[Any], Any]
"""The learning rate of a step: a function of the number of steps already made, which may be a tensor."""
Rate = float | Tensor | Schedule
Group = tuple[Callable[[str], bool], dict[str, Any]]
"""A predicate on parameter names, and the settings of these parameters."""


class Optimizer(ParameterGroups):
    """Base of optimizers: `init` makes a state, `update` gives new parameters and a new state.

    It holds settings alone, so that an update is a pure function, which compiles with the step it is part of. The state
    is a dict: "step" counts the updates (int64), each of `slots` is a tree like the parameters. Parameters are any
    tree, such as a module, whose buffers and frozen parameters have no state and stay as they are. A subclass defines
    `rule`, and where it needs them `slots`, `scalars`, `fresh` and `validate`.

    `takes_sparse` says whether `rule` may be applied to the rows of a sparse gradient alone, `takes_dense` whether it
    may be applied to a dense one.

    `step` compiles the update once for the settings of a group, but for the learning rate and those that the subclass
    names in `dynamic_settings`: they are arguments, so that they may change at every step. Their type within `rule` and
    `scalars` is then a tensor, for which `enabled` says whether a setting takes part.

    PyTorch's way to write an optimizer works too: `super().__init__(params, defaults)` with a dict of settings, and a
    `step` that changes the parameters of `param_groups` in place and keeps what it needs in `state`. A compiled
    function that calls it runs as Python in its first call, in which that state is made.

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.

    Raises:
        UserError: A setting is negative or unknown (MLC0383).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> class SignSGD(mlc.optim.Optimizer):
        ...     def rule(self, p, g, lr, scalars, *slots):
        ...         return (p - lr * mlc.sign(g),)
        >>> opt, w = SignSGD(0.5), mlc.tensor([1.0, -2.0])
        >>> opt.update(mlc.tensor([3.0, -4.0]), opt.init(w), w)
        (tensor([ 0.5, -1.5], dtype=mlc.float32), {'step': tensor(1, dtype=mlc.int64)})
    """

    slots: tuple[str, ...] = ()
    dynamic_settings: tuple[str, ...] = ()
    takes_sparse = False
    takes_dense = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        coded_methods(cls, ("__init__",))
        if "__init__" in vars(cls) and not hands_parameters_on(cls):
            cls.__init__ = taking_parameters(cls.__init__)  # type: ignore[method-assign]
        if "step" in vars(cls):
            cls.step = hooked(cls.step)  # type: ignore[method-assign]

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        if hands_parameters_on(cls) or (args and are_parameters(args[0])):
            return super().__new__(cls)
        if args and not (callable(args[0]) or isinstance(args[0], int | float | Tensor)):
            raise UserTypeError(f"{cls.__name__} takes parameters or a learning rate, found {type(args[0]).__name__}",
                                code="MLC0383", loc=user_loc(), hint=f"{cls.__name__}(model.parameters(), lr=...)")
        if args and isinstance(args[0], Tensor) and recording.trace is None and args[0].requires_grad:
            raise UserTypeError(f"{cls.__name__} takes parameters in a list, found one parameter", code="MLC0383",
                                loc=user_loc(), hint=f"{cls.__name__}([w], lr=...)")
        return super().__new__(cls)

    def __init__(self, lr: Rate, groups: Sequence[Group] = ()) -> None:
        if isinstance(lr, int | float):
            self.check("lr", lr)
        elif isinstance(lr, Tensor) and lr.numel() != 1:
            raise UserError(f"a learning rate is a tensor of one element, found shape {list(lr.shape)}", code="MLC0383",
                            loc=user_loc(), hint="parameters with rates of their own are groups")
        self.lr = lr
        self.groups: list[tuple[Callable[[str], bool], Optimizer]] = []
        for chosen, settings in groups:
            if unknown := sorted(set(settings) - set(vars(self)) | set(settings) & {"groups"}):
                raise UserError(f"{type(self).__name__} has no setting {', '.join(unknown)}", code="MLC0383",
                                loc=user_loc(), hint="it has " + ", ".join(n for n in vars(self) if n != "groups"))
            other = copy.copy(self)
            vars(other).update(settings)
            other.validate()
            if other.slots != self.slots:
                raise UserError(f"a group with {settings} has another state than the optimiser, where each slot is one "
                                "tree", code="MLC0383", loc=user_loc(),
                                hint="use two optimisers, or give both the same")
            self.groups.append((chosen, other))
        self.validate()

    @staticmethod
    def check(name: str, value: Any, below: float = float("inf")) -> None:
        """Raise UserError (MLC0383) unless 0 <= value < below.

        Args:
            name: Name of the setting in the message.
            value: Number to check.
            below: Upper bound, which is excluded.
        """
        if not 0 <= value < below:
            raise UserError(f"{name} = {value} is not in [0, {below})", code="MLC0383", loc=user_loc())

    @staticmethod
    def enabled(setting: Any) -> bool:
        """Whether a setting takes part in an update: it is not 0, or it is an argument of the compiled update.

        Args:
            setting: A number, a bool, or a tensor, which stands for a number that is not 0.

        Returns:
            Whether it does.

        Example:
            >>> mlc.optim.Optimizer.enabled(0.0), mlc.optim.Optimizer.enabled(0.9)
            (False, True)
        """
        return isinstance(setting, Tensor) or bool(setting)

    def validate(self) -> None:
        """Raise UserError (MLC0383) if a setting is out of range; called for the optimizer and for each group."""

    def check_dense(self) -> None:
        """Raise UserError (MLC0778) if the optimizer is one of sparse gradients only."""
        if not self.takes_dense:
            raise UserError(f"{type(self).__name__} is given a dense gradient", code="MLC0778", loc=user_loc(),
                            hint="use Adam, or layers with sparse=True, such as nn.Embedding(n, d, sparse=True)")

    def fresh(self, p: Tensor) -> tuple[Tensor, ...]:
        """Make the slots of a parameter before the first update: zeros of its shape and dtype.

        Args:
            p: The parameter.

        Returns:
            One tensor for each of `slots`.
        """
        return tuple(create.zeros_like(p) for _ in self.slots)

    def slots_of(self, p: Tensor) -> tuple[str, ...]:
        """Name the slots that the state of a parameter has: all of `slots`, but where its shape decides.

        Args:
            p: The parameter.

        Returns:
            Part of `slots`; `fresh` gives a tensor of no elements for each of the others.
        """
        return self.slots

    def scalars(self, t: Tensor) -> tuple[Any, ...]:
        """Compute what the rule needs of the number of the update, once for all parameters.

        Args:
            t: Number of this update, from 1, an int64 tensor of no dimensions.

        Returns:
            Tuple that `rule` is given.
        """
        return ()

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        """Compute a parameter and its slots after an update; every subclass defines it.

        Args:
            p: The parameter.
            g: Its gradient, of the same shape.
            lr: Learning rate, a number or a tensor of no dimensions.
            scalars: Result of `scalars`.
            slots: Its slots before the update.

        Returns:
            Tuple of the parameter and the slots after it.
        """
        raise NotImplementedError

    def moved(self, *args: Any) -> tuple[Tensor, ...]:
        """Apply `rule`; while a function is recorded as a call, so that parameters of one shape share the code.

        Args:
            args: Arguments of `rule`.

        Returns:
            Result of `rule`.
        """
        rule = self._rule_of_parts if self.takes_parts and args[0].is_complex() else self.rule
        return rule(*args) if recording.trace is None else call(type(self).__name__, rule, *args)

    def _rule_of_parts(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...],
                       *slots: Tensor) -> tuple[Tensor, ...]:
        """`rule` of the real and imaginary parts."""
        p, g, *slots_of = [view_as_real(x) for x in (p, g, *slots)]
        return tuple(view_as_complex(x) for x in self.rule(p, g, lr, scalars, *slots_of))

    def init(self, params: Any) -> dict[str, Any]:
        """Make the state before the first update.

        Args:
            params: Tree of parameters.

        Returns:
            Dict with "step" and the slots, each tensor in memory of its own.

        Raises:
            UserError: A tensor is two parameters outside of a module, or complex numbers are not trained (MLC0378).

        Example:
            >>> mlc.optim.SGD(0.1, momentum=0.9).init(mlc.ones(2))
            {'step': tensor(0, dtype=mlc.int64), 'momentum_buffer': tensor([0., 0.], dtype=mlc.float32)}
        """
        leaves, structure = tree.flatten(tree.trained_part(params))
        names = _trained_names(params)
        _check_distinct(names, leaves)
        for p in leaves:
            self.check_dtype(p)
        own = [self.of(name).fresh(p) for name, p in zip(names, leaves)]
        return {"step": create.zeros(dtype="int64"), **dict(zip(self.slots, trees_of(structure, own, len(self.slots))))}

    def update(self, grads: Any, state: dict[str, Any], params: Any, lr: Operand = None) -> tuple[Any, dict[str, Any]]:
        """Move the parameters by one step.

        Args:
            grads: Tree like the parameters, as `mlc.grad` gives it.
            state: Result of `init` or of the last `update`.
            params: Tree of parameters.
            lr: Learning rate in place of the optimizer's; groups with one of their own keep their ratio to it.

        Returns:
            New parameters of the same structure and dtypes, and the new state.

        Raises:
            UserError: The state belongs to another optimizer (MLC0377).
            UserTypeError: The state is no dict (MLC0421), or the trees differ in structure.

        Example:
            >>> opt, w = mlc.optim.SGD(0.1), mlc.tensor([1.0])
            >>> opt.update(mlc.tensor([2.0]), opt.init(w), w)
            (tensor([0.8], dtype=mlc.float32), {'step': tensor(1, dtype=mlc.int64)})
        """
        if not isinstance(state, dict):
            raise UserTypeError(f"state is {described(state)}, expected a dict", code="MLC0421", loc=user_loc(),
                                hint="pass what init or the last update returned")
        if missing := [slot for slot in ("step", *self.slots) if slot not in state]:
            raise UserError(f"the state has no {missing[0]!r}, so that it is not one of {type(self).__name__}",
                            code="MLC0377", loc=user_loc(), hint="pass what init or the last update returned")
        if recording.trace is not None:
            return self._update(grads, state, params, lr)
        with GradMode(False):                              # or each model would keep all those before it
            return self._update(grads, state, params, lr)

    def _update(self, grads: Any, state: dict[str, Any], params: Any, lr: Operand) -> tuple[Any, dict[str, Any]]:
        structure, rows = leaves_of(params, grads=grads, **{slot: state[slot] for slot in self.slots})
        t = state["step"] + 1
        rate = lr if lr is not None else self.rate(self.lr, state["step"])
        known: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        moved = []
        for name, (p, g, *slots) in zip(_trained_names(params), rows):
            group = self.of(name)
            if id(group) not in known:
                own = rate
                if group.lr is not self.lr:
                    own = self.rate(group.lr, state["step"])
                    own = own if lr is None else lr * (own / self.rate(self.lr, state["step"]))
                known[id(group)] = own, group.scalars(t)
            after = group.moved(p, g, *known[id(group)], *slots)
            moved.append(tuple(_like(new, old) for new, old in zip(after, (p, *slots))))
        new, *slots_of = trees_of(structure, moved, 1 + len(self.slots))
        return with_trained(params, new), {"step": t, **dict(zip(self.slots, slots_of))}

    def of(self, name: str) -> Optimizer:
        """Find the settings of a parameter.

        Args:
            name: Name of the parameter, such as "layers.0.weight".

        Returns:
            The first group whose predicate holds for the name, as an optimizer; else the optimizer itself.
        """
        return next((other for chosen, other in self.groups if chosen(name)), self)

    @staticmethod
    def rate(lr: Any, step: Tensor) -> Any:
        """Evaluate a learning rate.

        Args:
            lr: A number, a tensor, or a schedule.
            step: Number of updates already made.

        Returns:
            The schedule at that step, or `lr` itself.
        """
        return lr(step) if callable(lr) else lr


def _like(new: Tensor, old: Tensor) -> Tensor:
    """`new` in the element type of `old`: a number beside an array takes its type, beside another number its own."""
    return new if new.dtype is old.dtype else E.cast_to(new, old.dtype)


def leaves_of(params: Any, **trees: Any) -> tuple[tree.TreeDef, list[tuple[Tensor, ...]]]:
    """The structure of the trained part, and one tuple of corresponding leaves for each parameter."""
    first, structure = tree.flatten(tree.trained_part(params))
    rows = [first]
    for name, t in trees.items():
        try:
            rows.append(tree.matching_leaves(structure, t))
        except UserTypeError as error:
            error.message = f"{name} is not a tree like the parameters, {error.message}"
            raise
    return structure, list(zip(*rows))


def trees_of(structure: tree.TreeDef, rows: Sequence[tuple[Any, ...]], count: int) -> list[Any]:
    """`count` trees from one tuple of leaves for each parameter."""
    return [structure.unflatten([row[i] for row in rows]) for i in range(count)]


def with_trained(params: Any, new: Any) -> Any:
    """`params` with the leaves of `new` in place of those that are trained."""
    leaves, structure = tree.flatten(params)
    moved = iter(tree.leaves(new))
    return structure.unflatten([_marked_as(x, next(moved)) if trained else x
                                for x, trained in zip(leaves, tree.trained(params))])


def _marked_as(old: Any, new: Any) -> Any:
    """`new`, as a parameter if `old` is one."""
    if type(old) is Tensor and type(new) is Tensor and old.frozen is not None:
        mark_parameter(new, not old.frozen)
    return new


def _check_distinct(names: Sequence[str], leaves: Sequence[Any]) -> None:
    """UserError if a tensor is two parameters, since their separate updates would diverge."""
    first: dict[int, str] = {}
    for name, p in zip(names, leaves):
        other = first.setdefault(id(p), name)
        if other != name and isinstance(p, Tensor):
            raise UserError(f"{other} and {name} are one tensor, but would be trained apart", code="MLC0378",
                            loc=user_loc(), hint="put both into one mlc.nn.Module, in which layers may share a tensor; "
                                                 "or give each its own: mlc.tensor(x)")


def _trained_names(params: Any) -> list[str]:
    return [name for name, trained in zip(tree.names(params), tree.trained(params)) if trained]


coded_methods(Optimizer, ("__init__", "init", "update"))
Optimizer.__init__ = taking_parameters(Optimizer.__init__)  # type: ignore[method-assign]
