"""What optimisers share: settings, groups of parameters, and one rule per parameter applied over trees."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Self

from mlc.frontend import absent, tree
from mlc.frontend.arguments import coded_methods, described
from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import call
from mlc.frontend.trace import state as recording
from mlc.ir.diag import UserError, UserTypeError

Schedule = Callable[[Any], Any]
"""The learning rate of a step: a function of the number of steps already made, which may be a tensor."""
Rate = float | Tensor | Schedule
Group = tuple[Callable[[str], bool], dict[str, Any]]
"""Which parameters, by name, and the settings that are different for them."""


class Optimizer:
    """`init` makes the state of parameters, `update` moves them by their gradients.

    The state is a dict: "step" counts the updates, each other entry is a tree like the parameters. Buffers and frozen
    parameters of modules have neither gradients nor state, and stay as they are.

    groups   pairs (predicate on a parameter's name, settings that are different for it); the first that fits counts:
             AdamW(groups=[(lambda name: name.endswith("bias"), {"weight_decay": 0.0})])
    """

    slots: tuple[str, ...] = ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        coded_methods(cls, ("__init__",))

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        if args and not (callable(args[0]) or isinstance(args[0], int | float | Tensor)):
            raise UserTypeError(f"{cls.__name__} takes a learning rate, found {type(args[0]).__name__}", code="MLC0383",
                                loc=user_loc(), hint="parameters are given to init and update: "
                                                     f"opt = {cls.__name__}(...); state = opt.init(model)")
        return super().__new__(cls)

    def __init__(self, lr: Rate, groups: Sequence[Group] = ()) -> None:
        if isinstance(lr, int | float):
            self.check("lr", lr)
        self.lr = lr
        self.groups: list[tuple[Callable[[str], bool], Optimizer]] = []
        for chosen, settings in groups:
            if unknown := sorted(set(settings) - set(vars(self)) | set(settings) & {"groups"}):
                raise UserError(f"{type(self).__name__} has no setting {', '.join(unknown)}", code="MLC0383",
                                loc=user_loc(), hint="it has " + ", ".join(n for n in vars(self) if n != "groups"))
            other = copy.copy(self)
            vars(other).update(settings)
            other.validate()
            self.groups.append((chosen, other))
        self.validate()

    def __getattr__(self, name: str) -> Any:
        raise absent.error(type(self).__name__, name, absent.OPTIMIZER.get(name), self)

    @staticmethod
    def check(name: str, value: Any, below: float = float("inf")) -> None:
        if not 0 <= value < below:
            raise UserError(f"{name} = {value} is not in [0, {below})", code="MLC0383", loc=user_loc())

    def same_slots(self, setting: str, slot: str, wanted: bool) -> None:
        """UserError if a group needs other slots than the optimiser has: each slot is one tree for all parameters."""
        if wanted != (slot in self.slots):
            raise UserError(f"a group has another {setting} than the optimiser: that decides what the state is",
                            code="MLC0383", loc=user_loc(), hint="use two optimisers, or give both the same")

    def validate(self) -> None:
        """UserError if a setting makes no sense."""

    def fresh(self, p: Tensor) -> tuple[Tensor, ...]:
        """What the slots of a parameter hold before the first update."""
        return tuple(create.zeros_like(p) for _ in self.slots)

    def scalars(self, t: Tensor) -> tuple[Any, ...]:
        """What the rule needs of the number of this update, counted from 1: the same for all parameters."""
        return ()

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        """(the parameter, its slots) after an update."""
        raise NotImplementedError

    def moved(self, *args: Any) -> tuple[Tensor, ...]:
        """`rule`; within a recorded function a call, so that parameters of one shape share the code."""
        return self.rule(*args) if recording.trace is None else call(type(self).__name__, self.rule, *args)

    def init(self, params: Any) -> dict[str, Any]:
        """The state before the first update; each tensor has memory of its own."""
        leaves, structure = tree.flatten(tree.trained_part(params))
        names = _trained_names(params)
        _check_distinct(names, leaves)
        own = [self.of(name).fresh(p) for name, p in zip(names, leaves)]
        return {"step": create.zeros(dtype="int64"), **dict(zip(self.slots, trees_of(structure, own, len(self.slots))))}

    def update(self, grads: Any, state: dict[str, Any], params: Any, lr: Operand = None) -> tuple[Any, dict[str, Any]]:
        """(new parameters, new state). `lr` stands in for the optimiser's own; groups that have one of their own keep
        their ratio to it."""
        if not isinstance(state, dict):
            raise UserTypeError(f"state is {described(state)}, expected a dict", code="MLC0421", loc=user_loc(),
                                hint="pass what init or the last update returned")
        if missing := [slot for slot in ("step", *self.slots) if slot not in state]:
            raise UserError(f"the state has no {missing[0]!r}, so that it is not one of {type(self).__name__}",
                            code="MLC0377", loc=user_loc(), hint="pass what init or the last update returned")
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
        """The settings for the parameter of this name."""
        return next((other for chosen, other in self.groups if chosen(name)), self)

    @staticmethod
    def rate(lr: Any, step: Tensor) -> Any:
        return lr(step) if callable(lr) else lr


def _like(new: Tensor, old: Tensor) -> Tensor:
    """`new` in the element type of `old`: a number beside an array takes its type, beside another number its own."""
    return new if new.dtype is old.dtype else E.cast_to(new, old.dtype)


def leaves_of(params: Any, **trees: Any) -> tuple[tree.Structure, list[tuple[Tensor, ...]]]:
    """The structure of what is trained, and the leaves that belong together, one tuple for each parameter."""
    first, structure = tree.flatten(tree.trained_part(params))
    rows = [first]
    for name, t in trees.items():
        try:
            rows.append(tree.matching_leaves(structure, t))
        except UserTypeError as error:
            error.message = f"{name} is not a tree like the parameters, {error.message}"
            raise
    return structure, list(zip(*rows))


def trees_of(structure: tree.Structure, rows: Sequence[tuple[Any, ...]], count: int) -> list[Any]:
    """`count` trees from one tuple of leaves for each parameter."""
    return [structure.unflatten([row[i] for row in rows]) for i in range(count)]


def with_trained(params: Any, new: Any) -> Any:
    """`params` with the leaves of `new` in place of those that are trained."""
    leaves, structure = tree.flatten(params)
    moved = iter(tree.leaves(new))
    return structure.unflatten([next(moved) if trained else x for x, trained in zip(leaves, tree.trained(params))])


def _check_distinct(names: Sequence[str], leaves: Sequence[Any]) -> None:
    """UserError if a tensor is two parameters: they would have gradients and updates of their own, and part."""
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
