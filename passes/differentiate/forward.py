"""differentiate, forward: forward mode, which extends a function to compute tangents as well.

    f_jvp(primals, tangents)  ->  results, tangents of the active results

An operation has one rule, its `vjp`, which maps cotangents of its results to cotangents of its operands. The map is
linear, and its transpose maps tangents of the operands to tangents of the results. A rule is transposed by visiting the
operations that it emits in reverse order and applying their own rules. So forward mode needs no second table (two
operations have a `jvp`, because the cotangent appears in an exponential in their `vjp`), and the two modes cannot
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
    """A request for the tangents of a function's results, given those of its arguments `wrt` (ascending)."""

    callee: Symbol
    wrt: tuple[int, ...]


@dataclass(frozen=True)
class JvpFunction:
    """A function of (primals, tangents) -> (results, tangents of the results `of`); other tangents are zero."""

    function: Func
    of: tuple[int, ...]

    def call(self, primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[list[Value], dict[int, Value]]:
        """Call the function at the insertion point; returns the results and, by position, the tangents of some."""
        return self.split(func.call(self.function, (*primals, *tangents)))

    def split(self, values: Sequence[Value]) -> tuple[list[Value], dict[int, Value]]:
        own = len(values) - len(self.of)
        return list(values[:own]), dict(zip(self.of, values[own:]))


def jvp_function(module: Module, request: JvpRequest, memo: dict[JvpRequest, JvpFunction],
                 vjps: dict[VjpRequest, VjpFunctions], asked: Loc) -> JvpFunction:
    """The JVP function for `request`; those of callees and of the bodies of loops and conditionals are built first.

    `memo` and `vjps` are memos; a custom vjp rule is transposed by its own forward and backward functions.
    """
    bodies.outline(module, request.callee)
    order = {f.sym_name: n for n, f in enumerate(func.callees_first(module))}
    table: dict[str, Func] = {f.sym_name: f for f in func.functions(module)}
    requests: dict[JvpRequest, None] = {}
    work = [request]
    while work:
        current = work.pop()
        if current in requests or current in memo:
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
                                    notes=(f"the derivative is requested at {asked}",))
                work.append(nested)
    for current in sorted(requests, key=lambda p: order[p.callee]):
        memo[current] = _Forward(table[current.callee], current, memo, vjps, table, asked).run()
    return memo[request]


def _active(function: Func, request: JvpRequest) -> set[Value]:
    return Activity.of_function(function, VjpRequest(request.callee, request.wrt, ())).active


def _nested(op: Op, active: set[Value], table: Mapping[str, Func]) -> list[JvpRequest]:
    """The requests of one operation for the functions that it calls."""
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
    """Adds tangents to one function whose callees have JVP functions."""

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
        self.active = {copied[v] for v in active}        # determines the requests for callees; `tangents` does not

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
            own_tangents = {i: self.tangents[block.args[i]] for i in self.request.wrt}
            results, tangents = custom.tangents(self.source, block.args, own_tangents, self.table, self.vjps)
            func.Return(tuple(results))
        self.know(results, tangents)

    def step(self, op: Op) -> Op | None:
        """Compute the tangents of the results of one operation; returns the operation at which to continue."""
        following = op.next
        if op.blocks_gradient or not any(v in self.tangents for v in reads(op)) or not any(
                has_cotangent(r.type) for r in op.results):
            return following
        loc = op.loc.through(PASS_NAME)
        if isinstance(op, func.Call):
            with before(op, loc):
                request = _nested(op, self.active, self.table)[0]
                results, tangents = self.made[request].call(op.args, [self.tangent(op.args[i]) for i in request.wrt])
            self.replace(op, results, tangents)
        elif bodies.is_control(op):
            with before(op, loc):
                results, tangents = self.control(op)
            self.replace(op, results, tangents)
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
                            notes=(f"the derivative is requested at {self.asked}",),
                            hint="pass its operand through stop_gradient, x.detach(), to treat it as a constant")
        return following

    def tangent(self, v: Value) -> Value:
        """The tangent of a value, zeros if it is inactive."""
        return self.tangents[v] if v in self.tangents else full(0.0, v.type)

    def replace(self, op: Op, results: Sequence[Value], tangents: Mapping[int, Value]) -> None:
        self.active.update(new for old, new in zip(op.results, results) if old in self.active)
        op.replace_by(*results)
        self.know(results, tangents)

    def know(self, results: Sequence[Value], tangents: Mapping[int, Value]) -> None:
        for j, tangent in tangents.items():
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

    # -- loops and conditionals ---------------------------------------------------------------------------------------
    def control(self, op: Op) -> tuple[list[Value], dict[int, Value]]:
        requests = _body_requests(op, self.active, self.table)
        functions = [self.made[p] if p.wrt else None for p in requests]
        if isinstance(op, scf.If):
            return self.branches(op, requests, functions)
        if isinstance(op, Predicated):
            return self.predicated(op, requests[0], functions[0])
        assert isinstance(op, scf.For | scf.While)
        return self.loop(op, requests[0], functions[0])

    def branches(self, op: scf.If, requests: Sequence[JvpRequest], functions: Sequence[JvpFunction | None]
                 ) -> tuple[list[Value], dict[int, Value]]:
        of = sorted({j for m in functions if m is not None for j in m.of})
        blocks = [Block(), Block()]
        for block, old, request, function in zip(blocks, bodies.bodies(op), requests, functions):
            call = bodies.body_call(old)
            with at_end(block, builder.loc):
                results, tangents = self.called(call, list(call.args), request, function)
                scf.Yield((*results, *(tangents[j] if j in tangents else full(0.0, op.results[j].type) for j in of)))
        types = [*(r.type for r in op.results), *(op.results[j].type for j in of)]
        new = scf.If(op.condition, Region(blocks[0]), Region(blocks[1]), tuple(types)).results
        count = len(op.results)
        return list(new[:count]), dict(zip(of, new[count:]))

    def called(self, call: func.Call, args: Sequence[Value], request: JvpRequest, function: JvpFunction | None,
               own: Mapping[int, Value] | None = None) -> tuple[list[Value], dict[int, Value]]:
        """Call a body with `args`; their tangents are those of the captured values, except for `own`, by position."""
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
            results, tangents = self.called(call, [*counter, *values[:count], *outside], request, function, own)
            return [*results, *(tangents[k] if k in tangents else full(0.0, results[k].type) for k in carried)]

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
            results, dys = self.called(call, primals, request, function, tangents)
            PredicatedYield((*results, *(dys[j] if j in dys else full(0.0, results[j].type) for j in of)))
        return list(new.results[:count]), dict(zip(of, new.results[count:]))


def transpose(rule: Block, seeds: Sequence[Value], op: Op) -> dict[Value, Value]:
    """Transpose a block that is linear in its arguments: map cotangents of its results to those of its arguments.

    Operations that do not depend on the arguments move to the insertion point, where the transposed ones are inserted.
    """
    assert builder.block is not None
    linear = _linear(rule)
    pending: dict[Value, Value] = {}
    for v, ct in zip(rule.terminator.operands, seeds):
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
    """The values that depend on the arguments of `rule`, after decomposing the operations without a `vjp`."""
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
