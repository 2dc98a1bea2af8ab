"""Functions of the constants of a function, and the function without them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from mlc.dialects import func
from mlc.dialects.func import COLD, CONSTANTS, UPDATES, Func
from mlc.ir.abi import COMPLEX_ARGS, SOURCES
from mlc.ir.core import Op, Symbol, Value, at_end, before
from mlc.passes.analysis.constant_values import ConstantValues, is_view_of_argument


def outline(function: Func, values: ConstantValues) -> None:
    """Outline the constants that a function needs, if there are any."""
    known = values.of(function)
    needed = [r for op in function.block for r in op.results if r in known and any(
        not _is_known(user, known) for user in r.users) and not is_view_of_argument(r, values.arguments[function])]
    if not needed:
        return
    constants, takes = _computing(function, needed)
    values.add_pure(constants)
    taken = [function.args.index(v) for v in takes]
    for v in needed:
        argument = function.block.add_arg(v.type, v.name)
        for user, i in list(v.uses):
            if not _is_known(user, known):
                user.set_operand(i, argument)
    for op in reversed(list(function.block)):
        if not op.terminator and not any(r.uses for r in op.results) and _is_known(op, known):
            op.erase()
    (_split_entry if function.is_public else _extend_calls)(function, constants, taken)


def _is_known(op: Op, known: set[Value]) -> bool:
    return bool(op.results) and known.issuperset(op.results)


def _computing(function: Func, needed: Sequence[Value]) -> tuple[Func, list[Value]]:
    """The function that computes values of the constant arguments of a function, and these."""
    ops, work = set[Op](), [v.op for v in needed]
    while work:
        op = work.pop()
        if op is not None and op not in ops:
            ops.add(op)
            work += [v.op for v in op.operands]
    takes = [a for a in function.args if any(user in ops for user in a.users)]
    name = _unused(f"{function.sym_name}_constants", function)
    made = func.function(name, [v.type for v in takes], [v.name for v in takes], private=not function.is_public)
    made.loc = function.loc
    made.attrs[COLD] = True
    mapping: dict[Value, Value] = dict(zip(takes, made.args))
    with at_end(made.block, function.loc):
        for op in function.block:
            if op in ops:
                made.block.insert(op.clone(mapping))
        func.Return(tuple(mapping[v] for v in needed))
    made.update_type()
    assert function.parent is not None
    function.parent.insert(made, function)
    return made, takes


def _unused(name: str, beside: Func) -> str:
    """A name like this one that no function has yet."""
    assert beside.parent is not None
    taken = {op.sym_name for op in beside.parent if isinstance(op, Func)}
    return next(found for number in itertools.count() if (found := f"{name}_{number}" if number else name) not in taken)


def _extend_calls(function: Func, constants: Func, taken: Sequence[int]) -> None:
    """Have each call of a private function, which takes its constants last, pass what they are there."""
    function.update_type()
    assert function.parent is not None and function.parent.parent_op is not None
    for call in list(function.parent.parent_op.inside(func.Call)):
        if call.callee == function.sym_name:
            caller = call.enclosing(Func)
            with before(caller.block.ancestor_of(call), call.loc):
                found = func.call(constants, [call.args[i] for i in taken])
            with before(call, call.loc):
                call.replace_by(*func.call(function, [*call.args, *found]))


def _split_entry(function: Func, constants: Func, taken: Sequence[int]) -> None:
    """Have a public function, which takes its constants last, be called by one that has its name and computes them."""
    attrs, name, count = dict(function.attrs), function.sym_name, len(constants.function_type.results)
    own = len(function.args) - count
    entry = func.function(name, [a.type for a in function.args[:own]], [a.name for a in function.args[:own]])
    entry.attrs.update({n: x for n, x in attrs.items() if n not in (CONSTANTS, "function_type")})
    entry.loc = function.loc
    kept = [i for i in range(own) if i not in attrs[CONSTANTS] or function.args[i].uses]
    order = [i for i in kept if i not in attrs[CONSTANTS]] + [i for i in kept if i in attrs[CONSTANTS]]
    assert function.parent is not None
    function.parent.insert(entry, function)
    function.sym_name = Symbol(_unused(f"{name}_with_constants", function))
    del function.attrs[CONSTANTS]
    for attribute in ("donate", UPDATES):                  # its caller has the arguments that it may overwrite
        function.attrs.pop(attribute, None)
    _reorder(function, [*order, *range(own, own + count)])
    for f, sources in ((constants, list(taken)), (function, [*order, *(-1 - j for j in range(count))])):
        if "arg_names" in attrs:
            names = dict(enumerate(attrs["arg_names"]))
            f.attrs["arg_names"] = tuple(names.get(i, "") for i in sources)
        if COMPLEX_ARGS in attrs:
            f.attrs[COMPLEX_ARGS] = tuple(n for n, i in enumerate(sources) if i in attrs[COMPLEX_ARGS])
        f.attrs[SOURCES] = tuple(sources)
    with at_end(entry.block, function.loc):
        found = func.call(constants, [entry.args[i] for i in taken])
        func.Return(tuple(func.call(function, [*(entry.args[i] for i in order), *found])))
    entry.update_type()


def _reorder(function: Func, order: Sequence[int]) -> None:
    """Keep the arguments of a function that are named, in this order."""
    args = list(function.args)
    fresh = [function.block.add_arg(args[i].type, args[i].name) for i in order]
    for i, argument in zip(order, fresh):
        args[i].replace_by(argument)
    function.block.erase_args(set(range(len(args))))
    function.update_type()
