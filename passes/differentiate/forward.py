"""differentiate, forward: forward mode, which makes of a function one that also computes tangents.

    f_jvp(primals, tangents)  ->  results, tangents of the active results

An operation has one rule, its `vjp`: from cotangents of its results, those of its operands. That map is linear, and
its transpose takes tangents of the operands to those of the results; to transpose it is to walk through the
operations that the rule emits, from the last to the first, by their own rules. So forward mode needs no second table
(two operations have a `jvp`, because the cotangent stands in an exponential in their `vjp`), and the two modes cannot
disagree. (The observation is known as Jamie Townsend's "new trick for calculating Jacobian
vector products", 2017; there for whole functions, here for one operation at a time.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlc.dialects import func, scf
from mlc.dialects.autodiff.attributes import CUSTOM_VJP, has_cotangent, is_custom
from mlc.dialects.autodiff.predication import Predicated, predicated
from mlc.dialects.autodiff.predication import Yield as PredicatedYield
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.ir.core import Block, Op, Region, Symbol, Value, after, at_end, before, builder
from mlc.ir.diag import IRError, Loc, UserError
from mlc.passes.differentiate import bodies, custom
from mlc.passes.differentiate.activity import Activity, VjpFunctions, VjpRequest, backwards, reads
from mlc.passes.differentiate.reverse import vjp_functions
from mlc.passes.differentiate.reverse_control import full, plus

PASS_NAME = "jvp"


@dataclass(frozen=True)
class JvpRequest:
    """A request for the tangents of the results of a function, given those of its arguments `wrt`; ascending."""

    callee: Symbol
    wrt: tuple[int, ...]


@dataclass(frozen=True)
class JvpFunction:
    """A function of (primals, tangents) -> (results, tangents of the results `of`); other tangents are zero."""

    function: Func
    of: tuple[int, ...]

    def call(self, primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[list[Value], dict[int, Value]]:
        """The results, and the tangents of some of them by their number, at the insertion point."""
        return self.split(func.call(self.function, (*primals, *tangents)))

    def split(self, found: Sequence[Value]) -> tuple[list[Value], dict[int, Value]]:
        own = len(found) - len(self.of)
        return list(found[:own]), dict(zip(self.of, found[own:]))


def jvp_function(module: Module, request: JvpRequest, made: dict[JvpRequest, JvpFunction],
                 vjps: dict[VjpRequest, VjpFunctions], asked: Loc) -> JvpFunction:
    """The function for `request`; those for calls, loops and conditions inside are made first.

    `made` and `vjps` are memos; a custom vjp rule is transposed by its own forward and backward functions.
    """
    bodies.outline(module, request.callee)
    order = {f.sym_name: n for n, f in enumerate(func.callees_first(module))}
    table: dict[str, Func] = {f.sym_name: f for f in func.functions(module)}
    requests: dict[JvpRequest, None] = {}
    work = [request]
    while work:
        current = work.pop()
        if current in requests or current in made:
            continue
        requests[current] = None
        if is_custom(table[current.callee]):
            if CUSTOM_VJP in table[current.callee].attrs:
                vjp_functions(module, custom.linear_request(table[current.callee], table), vjps, asked)
            continue
        active = _active(table[current.callee], current)
        for op in table[current.callee].block:
            for nested in _nested(op, active, table):
                if nested.callee not in table:
                    op.fail(f"@{nested.callee} is not defined", code="MLC0106")
                if order[nested.callee] >= order[current.callee]:
                    raise UserError(f"@{nested.callee} calls itself through this call: a recursive function has no "
                                    "derivative", code="MLC0132", loc=op.loc,
                                    notes=(f"the derivative is asked for at {asked}",))
                work.append(nested)
    for current in sorted(requests, key=lambda p: order[p.callee]):
        made[current] = _Forward(table[current.callee], current, made, vjps, table, asked).run()
    return made[request]


def _active(function: Func, request: JvpRequest) -> set[Value]:
    return Activity(function, VjpRequest(request.callee, request.wrt, ())).active


def _nested(op: Op, active: set[Value], table: Mapping[str, Func]) -> list[JvpRequest]:
    """The requests that one operation makes of the functions that it calls."""
    if isinstance(op, func.Call):
        wrt = tuple(i for i, v in enumerate(op.args) if v in active and has_cotangent(v.type))
        return [JvpRequest(op.callee, wrt)] if wrt else []
    if not bodies.is_control(op) or not any(r in active for r in op.results):
        return []
    return [p for p in _body_requests(op, active, table) if p.wrt]


def _body_requests(op: Op, active: set[Value], table: Mapping[str, Func]) -> list[JvpRequest]:
    """The request for each body; a loop-carried value is active if any iteration makes it so."""
    if isinstance(op, Predicated):
        call = bodies.body_call(op.block)
        wrt = tuple(i for i, v in enumerate(op.args) if v in active and has_cotangent(v.type))
        return [JvpRequest(call.callee, wrt)]
    calls = [bodies.body_call(b) for b in bodies.bodies(op)]
    if isinstance(op, scf.If):
        return [JvpRequest(c.callee, tuple(i for i, v in enumerate(c.args) if v in active and has_cotangent(v.type)))
                for c in calls]
    assert isinstance(op, scf.For | scf.While)
    call, lead, count = calls[0], bodies.leading(op), len(op.init)
    outside = [i for i in range(lead + count, len(call.args)) if call.args[i] in active
               and has_cotangent(call.args[i].type)]
    carried = {k for k, v in enumerate(op.init) if v in active and has_cotangent(v.type)}
    returned = table[call.callee].block.terminator.operands
    while True:
        request = JvpRequest(call.callee, (*(lead + k for k in sorted(carried)), *outside))
        reached = _active(table[call.callee], request)
        more = {k for k, v in enumerate(returned) if v in reached and has_cotangent(v.type)} - carried
        if not more:
            return [request]
        carried |= more


class _Forward:
    """Adds tangents to one function, whose callees have theirs."""

    def __init__(self, function: Func, request: JvpRequest, made: Mapping[JvpRequest, JvpFunction],
                 vjps: Mapping[VjpRequest, VjpFunctions], table: Mapping[str, Func], asked: Loc) -> None:
        self.source = function
        self.request = request
        self.made = made
        self.vjps = vjps
        self.table = table
        self.asked = asked
        copied: dict[Value, Value] = {}
        copy = function.clone(copied)
        assert isinstance(copy, Func)
        self.function = copy
        self.tangents: dict[Value, Value] = {}
        active = set() if is_custom(function) else _active(function, request)
        self.active = {copied[v] for v in active}        # the requests to callees depend on this, not on `tangents`

    def run(self) -> JvpFunction:
        function, block = self.function, self.function.block
        for i in self.request.wrt:
            arg = block.args[i]
            self.tangents[arg] = block.add_arg(arg.type, f"d{arg.name}" if arg.name else "")
        if is_custom(self.source):
            self.by_rule()
        op = block.first
        while op is not None and not op.terminator and not is_custom(self.source):
            op = self.step(op)
        returned = block.terminator
        of = tuple(j for j, v in enumerate(returned.operands) if v in self.tangents)
        returned.set_operands([*returned.operands, *(self.tangents[returned.operands[j]] for j in of)])
        for key in [k for k in function.attrs if k not in ("sym_name", "function_type", "recompute")]:
            del function.attrs[key]
        function.sym_visibility = "private"
        module = self.source.parent
        assert module is not None
        function.sym_name = func.free_symbol(module, f"{self.source.sym_name}_jvp")
        function.update_type()
        module.insert(function, self.source.next)
        return JvpFunction(function, of)

    def by_rule(self) -> None:
        """Replace the body by a call of the custom rule."""
        block = self.function.block
        for op in backwards(block):
            op.erase()
        with at_end(block, self.source.loc.through(PASS_NAME)):
            given = {i: self.tangents[block.args[i]] for i in self.request.wrt}
            results, found = custom.tangents(self.source, block.args, given, self.table, self.vjps)
            func.Return(tuple(results))
        self.know(results, found)

    def step(self, op: Op) -> Op | None:
        """Give the results of one operation their tangents; the operation to go on with."""
        following = op.next
        if op.blocks_gradient or not any(v in self.tangents for v in reads(op)) or not any(
                has_cotangent(r.type) for r in op.results):
            return following
        loc = op.loc.through(PASS_NAME)
        if isinstance(op, func.Call):
            with before(op, loc):
                request = _nested(op, self.active, self.table)[0]
                results, found = self.made[request].call(op.args, [self.tangent(op.args[i]) for i in request.wrt])
            self.replace(op, results, found)
        elif bodies.is_control(op):
            with before(op, loc):
                results, found = self.control(op)
            self.replace(op, results, found)
        elif type(op).vjp is not Op.vjp:
            with after(op, loc):
                self.know(op.results, self.transposed(op))
        elif hasattr(op, "decompose"):
            last = op.prev
            with before(op, loc):
                value = op.decompose()
            first = last.next if last is not None else self.function.block.first
            values = (value,) if isinstance(value, Value) else value
            self.active.update(new for old, new in zip(op.results, values) if old in self.active)
            op.replace_by(*values)
            return first
        else:
            raise UserError(f"{op.name} has no derivative", code="MLC0130", loc=op.loc,
                            notes=(f"the derivative is asked for at {self.asked}",),
                            hint="pass its operand through stop_gradient, x.detach(), if it is to count as a constant")
        return following

    def tangent(self, v: Value) -> Value:
        """The tangent of a value, zeros where it is not active."""
        return self.tangents[v] if v in self.tangents else full(0.0, v.type)

    def replace(self, op: Op, results: Sequence[Value], found: Mapping[int, Value]) -> None:
        self.active.update(new for old, new in zip(op.results, results) if old in self.active)
        op.replace_by(*results)
        self.know(results, found)

    def know(self, results: Sequence[Value], found: Mapping[int, Value]) -> None:
        for j, tangent in found.items():
            if tangent.type != results[j].type:
                raise IRError(f"the tangent of a {results[j].type} is {tangent.type}", code="MLC0133",
                              loc=self.source.loc)
            self.tangents[results[j]] = tangent

    # -- one operation ------------------------------------------------------------------------------------------------
    def transposed(self, op: Op) -> dict[int, Value]:
        """The tangents of the results of an operation, at the insertion point."""
        if (rule := getattr(op, "jvp", None)) is not None:
            moved = rule(*map(self.tangent, op.operands))
            return dict(enumerate(moved))
        linear = Block([r.type for r in op.results])
        with at_end(linear, builder.loc):
            floats = [arg if has_cotangent(arg.type) else None for arg in linear.args]
            reached = [(v, ct) for v, ct in zip(op.operands, op.vjp(*floats)) if ct is not None and v in self.tangents]
            func.Return(tuple(ct for _, ct in reached))
        pending = transpose(linear, [self.tangents[v] for v, _ in reached], op)
        return {j: pending[arg] for j, arg in enumerate(linear.args) if arg in pending}

    # -- loops and conditions -----------------------------------------------------------------------------------------
    def control(self, op: Op) -> tuple[list[Value], dict[int, Value]]:
        requests = _body_requests(op, self.active, self.table)
        made = [self.made[p] if p.wrt else None for p in requests]
        if isinstance(op, scf.If):
            return self.branches(op, requests, made)
        if isinstance(op, Predicated):
            return self.predicated(op, requests[0], made[0])
        assert isinstance(op, scf.For | scf.While)
        return self.loop(op, requests[0], made[0])

    def branches(self, op: scf.If, requests: Sequence[JvpRequest], made: Sequence[JvpFunction | None]
                 ) -> tuple[list[Value], dict[int, Value]]:
        of = sorted({j for m in made if m is not None for j in m.of})
        blocks = [Block(), Block()]
        for block, old, request, function in zip(blocks, bodies.bodies(op), requests, made):
            call = bodies.body_call(old)
            with at_end(block, builder.loc):
                results, found = self.called(call, list(call.args), request, function)
                scf.Yield((*results, *(found[j] if j in found else full(0.0, op.results[j].type) for j in of)))
        types = [*(r.type for r in op.results), *(op.results[j].type for j in of)]
        new = scf.If(op.condition, Region(blocks[0]), Region(blocks[1]), tuple(types)).results
        count = len(op.results)
        return list(new[:count]), dict(zip(of, new[count:]))

    def called(self, call: func.Call, args: Sequence[Value], request: JvpRequest, function: JvpFunction | None,
               own: Mapping[int, Value] | None = None) -> tuple[list[Value], dict[int, Value]]:
        """A call of a body with `args`; tangents are those of the captured values, but for `own`, by position."""
        if function is None:
            return list(func.Call(call.callee, tuple(args), tuple(r.type for r in call.results)).results), {}
        own = own or {}
        return function.call(args, [own[i] if i in own else self.tangent(args[i]) for i in request.wrt])

    def loop(self, op: scf.For | scf.While, request: JvpRequest, function: JvpFunction | None
             ) -> tuple[list[Value], dict[int, Value]]:
        call, lead, count = bodies.body_call(bodies.bodies(op)[0]), bodies.leading(op), len(op.init)
        carried = [i - lead for i in request.wrt if i < lead + count]
        start = [*op.init, *(self.tangent(op.init[k]) for k in carried)]
        outside = list(call.args[lead + count:])

        def step(counter: Sequence[Value], values: Sequence[Value]) -> Sequence[Value]:
            own = {lead + k: v for k, v in zip(carried, values[count:])}
            results, found = self.called(call, [*counter, *values[:count], *outside], request, function, own)
            return [*results, *(found[k] if k in found else full(0.0, results[k].type) for k in carried)]

        if isinstance(op, scf.For):
            loop = scf.loop(op.lower, op.upper, op.step, start)
            with at_end(loop.block, builder.loc):
                scf.Yield(tuple(step([loop.counter], loop.carried)))
            out = loop.results
        else:
            out = bodies.while_of(op, start, lambda values: step([], values)).results
        return list(out[:count]), dict(zip(carried, out[count:]))

    def predicated(self, op: Predicated, request: JvpRequest, function: JvpFunction | None
               ) -> tuple[list[Value], dict[int, Value]]:
        call, args, count = bodies.body_call(op.block), list(op.args), op.carried
        of = sorted({*(function.of if function is not None else ()), *(i for i in request.wrt if i < count)})
        start = [self.tangent(args[j]) for j in of]
        outside = [i for i in request.wrt if i not in of]
        new = predicated(op.p, [*args[:count], *start], [*args[count:], *(self.tangent(args[i]) for i in outside)])
        own = list(new.block.args)
        primals = [*own[:count], *own[count + len(of): len(args) + len(of)]]
        tangents = dict(zip(of, own[count:])) | dict(zip(outside, own[len(args) + len(of):]))
        with at_end(new.block, builder.loc):
            results, found = self.called(call, primals, request, function, tangents)
            PredicatedYield((*results, *(found[j] if j in found else full(0.0, results[j].type) for j in of)))
        return list(new.results[:count]), dict(zip(of, new.results[count:]))


def transpose(rule: Block, given: Sequence[Value], op: Op) -> dict[Value, Value]:
    """The transpose of a block that is linear in its arguments: values for these, from those `given` for its results.

    Operations that do not depend on the arguments move to the insertion point, where the transposed ones are inserted.
    """
    assert builder.block is not None
    linear = _linear(rule)
    pending: dict[Value, Value] = {}
    for v, ct in zip(rule.terminator.operands, given):
        pending[v] = pending[v] + ct if v in pending else ct
    rule.terminator.erase()
    for inner in list(rule):
        if not any(r in linear for r in inner.results):
            inner.detach()
            builder.block.insert(inner, builder.before)
    out = Block()
    with at_end(out, builder.loc):
        for inner in backwards(rule):
            if not any(r in pending for r in inner.results):
                continue
            cts = [pending[r] if r in pending else full(0.0, r.type) for r in inner.results]
            for v, part in zip(inner.operands, inner.vjp(*cts)):
                if part is not None and v in linear:
                    pending[v] = plus(pending[v], part) if v in pending else part
    kept = {pending[arg] for arg in rule.args if arg in pending}
    for inner in backwards(out):
        if inner.pure and not any(r.uses or r in kept for r in inner.results):
            inner.erase()
    for inner in list(out):
        if any(v in linear for v in inner.operands):
            op.fail(f"its derivative is not linear in the cotangent: {inner.name} multiplies two values that depend "
                    "on it", code="MLC0133")
        inner.detach()
        builder.block.insert(inner, builder.before)
    for inner in backwards(rule):
        inner.erase()
    return pending


def _linear(rule: Block) -> set[Value]:
    """The values that depend on the arguments of `rule`, in which only operations with rules are left."""
    while True:
        linear: set[Value] = set(rule.args)
        for inner in list(rule):
            if any(v in linear for v in reads(inner)):
                linear.update(r for r in inner.results if has_cotangent(r.type))
                if type(inner).vjp is Op.vjp and hasattr(inner, "decompose"):
                    with before(inner):
                        value = inner.decompose()
                    inner.replace_by(*((value,) if isinstance(value, Value) else value))
                    break
        else:
            return linear
