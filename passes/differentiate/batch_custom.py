"""differentiate, batch, custom: the custom derivative rules of a batched function are the batched rules."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from mlc.dialects import func, tensor
from mlc.dialects.autodiff.attributes import CUSTOM_ARGS, CUSTOM_JVP, CUSTOM_VJP, has_cotangent
from mlc.dialects.func import Func
from mlc.dialects.tensor.base import broadcast_to
from mlc.dialects.tensor.source import size
from mlc.ir.core import Symbol, Value, at_end, before
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, Type
from mlc.passes.differentiate.batch_operations import PASS_NAME, BatchedFunction, BatchRequest, Flagged
from mlc.passes.differentiate.custom import Parts, floats

Asking = Generator[BatchRequest, BatchedFunction, Func]


def bring_rules(function: Func, out: Func, request: BatchRequest, batch_size: Dim, returned: Sequence[bool],
                table: Mapping[Symbol, Func]) -> Generator[BatchRequest, BatchedFunction, None]:
    """Attach batched rules to the batched function `out`; all its results become batched."""
    terminator = out.block.terminator
    with before(terminator):
        terminator.set_operands(_all_batched(list(zip(terminator.operands, returned)), batch_size))
    rules = _Rules(function, out, request, batch_size, table)
    if CUSTOM_VJP in function.attrs:
        fwd, kept = yield from rules.saving()
        bwd = yield from rules.pulling(fwd, kept)
        out.attrs[CUSTOM_VJP] = (fwd.sym_name, bwd.sym_name)
    else:
        out.attrs[CUSTOM_JVP] = ((yield from rules.pushing()).sym_name,)
    count, *places = function.attrs[CUSTOM_ARGS]
    active = int(request.predicated)
    out.attrs[CUSTOM_ARGS] = (count + active, *(tuple(i + active for i in p) for p in places))


class _Rules:
    """The batched rules of one function. If only some elements are active, the active mask is the first argument."""

    def __init__(self, function: Func, out: Func, request: BatchRequest, batch_size: Dim,
                 table: Mapping[Symbol, Func]) -> None:
        self.function = function
        self.batch_size = batch_size
        self.request = request
        self.table = table
        active = int(request.predicated)
        flags = {arg: i in request.batched for i, arg in enumerate(out.args[active:])}
        self.active = [out.args[0].type] if active else []
        parts = Parts(function, out.args[active:])
        self.inputs, self.first, self.second = ([(v.type, flags[v]) for v in group]
                                                for group in (parts.inputs, parts.first, parts.second))
        self.moving = floats(function.args[: len(parts.inputs)])
        self.results = len(function.function_type.results)

    def saving(self) -> Generator[BatchRequest, BatchedFunction, tuple[Func, list[tuple[Type, bool]]]]:
        """(active mask, x, a) -> y, active mask, residuals; and the types of the residuals."""
        rule = self.function_of([*self.inputs, *self.first])
        with at_end(rule.block, rule.loc):
            results = yield from self.call(self.function.attrs[CUSTOM_VJP][0], rule, [*self.inputs, *self.first])
            kept = results[self.results:]
            func.Return((*_all_batched(results[: self.results], self.batch_size), *rule.args[: len(self.active)],
                         *(v for v, _ in kept)))
        return self.insert(rule, "fwd"), [(v.type, flag) for v, flag in kept]

    def pulling(self, fwd: Func, kept: Sequence[tuple[Type, bool]]) -> Asking:
        """(active mask, residuals, cotangents of y, b) -> cotangents of x."""
        cotangents = [(t, True) for t in fwd.function_type.results[: self.results] if has_cotangent(t)]
        every = [*kept, *cotangents, *self.second]
        rule = self.function_of(every)
        with at_end(rule.block, rule.loc):
            grads = yield from self.call(self.function.attrs[CUSTOM_VJP][1], rule, every)
            func.Return(tuple(self.cotangent(v, flag, self.inputs[i][1]) for i, (v, flag) in zip(self.moving, grads)))
        return self.insert(rule, "bwd")

    def pushing(self) -> Asking:
        """(active mask, x, tangents of x, a) -> y, tangents of y."""
        every = [*self.inputs, *(self.inputs[i] for i in self.moving), *self.first]
        rule = self.function_of(every)
        with at_end(rule.block, rule.loc):
            results = yield from self.call(self.function.attrs[CUSTOM_JVP][0], rule, every)
            func.Return(tuple(_all_batched(results, self.batch_size)))
        return self.insert(rule, "jvp")

    def function_of(self, types: Sequence[tuple[Type, bool]]) -> Func:
        made = func.function("", [*self.active, *(t for t, _ in types)], private=True)
        made.loc = self.function.loc.through(PASS_NAME)
        return made

    def call(self, name: Symbol, rule: Func,
             types: Sequence[tuple[Type, bool]]) -> Generator[BatchRequest, BatchedFunction, Flagged]:
        """Call the batched rule, and flag which of its results are batched."""
        args = rule.args[len(self.active):]
        batched = tuple(i for i, (_, flag) in enumerate(types) if flag)
        if not batched:
            return [(v, False) for v in func.call(self.table[name], args)]
        answer = yield BatchRequest(name, batched, self.request.batch_size, self.request.predicated)
        return list(zip(func.call(answer.function, rule.args), answer.results))

    def cotangent(self, ct: Value, is_batched: bool, wanted: bool) -> Value:
        """The cotangent of a batched value; for an unbatched one, the sum over the batch."""
        if wanted:
            return ct if is_batched else _all_batched([(ct, False)], self.batch_size)[0]
        if is_batched:
            return tensor.ReduceSum(ct, (0,)).result
        return ct * size(self.batch_size, ct.type.dtype)

    def insert(self, rule: Func, name: str) -> Func:
        module = self.function.parent
        assert module is not None
        rule.sym_name = func.free_symbol(module, f"{self.function.sym_name}_vmap_{name}")
        rule.update_type()
        module.insert(rule, self.function.next)
        return rule


def _all_batched(values: Flagged, batch_size: Dim) -> list[Value]:
    return [v if flag or not isinstance(v.type, TensorType) else broadcast_to(v, (batch_size, *v.type.shape))
            for v, flag in values]
