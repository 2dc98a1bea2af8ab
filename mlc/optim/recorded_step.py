"""`step` of an optimizer that holds parameters, within a function that is recorded.

Parameters and slots are tensors that the function reaches and changes in place; the learning rate, and other settings
that may change, are inputs of it. The number of updates is a tensor then, too, which parameters share that have been
updated as often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mlc.frontend.captures import Captures
from mlc.frontend.functions import create
from mlc.frontend.location import user_loc
from mlc.frontend.operands import tracer
from mlc.frontend.refusals import refusal
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import current, suspended
from mlc.ir.diag import UserError

if TYPE_CHECKING:
    from mlc.optim.optimizer import Optimizer


def captures_in_progress(what: str, once: bool = False) -> Captures:
    """The captures of the function that is being recorded; UserError if it may not change what it reaches, or if it
    does so `once` and is in a loop or branch."""
    captures = current().root.captures
    if captures is None:
        raise refusal(f"{what} is called in a function that is recorded by itself, as by mlc.grad", code="MLC0723",
                      loc=user_loc(), hint="call it in the function that is compiled itself, or use optimizer.update")
    if once and current().in_region:
        raise refusal(f"{what} is called in a loop or branch that depends on a tensor", code="MLC0723", loc=user_loc(),
                      hint="call it outside of the loop or branch, in the function that is compiled")
    return captures


def record_step(optimizer: Any, group: dict[str, Any], rule: Optimizer) -> None:
    """Record an update of the parameters of a group that have a gradient.

    rule  the optimizer under the settings of the group
    """
    captures = captures_in_progress("step")
    params = [p for p in group["params"] if p.grad is not None]
    if not params:
        return
    with suspended():
        _prepare(optimizer.state, params, rule)
    captures.made += [optimizer.state, *(optimizer.state[p] for p in params)]
    numbers = {name: _number(captures, group, name, rule) for name in optimizer._settings()
               if name != "lr" and name in rule.dynamic_settings and rule.enabled(group[name])}
    together: dict[int, list[Tensor]] = {}
    for p in params:
        together.setdefault(id(optimizer.state[p]["step"]), []).append(p)
    for chosen in together.values():
        _update(optimizer.state, chosen, group, rule.with_settings(numbers), captures)


def _update(state: dict[Tensor, dict[str, Any]], params: Sequence[Tensor], group: dict[str, Any], rule: Optimizer,
            captures: Captures) -> None:
    """Record an update of parameters that have been updated as often."""
    own = [state[p] for p in params]
    count = own[0]["step"]
    every = [held if len(rule.slots_of(p)) == len(rule.slots) else {**dict(zip(rule.slots, rule.fresh(p))), **held}
             for p, held in zip(params, own)]
    before = {"step": count, **{name: [x[name] for x in every] for name in rule.slots}}
    lr = group["lr"](count) if callable(group["lr"]) else _number(captures, group, "lr", rule)
    new, after = rule.update([p.grad for p in params], before, list(map(tracer, params)), lr)
    for i, (p, moved) in enumerate(zip(params, new)):
        p.copy_(moved)
        for name in rule.slots_of(p):
            own[i][name].copy_(after[name][i])
    count.copy_(after["step"])


def _number(captures: Captures, group: dict[str, Any], name: str, rule: Optimizer) -> Any:
    """A setting of a group as an input, which may be another one in each call."""
    x = group[name]
    if isinstance(x, Tensor):
        return x
    if isinstance(x, list | tuple):
        return tuple(captures.number(group, name, _check_of(name, False), i) for i in range(len(x)))
    return captures.number(group, name, _check_of(name, len(rule.slots) > len(rule.with_settings({name: 0}).slots)))


def _check_of(name: str, has_slots: bool) -> Callable[[Any], None]:
    """A function that refuses values of a setting that the step was not recorded for: what is no setting, or 0 of one
    that has slots of its own."""
    def check(x: Any) -> None:
        if not hasattr(type(x), "__float__") or not 0 <= float(x) < math.inf:
            raise UserError(f"{name} = {x!r} is not in [0, inf)", code="MLC0383", loc=user_loc())
        if has_slots and not x:
            raise UserError(f"{name} is 0, and was not when the step was recorded", code="MLC0383", loc=user_loc(),
                            hint="compile the function again: without it, the optimizer has other state")

    return check


def advance(state: dict[Tensor, dict[str, Any]], params: Sequence[Tensor], count: int) -> None:
    """Set the number of updates of parameters that have been updated as often, outside of a recording."""
    shared = state[params[0]]["step"]
    if isinstance(shared, Tensor) and _hold_alone(state, params, shared):
        shared.fill_(count)
        return
    for p in params:
        state[p]["step"] = count


def _hold_alone(state: dict[Tensor, dict[str, Any]], params: Sequence[Tensor], shared: Tensor) -> bool:
    """Whether these parameters, and no others, have a tensor as the number of their updates."""
    return {id(p) for p in params} == {id(p) for p, held in state.items() if held["step"] is shared}


def _prepare(state: dict[Tensor, dict[str, Any]], params: Sequence[Tensor], rule: Optimizer) -> None:
    """Give parameters a state, with a tensor for the number of updates that no others have."""
    counts: dict[int, list[Tensor]] = {}
    for p in params:
        held = state.setdefault(p, {"step": 0})
        wanted = rule.slots_of(p)
        if any(held.get(name) is None for name in wanted):
            fresh = dict(zip(rule.slots, rule.fresh(p)))
            held.update({name: fresh[name].to_device(p.device) for name in wanted if held.get(name) is None})
        counts.setdefault(int(held["step"]), []).append(p)
    for count, together in counts.items():
        shared = state[together[0]]["step"]
        if not isinstance(shared, Tensor) or not _hold_alone(state, together, shared):
            shared = create.tensor(count).to_device(together[0].device)
            for p in together:
                state[p]["step"] = shared
