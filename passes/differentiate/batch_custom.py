"""differentiate, batch, custom: a batched function brings its own derivative if the function of one lane does."""

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


def bring_rules(function: Func, out: Func, request: BatchRequest, lanes: Dim, returned: Sequence[bool],
                table: Mapping[Symbol, Func]) -> Generator[BatchRequest, BatchedFunction, None]:
    """Give the batched function `out` batched rules; all that it returns is made that of each lane."""
    terminator = out.block.terminator
    with before(terminator):
        terminator.set_operands(_of_each_lane(list(zip(terminator.operands, returned)), lanes))
    made = _Rules(function, out, request, lanes, table)
    if CUSTOM_VJP in function.attrs:
        fwd, kept = yield from made.saving()
        bwd = yield from made.pulling(fwd, kept)
        out.attrs[CUSTOM_VJP] = (fwd.sym_name, bwd.sym_name)
    else:
        out.attrs[CUSTOM_JVP] = ((yield from made.pushing()).sym_name,)
    count, *places = function.attrs[CUSTOM_ARGS]
    live = int(request.masked)
    out.attrs[CUSTOM_ARGS] = (count + live, *(tuple(i + live for i in p) for p in places))


class _Rules:
    """The rules of one function, batched. Where lanes may not be live, which are is the first argument of all."""

    def __init__(self, function: Func, out: Func, request: BatchRequest, lanes: Dim,
                 table: Mapping[Symbol, Func]) -> None:
        self.function = function
        self.lanes = lanes
        self.request = request
        self.table = table
        live = int(request.masked)
        flags = {arg: i in request.batched for i, arg in enumerate(out.args[live:])}
        self.live = [out.args[0].type] if live else []
        parts = Parts(function, out.args[live:])
        self.inputs, self.first, self.second = ([(v.type, flags[v]) for v in group]
                                                for group in (parts.inputs, parts.first, parts.second))
        self.moving = floats(function.args[: len(parts.inputs)])
        self.results = len(function.function_type.results)

    def saving(self) -> Generator[BatchRequest, BatchedFunction, tuple[Func, list[tuple[Type, bool]]]]:
        """(which lanes are live, x, a) -> y, what backward needs, the lanes first; and what that is."""
        made = self.function_of([*self.inputs, *self.first])
        with at_end(made.block, made.loc):
            found = yield from self.call(self.function.attrs[CUSTOM_VJP][0], made, [*self.inputs, *self.first])
            kept = found[self.results:]
            func.Return((*_of_each_lane(found[: self.results], self.lanes), *made.args[: len(self.live)],
                         *(v for v, _ in kept)))
        return self.insert(made, "fwd"), [(v.type, flag) for v, flag in kept]

    def pulling(self, fwd: Func, kept: Sequence[tuple[Type, bool]]) -> Asking:
        """(which lanes are live, what was kept, cotangents of y, b) -> cotangents of x."""
        given = [(t, True) for t in fwd.function_type.results[: self.results] if has_cotangent(t)]
        every = [*kept, *given, *self.second]
        made = self.function_of(every)
        with at_end(made.block, made.loc):
            found = yield from self.call(self.function.attrs[CUSTOM_VJP][1], made, every)
            func.Return(tuple(self.cotangent(v, flag, self.inputs[i][1]) for i, (v, flag) in zip(self.moving, found)))
        return self.insert(made, "bwd")

    def pushing(self) -> Asking:
        """(which lanes are live, x, tangents of x, a) -> y, tangents of y."""
        every = [*self.inputs, *(self.inputs[i] for i in self.moving), *self.first]
        made = self.function_of(every)
        with at_end(made.block, made.loc):
            found = yield from self.call(self.function.attrs[CUSTOM_JVP][0], made, every)
            func.Return(tuple(_of_each_lane(found, self.lanes)))
        return self.insert(made, "jvp")

    def function_of(self, types: Sequence[tuple[Type, bool]]) -> Func:
        made = func.function("", [*self.live, *(t for t, _ in types)], private=True)
        made.loc = self.function.loc.through(PASS_NAME)
        return made

    def call(self, name: Symbol, made: Func,
             types: Sequence[tuple[Type, bool]]) -> Generator[BatchRequest, BatchedFunction, Flagged]:
        """What a rule of one lane returns for all of them."""
        args = made.args[len(self.live):]
        batched = tuple(i for i, (_, flag) in enumerate(types) if flag)
        if not batched:
            return [(v, False) for v in func.call(self.table[name], args)]
        answer = yield BatchRequest(name, batched, self.request.lanes, self.request.masked)
        return list(zip(func.call(answer.function, made.args), answer.results))

    def cotangent(self, ct: Value, is_batched: bool, wanted: bool) -> Value:
        """That of each lane, or of what all lanes share: the sum over them."""
        if wanted:
            return ct if is_batched else _of_each_lane([(ct, False)], self.lanes)[0]
        if is_batched:
            return tensor.ReduceSum(ct, (0,)).result
        return ct * size(self.lanes, ct.type.dtype)

    def insert(self, made: Func, name: str) -> Func:
        module = self.function.parent
        assert module is not None
        made.sym_name = func.free_symbol(module, f"{self.function.sym_name}_vmap_{name}")
        made.update_type()
        module.insert(made, self.function.next)
        return made


def _of_each_lane(found: Flagged, lanes: Dim) -> list[Value]:
    return [v if flag or not isinstance(v.type, TensorType) else broadcast_to(v, (lanes, *v.type.shape))
            for v, flag in found]
