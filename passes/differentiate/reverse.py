"""differentiate, reverse: reverse mode, which derives a forward and a backward function from a function.

    forward(primals)              -> results, saved values
    backward(cotangents, saved)   -> cotangents of the primals `wrt`

Operations are visited in reverse order. The `vjp` of an operation maps cotangents of its results to those of its
operands; a call becomes calls of the callee's forward and backward functions. The result is ordinary IR, so the same
transformation applied to its output gives higher-order derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from mlc.dialects import func, tensor
from mlc.dialects.autodiff.attributes import CUSTOM_JVP, RECOMPUTE, is_custom
from mlc.dialects.autodiff.backward import Backward
from mlc.dialects.autodiff.operations import Derivative
from mlc.dialects.builtin import Module
from mlc.dialects.func import WRITTEN_AT, Func
from mlc.dialects.tensor.bounded import first_of, named, to_bounds
from mlc.dialects.tensor.control import bounds_in
from mlc.ir import sizes
from mlc.ir.core import Block, Op, Value, after, at_end, before, located
from mlc.ir.diag import IRError, Loc, UserError
from mlc.ir.types import TensorType, Type
from mlc.passes.differentiate import bodies, custom, reverse_control
from mlc.passes.differentiate.activity import PASS_NAME, Activity, VjpFunctions, VjpRequest, backwards
from mlc.passes.differentiate.reverse_control import full, plus


# -- forward and backward functions -----------------------------------------------------------------------------------
def vjp_functions(module: Module, request: VjpRequest, memo: dict[VjpRequest, VjpFunctions],
                  asked: Loc) -> VjpFunctions:
    """The forward and backward functions for `request`, memoised in `memo`; those of callees are built first."""
    bodies.outline(module, request.callee)
    order = {f.sym_name: n for n, f in enumerate(func.callees_first(module))}
    table: dict[str, Func] = {f.sym_name: f for f in func.functions(module)}
    requests: dict[VjpRequest, None] = {}
    work = [request]
    while work:
        current = work.pop()
        if current in requests or current in memo:
            continue
        requests[current] = None
        function = table[current.callee]
        _differentiable(function, asked)
        if is_custom(function):
            if CUSTOM_JVP in function.attrs:
                work.append(custom.linear_request(function, table))
            continue
        for op, nested in _requests([*function.block], Activity.of_function(function, current), table):
            if isinstance(op, func.Call) and order[nested.callee] >= order[current.callee]:
                raise UserError(f"@{nested.callee} calls itself through this call: a recursive function has no "
                                "derivative", code="MLC0132", loc=op.loc, notes=(_asked(asked),))
            work.append(nested)
    for current in sorted(requests, key=lambda r: order[r.callee]):
        function = table[current.callee]
        memo[current] = _vjp_functions(function, current, memo, asked, table)
    return memo[request]


def _requests(ops: Sequence[Op], activity: Activity, table: Mapping[str, Func]) -> Iterator[tuple[Op, VjpRequest]]:
    """The calls, loops and conditionals among operations, each with the requests for the functions that it calls."""
    for op in ops:
        if isinstance(op, func.Call) and (nested := activity.request(op)) is not None:
            if nested.callee not in table:
                op.fail(f"@{nested.callee} is not defined", code="MLC0106")
            yield op, nested
        elif activity.concerns(op):
            yield from ((op, nested) for nested in reverse_control.requests(op, activity, table))


def _differentiable(function: Func, asked: Loc) -> None:
    if len(function.body.blocks) != 1:
        raise UserError(f"@{function.sym_name} has branches between blocks, which have no derivative", code="MLC0132",
                        loc=function.loc, notes=(_asked(asked),))
    for op in function.inside(Derivative):
        raise UserError(f"{op.name} @{op.callee} is part of a cycle of calls: a recursive function has no "
                        "derivative", code="MLC0132", loc=op.loc, notes=(_asked(asked),))


def _asked(loc: Loc) -> str:
    return f"the derivative is requested at {loc}"


def _vjp_functions(function: Func, request: VjpRequest, memo: dict[VjpRequest, VjpFunctions], asked: Loc,
            table: Mapping[str, Func]) -> VjpFunctions:
    """Build the forward and backward functions of one function, whose callees have theirs."""
    name = function.sym_name
    forward = function.clone()
    assert isinstance(forward, Func)
    for key in [k for k in forward.attrs if k not in ("sym_name", "function_type", "sym_visibility", WRITTEN_AT)]:
        del forward.attrs[key]                   # such as `donate`, which applies to the entry function only
    backward = func.function("", [forward.function_type.results[j] for j in request.of], private=True)
    backward.loc = function.loc.through(PASS_NAME)
    if WRITTEN_AT in function.attrs:
        backward.attrs[WRITTEN_AT] = function.attrs[WRITTEN_AT]
    if is_custom(function):
        _by_rule(function, forward, backward, request, table, memo)
    else:
        activity = _without_composites(lambda: ([*forward.block], Activity.of_function(forward, request)))
        rules = _call_forward_functions([*forward.block], activity, memo, table, function)
        _reverse(forward, backward, request, activity, rules, asked)
    _remove_unused(backward.block)
    captured = _rematerialise(forward, backward)
    saved = _capture(forward, backward, captured)
    module = function.parent
    assert module is not None
    for each, suffix in ((forward, "forward"), (backward, "backward")):
        each.sym_visibility = "private"
        each.sym_name = func.free_symbol(module, f"{name}_{suffix}")
        each.update_type()
        module.insert(each, function.next)
    pair = VjpFunctions(request, forward, backward, saved)
    return _recomputing(function, pair) if function.attrs.get(RECOMPUTE) else pair


def _by_rule(function: Func, forward: Func, backward: Func, request: VjpRequest, table: Mapping[str, Func],
             memo: Mapping[VjpRequest, VjpFunctions]) -> None:
    """Fill the forward and backward functions from a custom rule. Values that it captures are constants."""
    for op in backwards(forward.block):
        op.erase()
    with at_end(forward.block, function.loc.through(PASS_NAME)):
        results, kept = custom.forward(function, forward.args, table, memo)
        func.Return(tuple(results))
    with at_end(backward.block, function.loc.through(PASS_NAME)):
        cotangents = dict(zip(request.of, backward.args))
        grads = custom.backward(function, kept, cotangents, results, table, memo)
        func.Return(tuple(grads[i] if i in grads else full(0.0, forward.args[i].type) for i in request.wrt))


def _recomputing(function: Func, pair: VjpFunctions) -> VjpFunctions:
    """The pair for a rematerialised function: only its arguments are saved, and backward recomputes the rest."""
    inputs = [*(function.function_type.results[j] for j in pair.request.of), *function.function_type.inputs]
    out = func.function("", inputs, private=True)
    out.loc = function.loc.through(PASS_NAME)
    out.attrs[RECOMPUTE] = True
    count = len(pair.request.of)
    cotangents, primals = out.args[:count], out.args[count:]
    with at_end(out.block, out.loc):
        results = func.call(pair.forward, primals)
        func.Return(tuple(pair.call_backward(primals, results, cotangents)))
    module = function.parent
    assert module is not None
    out.sym_name = func.free_symbol(module, f"{function.sym_name}_recompute")
    out.update_type()
    module.insert(out, pair.backward.next)
    return VjpFunctions(pair.request, function, out, tuple(range(len(function.args))))


def has_vjp(op: Op) -> bool:
    """Whether the class of `op` defines a `vjp`."""
    return type(op).vjp is not Op.vjp


def _without_composites(analyzed: Callable[[], tuple[Sequence[Op], Activity]]) -> Activity:
    """Decompose the active composites without a `vjp` among the operations that `analyzed` gives, with their activity;
    returns the activity of the result."""
    while True:
        ops, activity = analyzed()
        composites = [op for op in ops if activity.concerns(op) and not has_vjp(op) and hasattr(op, "decompose")]
        if not composites:
            return activity
        for op in composites:
            with before(op, op.loc.through(PASS_NAME)):
                value = op.decompose()
            op.replace_by(*((value,) if isinstance(value, Value) else value))


Rule = Callable[..., Iterable[tuple[Value, Value | None]]]
"""Maps cotangents of the results to pairs (value, contribution to its cotangent); None stands for zero."""


def _call_forward_functions(ops: Sequence[Op], activity: Activity, memo: Mapping[VjpRequest, VjpFunctions],
                            table: Mapping[str, Func], function: Func) -> dict[Op, Rule]:
    """Replace active calls, loops and conditionals by ones that save the residuals; returns the rule of each."""
    rules: dict[Op, Rule] = {}
    for op in ops:
        if isinstance(op, func.Call):
            if (request := activity.request(op)) is not None:
                pair = memo[request]
                with before(op, op.loc.through(PASS_NAME)):
                    results = func.call(pair.forward, op.args)
                made_op = results[0].op
                assert made_op is not None
                rule = _call_rule(made_op, pair)
            else:
                continue
        elif bodies.is_control(op) and activity.concerns(op):
            with before(op, op.loc.through(PASS_NAME)):
                results, rule = reverse_control.forward(op, activity, memo, table, function)
            made_op = results[0].op
            assert made_op is not None
        else:
            continue
        activity.replaced(op.results, results)
        op.replace_by(*results[: len(op.results)])
        rules[made_op] = rule
    return rules


def _call_rule(call: Op, pair: VjpFunctions) -> Rule:
    def rule(*cotangents: Value | None) -> list[tuple[Value, Value | None]]:
        dense = [_given(cotangents[j], call.results[j].type) for j in pair.request.of]
        grads = pair.call_backward(call.operands, call.results, dense)
        # what is zero needs no backward of what computed the operand, such as running statistics of an earlier batch
        return [(call.operands[i], None if _is_zero(returned) else ct)
                for i, ct, returned in zip(pair.request.wrt, grads, pair.backward.block.terminator.operands)]
    return rule


def _is_zero(value: Value) -> bool:
    """Whether a cotangent is that of what nothing depends on."""
    return isinstance(value.op, tensor.Full) and value.op.value == 0


def _given(cotangent: Value | None, type: Type) -> Value:
    return cotangent if cotangent is not None else full(0.0, type)



def _reverse(forward: Func, backward: Func, request: VjpRequest, activity: Activity, rules: dict[Op, Rule],
             asked: Loc) -> None:
    """Fill `backward` by visiting `forward` in reverse. It still refers to values of `forward`."""
    with at_end(backward.block):
        returned = forward.block.terminator
        with located(returned.loc.through(PASS_NAME)):
            cotangents = _seeded(zip((returned.operands[j] for j in request.of), backward.args))
        _pull(backwards(forward.block), activity, rules, cotangents, asked)
        with located(backward.loc):
            func.Return(tuple(_given(cotangents.get(forward.args[i]), forward.args[i].type) for i in request.wrt))


def _seeded(pairs: Iterable[tuple[Value, Value]]) -> dict[Value, Value]:
    """The cotangents of values, from pairs of a value and a part of its cotangent."""
    cotangents: dict[Value, Value] = {}
    for value, ct in pairs:
        _add(cotangents, value, ct)
    return cotangents


def _add(cotangents: dict[Value, Value], value: Value, ct: Value) -> None:
    """Add a part of the cotangent of a value."""
    cotangents[value] = plus(cotangents[value], ct) if value in cotangents else ct


def _pull(reversed_ops: Iterable[Op], activity: Activity, rules: Mapping[Op, Rule], cotangents: dict[Value, Value],
          asked: Loc) -> None:
    """Go through operations in reverse order, and add to the cotangents of what they read."""
    for op in reversed_ops:
        result_cts = [cotangents.get(r) for r in op.results]
        if all(ct is None for ct in result_cts) or not any(r in activity.active for r in op.results):
            continue
        with located(op.loc.through(PASS_NAME)):
            for value, ct in _apply(op, rules.get(op), result_cts, asked):
                if ct is not None and value in activity.active:
                    _fits(op, value, ct)
                    _add(cotangents, value, ct)


# -- backward within a block -------------------------------------------------------------------------------------------
def expand_backward(op: Backward, function: Func, module: Module, memo: dict[VjpRequest, VjpFunctions]) -> None:
    """Replace a `backward` by the operations that compute it, in its place; calls, loops and conditionals that lead to
    it save what these need."""
    bodies.outline(module, function.sym_name)
    table: dict[str, Func] = {f.sym_name: f for f in func.functions(module)}

    def analyzed() -> tuple[list[Op], Activity]:
        ops = op.leading()
        return ops, Activity(ops, op.wrt, op.of)

    activity = _without_composites(analyzed)
    ops = op.leading()
    for _, nested in _requests(ops, activity, table):
        vjp_functions(module, nested, memo, op.loc)
    table = {f.sym_name: f for f in func.functions(module)}
    rules = _call_forward_functions(ops, activity, memo, table, function)
    with before(op, op.loc.through(PASS_NAME)):
        cotangents = _seeded(zip(op.of, op.cotangents))
        _pull(reversed(op.leading()), activity, rules, cotangents, op.loc)
        found = [_given(cotangents.get(v), v.type) for v in op.wrt]
    op.replace_by(*found)


def _apply(op: Op, rule: Rule | None, cotangents: Sequence[Value | None],
           asked: Loc) -> Iterable[tuple[Value, Value | None]]:
    """The values that one operation reads, each with the contribution to its cotangent."""
    if rule is not None:
        return rule(*cotangents)
    if not has_vjp(op):
        raise UserError(f"{op.name} has no derivative", code="MLC0130", loc=op.loc, notes=(_asked(asked),),
                        hint="pass its operand through stop_gradient, x.detach(), to treat it as a constant")
    return zip(op.operands, op.vjp(*(_given(ct, r.type) for ct, r in zip(cotangents, op.results))))


def _fits(op: Op, value: Value, cotangent: Value) -> None:
    if cotangent.type != value.type:
        raise IRError(f"the vjp of {op.name} gives {cotangent.type} for an operand of type {value.type}",
                      code="MLC0133", loc=op.loc)


def _remove_unused(block: Block) -> None:
    for op in backwards(block):
        if op.pure and not op.terminator and not any(r.uses for r in op.results):
            op.erase()


def _captures(block: Block) -> dict[Value, list[tuple[Op, int]]]:
    """The values used in `block` and defined outside of it, with their uses in it."""
    own: set[Value] = set(block.args)
    out: dict[Value, list[tuple[Op, int]]] = {}
    for top in block:
        for op in top.walk():
            for i, value in enumerate(op.operands):
                if value not in own:
                    out.setdefault(value, []).append((op, i))
            own.update(op.results)
            own.update(a for region in op.regions for b in region.blocks for a in b.args)
    return out


def _rematerialise(forward: Func, backward: Func) -> dict[Value, list[tuple[Op, int]]]:
    """Rematerialise in `backward` the values that depend on no argument; returns the captures that are left.

    A bind_size is cloned with a fresh symbol, since a size symbol is local to a function. One with an upper bound keeps
    its symbol, since values in `backward` have that size.
    """
    block = backward.block
    captured = _captures(block)
    free: set[Value] = set()
    for op in forward.block:
        if op.pure and not op.regions and not op.terminator and all(v in free for v in op.operands):
            free.update(op.results)
    needed: set[Op] = set()
    for op in backwards(forward.block):
        if any(r in free and (r in captured or any(u in needed for u in r.users)) for r in op.results):
            needed.add(op)
    first, copies = block.first, dict[Value, Value]()
    bounded = _bindings(forward, [*backward.walk(), *needed], captured)
    for op in forward.block:
        if op in needed or op in bounded:
            block.insert(op.clone(copies), first)
            if op in bounded and op.operands[0] not in copies:
                made = block.last if first is None else first.prev
                captured.setdefault(op.operands[0], []).append((made, 0))  # type: ignore[arg-type]
    for binding in [v.op for v in captured if v.op is not None and v.op.binds_size and v.op not in bounded]:
        name = str(binding.attrs["size"])
        fresh = sizes.sym(func.free_name(name, func.size_names(forward) | func.size_names(backward)))
        block.insert(binding.clone(copies, env={name: fresh}), first)
        captured.setdefault(binding.operands[0], []).append((copies[binding.results[0]].op, 0))  # type: ignore[arg-type]
    kept = {*copies, *forward.block.terminator.operands}
    for repeated in forward.block:
        if not isinstance(repeated, tensor.BroadcastTo) or repeated.result in kept or repeated.result not in captured:
            continue
        block.insert(repeated.clone(copies), first)          # smaller than its result
        if repeated.x not in copies:
            captured.setdefault(repeated.x, []).append((copies[repeated.result].op, 0))  # type: ignore[arg-type]
    for old, new in copies.items():
        for op, i in captured.pop(old, ()):
            op.set_operand(i, new)
    return captured


def _bindings(forward: Func, ops: Iterable[Op], values: Iterable[Value]) -> set[Op]:
    """The operations that bind the sizes of operations and values, and those that their upper bounds depend on."""
    names = {n for op in ops for n in bodies.size_symbols(op)}
    names |= {n for v in values if isinstance(v.type, TensorType) for d in v.type.shape for n in sizes.symbols(d)}
    out: set[Op] = set()
    for op in backwards(forward.block):
        if isinstance(op, tensor.BindSize) and op.bound is not None and str(op.size) in names:
            out.add(op)
            names |= sizes.symbols(op.bound)
    return out


def _capture(forward: Func, backward: Func, captured: dict[Value, list[tuple[Op, int]]]) -> tuple[int, ...]:
    """Turn the values of forward that backward uses into results of forward and arguments of backward.

    Values of data-dependent size are saved padded to their upper bounds.
    """
    returned = forward.block.terminator
    bounds = bounds_in(forward)
    results = list(returned.operands)
    position: dict[Value, int] = {}
    for i, value in enumerate((*forward.args, *results)):
        position.setdefault(value, i)
    saved: list[int] = []
    for value, uses in captured.items():
        bound = named(value.type, bounds)
        kept = value
        if value not in position:
            with before(returned, returned.loc.through(PASS_NAME)):
                kept = to_bounds(value, bounds) if bound else value
            position[value] = len(forward.args) + len(results)
            results.append(kept)
        saved.append(position[value])
        loaded: Value = backward.block.add_arg(kept.type, value.name)
        if bound:
            binders = [op for op in backward.block if op.binds_size and str(op.attrs["size"]) in bound]
            with after(binders[-1], returned.loc.through(PASS_NAME)):
                loaded = first_of(loaded, value.type.shape)
        for op, i in uses:
            op.set_operand(i, loaded)
    returned.set_operands(results)
    return (*saved, *_size_arguments(forward, backward))


def _size_arguments(forward: Func, backward: Func) -> list[int]:
    """Pass to backward the arguments of forward that bind size symbols it uses and none of its own arguments bind."""
    bound = {name for a in backward.args for name in bodies.bound_sizes(a.type)} | bounds_in(backward).keys()
    missing = {name: None for op in backward.walk() for name in bodies.size_symbols(op) if name not in bound}
    saved: list[int] = []
    for i, arg in enumerate(forward.args):
        if any(name in missing for name in bodies.bound_sizes(arg.type)):
            saved.append(i)
            backward.block.add_arg(arg.type, arg.name)
            for name in bodies.bound_sizes(arg.type):
                missing.pop(name, None)
    return saved
