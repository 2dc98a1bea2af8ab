"""differentiate, control: reverse mode of loops and conditionals.

The bodies of loops and conditionals are outlined first (bodies.py), and get forward and backward functions like any
other function. Then

    if          saves the residuals of the branch taken, and runs the backward function of that branch
    for         with a known trip count saves the residuals of each iteration in tapes, tensors with one row per
                iteration, and runs the backward function from the last iteration to the first
    while, and a for with a data-dependent trip count, save their initial values and the trip count, which is the length
                of the tapes. Backward replays the loop to fill them, and then runs it in reverse
    predicated  is recomputed by backward under the same predicate, so that an inactive element contributes 0 to the
                cotangents, and not 0 times infinity

A replay runs the loop once more, and keeps no memory per iteration alive between forward and backward; its tapes are
local to a function whose argument binds their length (`tensor.bind_size`). A tape is an ordinary tensor, so
higher-order derivatives and batches need no special treatment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlc.dialects import arith, func, scf, tensor
from mlc.dialects.autodiff.attributes import RECOMPUTE, has_cotangent
from mlc.dialects.autodiff.predication import Predicated, drop_unused, predicated
from mlc.dialects.autodiff.predication import Yield as PredicatedYield
from mlc.dialects.func import Func
from mlc.dialects.tensor.base import is_splat, reshape, select, zeros
from mlc.dialects.tensor.control import BindSize, as_index, for_loop, from_index, from_scalar, trip_count
from mlc.dialects.tensor.source import size as size_tensor
from mlc.ir import sizes
from mlc.ir.core import Block, Op, Region, Value, at_end, builder
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, Type, i1, i64, index
from mlc.passes.differentiate.activity import PASS_NAME, Activity, VjpFunctions, VjpRequest
from mlc.passes.differentiate.bodies import bodies, body_call, is_control, leading, while_of
from mlc.passes.differentiate.predicated import beside

Rule = Callable[..., list[tuple[Value, Value | None]]]


def full(value: float, type: Type) -> Value:
    """A tensor filled with one number."""
    assert isinstance(type, TensorType), type
    return tensor.Full(value, type.shape, type.dtype).result


def plus(a: Value, b: Value) -> Value:
    """a + b; if b is a slice inserted into zeros, only the slice is added."""
    for x, y in ((a, b), (b, a)):
        op = y.op
        if isinstance(op, tensor.DynamicUpdateSlice) and is_splat(op.x, 0.0):
            piece = tensor.DynamicSlice(x, op.starts, op.update.type.shape).result + op.update
            return tensor.DynamicUpdateSlice(x, piece, op.starts).result
    return a + b


# -- activity ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Passage:
    """The active values of a body, loop-carried and captured ones by position, and the call of the body.

    Without any active value there is no request.
    """

    call: func.Call
    lead: int                                    # arguments before the loop-carried values: the counter of a `for`
    carried: tuple[int, ...]
    captured: tuple[int, ...]
    results: tuple[int, ...]

    @property
    def request(self) -> VjpRequest | None:
        wrt = (*(self.lead + k for k in self.carried), *self.captured)
        return VjpRequest(self.call.callee, wrt, self.results) if wrt and self.results else None


def requests(op: Op, activity: Activity, table: Mapping[str, Func]) -> list[VjpRequest]:
    """The requests of a loop or conditional for its bodies."""
    return [p.request for p in _passages(op, activity, table) if p.request is not None] if is_control(op) else []


def _passages(op: Op, activity: Activity, table: Mapping[str, Func]) -> list[Passage]:
    results = tuple(j for j, r in enumerate(op.results)
                    if has_cotangent(r.type) and r in activity.active and r in activity.useful)
    if isinstance(op, scf.If):
        return [_through_branch(call, call.args, activity, table, results) for call in map(body_call, bodies(op))]
    if isinstance(op, Predicated):
        return [_through_branch(body_call(op.block), op.args, activity, table, results)]
    assert isinstance(op, scf.For | scf.While)
    return [_through_loop(op, activity, table)]


def _through_branch(call: func.Call, operands: Sequence[Value], activity: Activity, table: Mapping[str, Func],
                    results: tuple[int, ...]) -> Passage:
    """`operands` are the values outside of the branch that become the arguments of the call."""
    body = table[call.callee]
    useful = Activity.of_function(body, VjpRequest(call.callee, (), results)).useful
    captured = tuple(i for i, v in enumerate(operands)
                     if v in activity.active and has_cotangent(v.type) and body.args[i] in useful)
    return Passage(call, 0, (), captured, results)


def _through_loop(op: scf.For | scf.While, activity: Activity, table: Mapping[str, Func]) -> Passage:
    """The active and the useful loop-carried values are fixed points over the iterations."""
    call = body_call(bodies(op)[0])
    body = table[call.callee]
    lead, count = leading(op), len(op.init)
    outside = [i for i in range(lead + count, len(call.args))
               if call.args[i] in activity.active and has_cotangent(call.args[i].type)]
    active = {k for k, v in enumerate(op.init) if v in activity.active and has_cotangent(v.type)}
    useful = {k for k, r in enumerate(op.results) if r in activity.useful and has_cotangent(r.type)}
    returned = body.block.terminator.operands
    while True:
        wrt = (*(lead + k for k in sorted(active)), *outside)
        reached = Activity.of_function(body, VjpRequest(call.callee, wrt, ())).active
        needed = Activity.of_function(body, VjpRequest(call.callee, (), tuple(sorted(useful)))).useful
        more = {k for k, v in enumerate(returned) if v in reached and has_cotangent(v.type)} - active
        back = {k for k in range(count) if body.args[lead + k] in needed and has_cotangent(op.init[k].type)} - useful
        if not more and not back:
            break
        active |= more
        useful |= back
    both = tuple(sorted(active & useful))
    return Passage(call, lead, both, tuple(i for i in outside if body.args[i] in needed), both)


# -- forward and backward ---------------------------------------------------------------------------------------------
def forward(op: Op, activity: Activity, made: Mapping[VjpRequest, VjpFunctions], table: Mapping[str, Func],
                 function: Func) -> tuple[Sequence[Value], Rule]:
    """The results of a loop or conditional that saves residuals, followed by the residuals; and its rule.

    Operations are inserted at the insertion point, which is before `op`; new functions after `function`.
    """
    passages = _passages(op, activity, table)
    pairs = [made[p.request] if p.request is not None else None for p in passages]
    if isinstance(op, scf.If):
        return _if(op, passages, pairs)
    if isinstance(op, Predicated):
        return _predicated(op, passages[0], pairs[0])
    assert isinstance(op, scf.For | scf.While)
    if pairs[0] is None:
        copy = op.insert_clone({})
        return copy.results, lambda *cts: []
    iteration = _Iteration(op, passages[0], pairs[0])
    count = trip_count(op) if isinstance(op, scf.For) else None
    return _taped(op, iteration, count) if count is not None else _repeated(op, iteration, function)


# -- if ---------------------------------------------------------------------------------------------------------------
def _if(op: scf.If, passages: Sequence[Passage], pairs: Sequence[VjpFunctions | None]) -> tuple[Sequence[Value], Rule]:
    """Both branches save into shared slots: for each type, the maximum that a branch needs."""
    args = [list(p.call.args) for p in passages]         # the calls are gone when the rule runs
    slots: list[Type] = []
    places: list[list[int]] = []
    blocks = [Block(), Block()]
    kept: list[list[Value]] = []
    for block, passage, pair in zip(blocks, passages, pairs):
        call = passage.call
        with at_end(block, builder.loc):
            results = func.call(pair.forward, call.args) if pair is not None else call.insert_clone({}).results
            values = [] if pair is None else [as_tensor((*call.args, *results)[p]) for p in _own(pair)]
        places.append(_placed(slots, [v.type for v in values]))
        kept.append([*results[: len(op.results)], *values])
    own = [r.type for r in op.results]
    for block, place, given in zip(blocks, places, kept):
        with at_end(block, builder.loc):
            saved = dict(zip(place, given[len(own):]))
            scf.Yield((*given[: len(own)], *(saved[i] if i in saved else full(0, t) for i, t in enumerate(slots))))
    new = scf.If(op.condition, Region(blocks[0]), Region(blocks[1]), (*own, *slots))
    filled = new.results[len(own):]
    targets = list(dict.fromkeys(given[i] for p, given in zip(passages, args) for i in p.captured))

    def rule(*cts: Value | None) -> list[tuple[Value, Value | None]]:
        given = [_or_zeros(cts[j], op_type) for j, op_type in ((j, own[j]) for j in passages[0].results)]
        back = [Block(), Block()]
        for block, passage, pair, place, captured in zip(back, passages, pairs, places, args):
            with at_end(block, builder.loc):
                found: dict[Value, Value] = {}
                if pair is not None:
                    saved = dict(zip(_own(pair), [filled[i] for i in place]))
                    types = [v.type for v in (*pair.forward.args, *pair.forward.block.terminator.operands)]
                    known = [as_scalar(saved[p], types[p]) if p in saved else captured[p] for p in pair.saved]
                    gradients = func.splice(pair.backward, [*given, *known])
                    for i, ct in zip(passage.captured, gradients):
                        v = captured[i]
                        found[v] = plus(found[v], ct) if v in found else ct
                scf.Yield(tuple(found[v] if v in found else full(0.0, v.type) for v in targets))
        results = scf.If(new.condition, Region(back[0]), Region(back[1]), tuple(v.type for v in targets)).results
        return list(zip(targets, results))

    return new.results, rule


def _predicated(op: Predicated, passage: Passage, pair: VjpFunctions | None) -> tuple[Sequence[Value], Rule]:
    """Only the arguments are saved: backward recomputes the body under the predicate."""
    p, args, carried = op.p, list(op.args), op.carried
    results = op.insert_clone({}).results
    types = [r.type for r in results]

    def rule(*cts: Value | None) -> list[tuple[Value, Value | None]]:
        given = {j: _or_zeros(cts[j], types[j]) for j in passage.results}
        kept = [(args[j], select(beside(p, ct), zeros(ct), ct)) for j, ct in given.items() if j < carried]
        if pair is None:
            return list(kept)
        zero = [zeros(args[i]) for i in passage.captured]
        new = predicated(p, zero, [*given.values(), *args])
        own = new.block.args[len(zero):]
        with at_end(new.block, builder.loc):
            known = [*own[len(given):], *func.splice(pair.forward, own[len(given):])]
            PredicatedYield(tuple(func.splice(pair.backward, [*own[: len(given)], *(known[q] for q in pair.saved)])))
        drop_unused(new)
        return [*kept, *zip([args[i] for i in passage.captured], new.results)]

    return results, rule


def _own(pair: VjpFunctions) -> list[int]:
    """The positions of the values that a branch saves, except captured ones."""
    return [p for p in pair.saved if p >= len(pair.forward.args)]


def _placed(slots: list[Type], types: Sequence[Type]) -> list[int]:
    """A distinct slot for each type; missing slots are appended."""
    out: list[int] = []
    for type in types:
        at = next((i for i, t in enumerate(slots) if t == type and i not in out), len(slots))
        if at == len(slots):
            slots.append(type)
        out.append(at)
    return out


def _or_zeros(ct: Value | None, type: Type) -> Value:
    return ct if ct is not None else full(0.0, type)


def as_tensor(v: Value) -> Value:
    """A scalar as a tensor, which can be saved in a tape."""
    return v if isinstance(v.type, TensorType) else from_scalar(v)


def as_scalar(v: Value, type: Type) -> Value:
    """The inverse of `as_tensor`."""
    if isinstance(type, TensorType):
        return v
    return as_index(v) if type == index else tensor.Item(v).result


# -- loops ------------------------------------------------------------------------------------------------------------
class _Iteration:
    """One iteration of a loop, forward and backward, for both placements of the tapes.

    taped   positions, in (arguments, results of the forward function), of what each iteration saves
    """

    def __init__(self, op: scf.For | scf.While, passage: Passage, pair: VjpFunctions) -> None:
        self.passage = passage
        self.pair = pair
        self.args = list(passage.call.args)
        self.lead = passage.lead
        self.count = len(op.init)
        self.known = [*pair.forward.args, *pair.forward.block.terminator.operands]
        first = self.lead + self.count
        self.taped = [p for p in pair.saved if self.lead <= p < first or p >= len(self.args)]

    def tapes(self, rows: Dim) -> list[Value]:
        """Empty tapes."""
        return [full(0, TensorType((rows, *t.shape), t.dtype)) for t in map(self.tape_type, self.taped)]

    def tape_type(self, position: int) -> TensorType:
        type = self.known[position].type
        if isinstance(type, TensorType):
            return type
        return TensorType((), i64 if type == index else type)

    def forward(self, row: Value, counter: Sequence[Value], carried: Sequence[Value], captured: Sequence[Value],
                tapes: Sequence[Value]) -> list[Value]:
        """The loop-carried values after an iteration, and the tapes."""
        args = [*counter, *carried, *captured]
        results = func.splice(self.pair.forward, args)
        known = [*args, *results]
        return [*results[: self.count],
                *(write(tape, row, as_tensor(known[p])) for tape, p in zip(tapes, self.taped))]

    def backward(self, row: Value, counter: Sequence[Value], captured: Sequence[Value], tapes: Sequence[Value],
                 cotangents: Sequence[Value]) -> list[Value]:
        """The cotangents of the loop-carried values before an iteration, and those of captured ones, accumulated."""
        saved = {p: as_scalar(read(tape, row, self.tape_type(p)), self.known[p].type)
                 for tape, p in zip(tapes, self.taped)}
        outside = dict(enumerate(captured, self.lead + self.count)) | dict(enumerate(counter))
        known = [saved[p] if p in saved else outside[p] for p in self.pair.saved]
        own = len(self.passage.carried)
        found = func.splice(self.pair.backward, [*cotangents[:own], *known])
        return [*found[:own], *(plus(a, b) for a, b in zip(cotangents[own:], found[own:]))]

    def captured(self) -> list[Value]:
        return self.args[self.lead + self.count:]

    def targets(self, op: scf.For | scf.While) -> list[Value]:
        """The values that get cotangents: initial values of the loop, then captured ones."""
        return [*(op.init[k] for k in self.passage.carried), *(self.args[i] for i in self.passage.captured)]


def write(tape: Value, row: Value, value: Value) -> Value:
    """The tape with `value` in a row."""
    shape = value.type.shape
    starts = (row, *(size_tensor(0, i64) for _ in shape))
    return tensor.DynamicUpdateSlice(tape, reshape(value, (1, *shape)), starts).result


def read(tape: Value, row: Value, type: TensorType) -> Value:
    """A row of a tape."""
    starts = (row, *(size_tensor(0, i64) for _ in type.shape))
    return reshape(tensor.DynamicSlice(tape, starts, (1, *type.shape)).result, type.shape)


def _counter(lower: Value, step: Value, number: Value) -> Value:
    """The counter of a loop in one iteration: lower + number * step"""
    return arith.AddI(lower, arith.MulI(number, step).result).result


def _taped(op: scf.For | scf.While, iteration: _Iteration, count: Dim) -> tuple[Sequence[Value], Rule]:
    """A loop with a known trip count. Tapes of symbolic length have an extra row, since the trip count may be 0."""
    assert isinstance(op, scf.For)
    rows = max(1, count) if isinstance(count, int) else count + 1
    captured = iteration.captured()

    def body(i: Value, *carried: Value) -> list[Value]:
        return iteration.forward(from_index(i), [_counter(op.lower, op.step, i)], carried[: iteration.count], captured,
                             carried[iteration.count:])

    lower, step = op.lower, op.step
    results = for_loop(0, count, [*op.init, *iteration.tapes(rows)], body)
    tapes = results[iteration.count:]
    targets = iteration.targets(op)
    types = [op.results[j].type for j in iteration.passage.results]

    def rule(*cts: Value | None) -> list[tuple[Value, Value | None]]:
        def back(i: Value, *cotangents: Value) -> list[Value]:
            last = arith.SubI(as_index(count), arith.constant(1, index)).result
            k = arith.SubI(last, i).result
            return iteration.backward(from_index(k), [_counter(lower, step, k)], captured, tapes, cotangents)
        given = [_or_zeros(cts[j], t) for j, t in zip(iteration.passage.results, types)]
        start = [*given, *(zeros(v) for v in targets[len(given):])]
        return list(zip(targets, for_loop(0, count, start, back)))

    return results, rule


def _repeated(op: scf.For | scf.While, iteration: _Iteration, function: Func) -> tuple[Sequence[Value], Rule]:
    """A loop with a data-dependent trip count: counted in forward, replayed by backward."""
    start: list[Value] = []
    if isinstance(op, scf.For):
        new: Op = op.insert_clone({})
        count = _count(op)
        results: Sequence[Value] = new.results
        start = [as_tensor(op.lower), as_tensor(op.step)]
    else:
        results, count = _counted(op)
    targets = iteration.targets(op)
    init, captured = list(op.init), iteration.captured()
    types = [op.results[j].type for j in iteration.passage.results]
    replay = _replay(function, op, iteration, [*start, *init, *captured], len(start))

    def rule(*cts: Value | None) -> list[tuple[Value, Value | None]]:
        given = [_or_zeros(cts[j], t) for j, t in zip(iteration.passage.results, types)]
        backward = builder.block.parent_op if builder.block is not None else None
        assert backward is not None and function.parent_op is not None
        taken = func.size_names(backward) | func.size_names(function.parent_op)
        bound = BindSize(count, sizes.sym(func.free_name("trips", taken))).result
        return list(zip(targets, func.call(replay, [bound, count, *start, *init, *captured, *given])))

    return results, rule


def _count(op: scf.For) -> Value:
    """ceil(max(0, upper - lower) / step), as a tensor"""
    span = arith.MaxSI(arith.SubI(op.upper, op.lower).result, arith.constant(0, index)).result
    round_up = arith.SubI(op.step, arith.constant(1, index)).result
    return from_index(arith.FloorDivSI(arith.AddI(span, round_up).result, op.step).result)


def _counted(op: scf.While) -> tuple[Sequence[Value], Value]:
    """The results of a loop that also counts its iterations, and the trip count."""
    def body(values: Sequence[Value]) -> list[Value]:
        mapping: dict[Value, Value] = dict(zip(op.after.block.args, values))
        return [*body_call(op.after.block).insert_clone(mapping).results, values[-1] + size_tensor(1, i64)]

    results = while_of(op, [*op.init, size_tensor(0, i64)], body).results
    return results, results[-1]


def _replay(function: Func, op: scf.For | scf.While, iteration: _Iteration, values: Sequence[Value], lead: int) -> Func:
    """A function that replays the loop and then runs it in reverse.

    Its arguments are a tensor that binds the trip count, the trip count, lower bound and step of a `for`, the initial
    values, captured values and cotangents.
    """
    types = [v.type for v in values]
    result_types = [op.results[j].type for j in iteration.passage.results]
    module = function.parent_op
    assert module is not None
    rows = sizes.sym(func.free_name("trips", func.size_names(module)))
    replay = func.function("", [TensorType((rows, 0), i1), TensorType((), i64), *types, *result_types], private=True)
    replay.loc = op.loc.through(PASS_NAME)
    replay.attrs[RECOMPUTE] = True                         # only this function binds the length of its tapes
    n, rest = replay.args[1], list(replay.args[2:])
    start, rest = rest[:lead], rest[lead:]
    init, rest = rest[: iteration.count], rest[iteration.count:]
    captured, cotangents = rest[: len(rest) - len(result_types)], rest[len(rest) - len(result_types):]
    with at_end(replay.block, replay.loc):
        count = as_index(n)
        bounds = [as_index(v) for v in start]

        def counter(i: Value) -> list[Value]:
            return [_counter(bounds[0], bounds[1], i)] if bounds else []

        def body(i: Value, *carried: Value) -> list[Value]:
            return iteration.forward(from_index(i), counter(i), carried[: iteration.count], captured,
                                     carried[iteration.count:])

        def back(i: Value, *found: Value) -> list[Value]:
            k = arith.SubI(arith.SubI(count, arith.constant(1, index)).result, i).result
            return iteration.backward(from_index(k), counter(k), captured, tapes, found)

        tapes = for_loop(0, count, [*init, *iteration.tapes(rows + 1)], body)[iteration.count:]
        offset = iteration.lead + iteration.count
        zero = [zeros(captured[i - offset]) for i in iteration.passage.captured]
        func.Return(tuple(for_loop(0, count, [*cotangents, *zero], back)))
    replay.update_type()
    block = function.parent
    assert block is not None
    replay.sym_name = func.free_symbol(block, f"{iteration.passage.call.callee}_replay")
    block.insert(replay, function.next)
    return replay
