"""autodiff, reverse: a function taken apart into a forward and a backward half, by one walk that names no operation.

    forward(primals)              -> results, saved values
    backward(cotangents, saved)   -> cotangents of the primals asked for

The walk goes from the last operation to the first. An operation's `vjp` says which cotangents its operands get, and a
call of a function that was itself taken apart calls its halves. What the walk makes is ordinary IR, so a derivative
of a derivative is the same walk over its own output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from mlc.dialects import func, tensor
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.ir import sizes
from mlc.ir.core import Block, Op, ResultType, Symbol, Value, at_end, before, located
from mlc.ir.diag import IRError, Loc, UserError
from mlc.ir.sizes import Size
from mlc.ir.types import FloatType, TensorType, Type

PASS_NAME = "grad"
"""What the locations of derivative operations say they went through."""


def has_cotangent(type: Type) -> TypeGuard[TensorType]:
    """Whether values of a type have derivatives: floating-point tensors do."""
    return isinstance(type, TensorType) and isinstance(type.dtype, FloatType)


class Derivative(Op):
    """The results of `callee` at its primals, followed by the cotangents of the primals that `wrt` lists."""

    callee: Symbol
    args: tuple[Value, ...]
    wrt: tuple[int, ...]
    types: tuple[ResultType, ...]
    format = "$callee `(` $args `)` `wrt` $wrt attr-dict `:` functional-type"


# -- what is asked for ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Request:
    """Cotangents of the arguments `wrt` of a function, from cotangents of its results `of`; both ascending."""

    callee: Symbol
    wrt: tuple[int, ...]
    of: tuple[int, ...]


@dataclass(frozen=True)
class Halves:
    """A function taken apart. `saved` says what backward takes after the cotangents: positions in (primals, results
    of forward)."""

    request: Request
    forward: Func
    backward: Func
    saved: tuple[int, ...]

    def call_backward(self, primals: Sequence[Value], results: Sequence[Value],
                      cotangents: Sequence[Value]) -> Sequence[Value]:
        """The cotangents of the primals `wrt`, given those of the results `of`, at the insertion point."""
        known = (*primals, *results)
        return func.call(self.backward, (*cotangents, *(known[i] for i in self.saved)))


class Activity:
    """Which values of a function depend on its arguments `wrt`, and which of them its results `of` depend on."""

    def __init__(self, function: Func, request: Request) -> None:
        block = function.block
        self.active: set[Value] = {block.args[i] for i in request.wrt}
        for op in block:
            if not op.blocks_gradient and any(v in self.active for v in _reads(op)):
                self.active.update(r for r in op.results if has_cotangent(r.type))
        returned = block.terminator.operands
        self.useful: set[Value] = {returned[j] for j in request.of}
        for op in _reversed(block):
            if any(r in self.useful for r in op.results):
                self.useful.update(_reads(op))

    def concerns(self, op: Op) -> bool:
        """Whether a cotangent may reach a result of `op` and go on to an operand."""
        return any(r in self.active and r in self.useful for r in op.results)

    def request(self, call: func.Call) -> Request | None:
        """What a call inside the function asks of its callee; None if no cotangent passes through it."""
        wrt = tuple(i for i, v in enumerate(call.operands) if v in self.active and has_cotangent(v.type))
        of = tuple(j for j, r in enumerate(call.results) if r in self.useful and has_cotangent(r.type))
        return Request(call.callee, wrt, of) if wrt and of else None


def _reads(op: Op) -> Iterator[Value]:
    """The operands of an operation and of all inside it."""
    yield from op.operands
    if op.regions:
        for inner in op.walk():
            if inner is not op:
                yield from inner.operands


def _reversed(block: Block) -> Iterator[Op]:
    op = block.last
    while op is not None:
        previous = op.prev
        yield op
        op = previous


# -- taking functions apart -------------------------------------------------------------------------------------------
def take_apart(module: Module, request: Request, made: dict[Request, Halves], asked: Loc) -> Halves:
    """The halves that `request` asks for, and before them those that calls inside ask for; `made` is the memo."""
    order = {f.sym_name: n for n, f in enumerate(func.callees_first(module))}
    table = {f.sym_name: f for f in func.functions(module)}
    requests: dict[Request, None] = {}
    work = [request]
    while work:
        current = work.pop()
        if current in requests or current in made:
            continue
        requests[current] = None
        function = table[current.callee]
        _differentiable(function, asked)
        activity = Activity(function, current)
        for call in function.block:
            if isinstance(call, func.Call) and (nested := activity.request(call)) is not None:
                if nested.callee not in table:
                    call.fail(f"@{nested.callee} is not defined", code="MLC0106")
                if order[nested.callee] >= order[current.callee]:
                    raise UserError(f"@{nested.callee} calls itself through this call: a recursive function has no "
                                    "derivative", code="MLC0132", loc=call.loc, notes=(_asked(asked),))
                work.append(nested)
    for current in sorted(requests, key=lambda r: order[r.callee]):
        function = table[current.callee]
        made[current] = _halves(function, current, made, asked)
    return made[request]


def _differentiable(function: Func, asked: Loc) -> None:
    if len(function.body.blocks) != 1:
        raise UserError(f"@{function.sym_name} has branches between blocks, which have no derivative", code="MLC0132",
                        loc=function.loc, notes=(_asked(asked),))
    for op in function.inside(Derivative):
        raise UserError(f"{op.name} @{op.callee} takes part in a circle of calls: a recursive function has no "
                        "derivative", code="MLC0132", loc=op.loc, notes=(_asked(asked),))


def _asked(loc: Loc) -> str:
    return f"the derivative is asked for at {loc}"


def _halves(function: Func, request: Request, made: dict[Request, Halves], asked: Loc) -> Halves:
    """Take one function apart whose calls have been."""
    name = function.sym_name
    forward = function.clone()
    assert isinstance(forward, Func)
    for key in [k for k in forward.attrs if k not in ("sym_name", "function_type", "sym_visibility")]:
        del forward.attrs[key]                   # such as `donate`: they are about the entry function, not its halves
    activity = _without_composites(forward, request)
    rules = _call_forward_halves(forward, activity, made)
    backward = func.function("", [forward.function_type.results[j] for j in request.of], private=True)
    backward.loc = function.loc.through(PASS_NAME)
    _reverse(forward, backward, request, activity, rules, asked)
    _remove_unused(backward.block)
    captured = _rematerialise(forward, backward.block)
    saved = _capture(forward, backward, captured)
    module = function.parent
    assert module is not None
    for half, suffix in ((forward, "forward"), (backward, "backward")):
        half.sym_visibility = "private"
        half.sym_name = free_name(module, f"{name}_{suffix}")
        half.update_type()
        module.insert(half, function.next)
    return Halves(request, forward, backward, saved)


def free_name(module: Block, name: str) -> Symbol:
    taken = {op.attrs.get("sym_name") for op in module}
    return Symbol(next(n for n in (name, *(f"{name}_{i}" for i in range(len(taken) + 1))) if n not in taken))


def has_vjp(op: Op) -> bool:
    """Whether the class of `op` says what its operands' cotangents are."""
    return type(op).vjp is not Op.vjp


def _without_composites(forward: Func, request: Request) -> Activity:
    """Decompose what cotangents pass through and has no rule of its own, until nothing is left; what is active then."""
    while True:
        activity = Activity(forward, request)
        found = [op for op in forward.block if activity.concerns(op) and not has_vjp(op) and hasattr(op, "decompose")]
        if not found:
            return activity
        for op in found:
            with before(op, op.loc.through(PASS_NAME)):
                value = op.decompose()
            op.replace_by(*((value,) if isinstance(value, Value) else value))


Rule = Callable[..., Sequence[Value | None]]
"""Cotangents of the operands from those of the results, None where there is none."""


def _call_forward_halves(forward: Func, activity: Activity, made: dict[Request, Halves]) -> dict[Op, Rule]:
    """Make calls through which cotangents pass call the forward half; the rule of each new call."""
    rules: dict[Op, Rule] = {}
    for call in forward.block:
        if not isinstance(call, func.Call) or (request := activity.request(call)) is None:
            continue
        halves = made[request]
        with before(call, call.loc.through(PASS_NAME)):
            results = func.call(halves.forward, call.args)
        for old, new in zip(call.results, results):
            for known in (activity.active, activity.useful):
                if old in known:
                    known.add(new)
        made_call = results[0].op
        assert made_call is not None
        call.replace_by(*results[: len(call.results)])
        rules[made_call] = _call_rule(made_call, halves)
    return rules


def _call_rule(call: Op, halves: Halves) -> Rule:
    def rule(*cotangents: Value | None) -> list[Value | None]:
        given = [_given(cotangents[j], call.results[j].type) for j in halves.request.of]
        out: list[Value | None] = [None] * len(call.operands)
        for i, ct in zip(halves.request.wrt, halves.call_backward(call.operands, call.results, given)):
            out[i] = ct
        return out
    return rule


def _given(cotangent: Value | None, type: Type) -> Value:
    return cotangent if cotangent is not None else full(0.0, type)


def full(value: float, type: Type) -> Value:
    """A tensor of one number."""
    assert isinstance(type, TensorType), type
    return tensor.Full(value, type.shape, type.dtype).result


def _reverse(forward: Func, backward: Func, request: Request, activity: Activity, rules: dict[Op, Rule],
             asked: Loc) -> None:
    """Fill `backward` from the last operation of `forward` to the first. It still refers to values of `forward`."""
    cotangents: dict[Value, Value] = {}

    def accumulate(value: Value, ct: Value) -> None:
        cotangents[value] = cotangents[value] + ct if value in cotangents else ct

    with at_end(backward.block):
        returned = forward.block.terminator
        with located(returned.loc.through(PASS_NAME)):
            for j, ct in zip(request.of, backward.args):
                accumulate(returned.operands[j], ct)
        for op in _reversed(forward.block):
            given = [cotangents.get(r) for r in op.results]
            if all(ct is None for ct in given) or not any(r in activity.active for r in op.results):
                continue
            with located(op.loc.through(PASS_NAME)):
                for value, operand_ct in zip(op.operands, _apply(op, rules.get(op), given, asked)):
                    if operand_ct is not None and value in activity.active:
                        _fits(op, value, operand_ct)
                        accumulate(value, operand_ct)
        with located(backward.loc):
            func.Return(tuple(_given(cotangents.get(forward.args[i]), forward.args[i].type) for i in request.wrt))


def _apply(op: Op, rule: Rule | None, cotangents: Sequence[Value | None], asked: Loc) -> Sequence[Value | None]:
    """The cotangents of the operands of one operation."""
    if rule is not None:
        return rule(*cotangents)
    if not has_vjp(op):
        raise UserError(f"{op.name} has no derivative", code="MLC0130", loc=op.loc, notes=(_asked(asked),),
                        hint="nothing is differentiated through loops and conditions: a composite made of them brings "
                        "a rule of its own" if op.regions else
                        "pass its operand through stop_gradient if it is to count as a constant")
    return op.vjp(*(_given(ct, r.type) for ct, r in zip(cotangents, op.results)))


def _fits(op: Op, value: Value, cotangent: Value) -> None:
    if cotangent.type != value.type:
        raise IRError(f"the vjp of {op.name} gives {cotangent.type} for an operand of type {value.type}",
                      code="MLC0133", loc=op.loc)


def _remove_unused(block: Block) -> None:
    for op in _reversed(block):
        if op.pure and not op.terminator and not any(r.uses for r in op.results):
            op.erase()


def _captures(block: Block) -> dict[Value, list[tuple[Op, int]]]:
    """The values used in `block` and defined outside it, with their uses there."""
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


def _rematerialise(forward: Func, block: Block) -> dict[Value, list[tuple[Op, int]]]:
    """Compute in `block` again what depends on no argument, rather than save it; the captures that are left."""
    captured = _captures(block)
    free: set[Value] = set()
    for op in forward.block:
        if op.pure and not op.regions and not op.terminator and all(v in free for v in op.operands):
            free.update(op.results)
    needed: set[Op] = set()
    for op in _reversed(forward.block):
        if any(r in free and (r in captured or any(u in needed for u in r.users)) for r in op.results):
            needed.add(op)
    first, copies = block.first, dict[Value, Value]()
    for op in forward.block:
        if op in needed:
            block.insert(op.clone(copies), first)
    for old, new in copies.items():
        for op, i in captured.pop(old, ()):
            op.set_operand(i, new)
    return captured


def _capture(forward: Func, backward: Func, captured: dict[Value, list[tuple[Op, int]]]) -> tuple[int, ...]:
    """Make what backward uses of forward's values arguments of the one and results of the other."""
    returned = forward.block.terminator
    results = list(returned.operands)
    position: dict[Value, int] = {}
    for i, value in enumerate((*forward.args, *results)):
        position.setdefault(value, i)
    saved: list[int] = []
    for value, uses in captured.items():
        if value not in position:
            position[value] = len(forward.args) + len(results)
            results.append(value)
        saved.append(position[value])
        arg = backward.block.add_arg(value.type, value.name)
        for op, i in uses:
            op.set_operand(i, arg)
    returned.set_operands(results)
    return (*saved, *_size_arguments(forward, backward))


def _size_arguments(forward: Func, backward: Func) -> list[int]:
    """Give backward the arguments of forward whose sizes tell it the symbols that it uses and cannot tell."""
    told = {name for a in backward.args for name in _told(a.type)}
    missing = {name: None for op in backward.walk() for name in _symbols_of(op) if name not in told}
    saved: list[int] = []
    for i, arg in enumerate(forward.args):
        if any(name in missing for name in _told(arg.type)):
            saved.append(i)
            backward.block.add_arg(arg.type, arg.name)
            for name in _told(arg.type):
                missing.pop(name, None)
    return saved


def _told(type: Type) -> list[str]:
    """The symbols that are alone a size of `type`."""
    return [n for d in type.shape if (n := sizes.symbol_name(d))] if isinstance(type, TensorType) else []


def _symbols_of(op: Op) -> Iterator[str]:
    """The size symbols in the results, arguments and attributes of one operation."""
    work: list[Any] = [r.type for r in op.results] + list(op.attrs.values())
    work += [a.type for region in op.regions for block in region.blocks for a in block.args]
    while work:
        value = work.pop()
        if isinstance(value, Size):
            yield from sorted(sizes.symbols(value))
        elif isinstance(value, tuple | list):
            work += value
        elif isinstance(value, TensorType):
            work += value.shape
