"""Statements without blocks: assignments, declared values and assertions; and what stands where it may not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.language import syntax as S
from mlc.frontend.language.declared import Misfit, fit
from mlc.frontend.language.expressions import bind, evaluate, known, names_in
from mlc.frontend.language.operators import binary
from mlc.frontend.language.values import POISON, Environment, Span, Zipped, is_poisoned, session, shown


def assign(node: S.Assigned, env: Environment) -> None:
    """target = value, or with an operator, as +="""
    value = evaluate(node.value, env)
    if node.operator:
        before = evaluate(node.target, env)
        value = binary(node.operator, before, value, node.at, env)
    in_a_loop_only(value, node.value.at, env)
    give(node.target, value, env)


def give(target: S.Node, value: Any, env: Environment) -> None:
    """Assign a value to names; the buffers among them keep theirs in the model, where its other functions see it."""
    buffers = _buffers_among(names_in(target), target.at, env)
    bind(target, value, env)
    _keep(buffers, env)


def _buffers_among(names: Sequence[str], at: int, env: Environment) -> list[str]:
    """The names that stand for buffers; UserError if one is a parameter or layer."""
    members = [n for n in names if n not in env.names and env.owner is not None and n in env.owner.member_names()]
    for name in members:
        if not is_buffer(name, env):
            raise env.error(at, "MLC0640", f"{name} is a parameter or layer of the model, which a function does not "
                            "change", "choose another name, or declare it as buffer")
    return members


def _keep(buffers: Sequence[str], env: Environment) -> None:
    for name in buffers:
        if not is_poisoned(env.names[name]):
            setattr(env.owner, name, env.names.pop(name))


def is_buffer(name: str, env: Environment) -> bool:
    """Whether a name stands for a buffer of the function's model, which no parameter or loop hides."""
    return name not in env.names and env.owner is not None and name in env.owner._buffers


def in_a_loop_only(value: Any, at: int, env: Environment) -> None:
    """UserError for a range or zip, which only a loop goes through, as a value or in a tuple or list."""
    if isinstance(value, Span | Zipped):
        raise env.error(at, "MLC0632", f"{shown(value)} stands alone", "write it after `in` of a for, or arange(last)")
    if isinstance(value, tuple | list):
        for part in value:
            in_a_loop_only(part, at, env)


def declare(node: S.Declared, env: Environment) -> None:
    """name: type = value"""
    if node.buffer or node.distribution is not None or node.value is None:
        raise env.error(node.at, "MLC0640", f"{node.name} is declared as of a model, in a function",
                          "write name: type = value here, and parameters in the model above its functions")
    buffers = _buffers_among([node.name], node.at, env)
    value = evaluate(node.value, env)
    try:
        env.names[node.name] = value = fit(node.type, value, env, node.name)
    except Misfit as misfit:
        raise env.error(node.at, "MLC0626", misfit.message, misfit.hint) from None
    if session.watch is not None:
        session.watch(node, value)
    _keep(buffers, env)


def unused(node: S.Evaluated, env: Environment) -> None:
    value = evaluate(node.value, env)
    if value is not POISON:
        raise env.error(node.at, "MLC0636", "nothing is done with this value",
                          "return it, or give it a name")


def hold(node: S.Asserted, env: Environment) -> None:
    """`assert`, on compile-time constants."""
    value = known(node.condition, env, "the condition of assert")
    if value is POISON:
        return
    if not isinstance(value, bool):
        raise env.error(node.condition.at, "MLC0634", f"{shown(value)} is neither true nor false", "compare sizes")
    if not value:
        raise env.error(node.at, "MLC0641", node.message or "the assertion does not hold",
                          "call it with other sizes or numbers")


def misplaced_yield(node: S.Yielded, env: Environment) -> None:
    raise env.error(node.at, "MLC0642", "yield stands outside of a loop whose values are collected",
                      "write it last in the block of results = for x in xs:")


def misplaced(node: S.Node, env: Environment) -> None:
    what = {S.Function: "a function", S.Model: "a model", S.Import: "an import"}[type(node)]
    raise env.error(node.at, "MLC0643", f"{what} is defined within a function",
                      "define it in the file" if not isinstance(node, S.Function) else
                      "define it in the file, or write name = x => value")
