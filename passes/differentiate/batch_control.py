"""differentiate, batch, control flow: loops and conditionals with a batch axis.

If all batch elements take the same branch and trip count, the loop or conditional stays, on batched values. Otherwise
each batch element has a predicate:

    for       a common counter from the least lower to the greatest upper bound; an element is active within its bounds
    while     runs until the condition is false for every batch element
    if        runs both branches, one after the other, each for its batch elements

and the body becomes an `autodiff.predicated` region (dialects/autodiff/predication.py). A body that may fail or not
terminate runs only if some batch element is active.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlc.dialects import arith, func, scf, tensor
from mlc.dialects.autodiff.predication import Predicated, drop_unused, predicated
from mlc.dialects.autodiff.predication import Yield as PredicatedYield
from mlc.dialects.tensor.base import compare, full, select
from mlc.dialects.tensor.control import as_condition, from_scalar, scalar_dtype
from mlc.dialects.tensor.traits import checked_operand
from mlc.ir.core import Block, Op, Region, Value, at_end
from mlc.ir.types import FloatType, IndexType, IntType, TensorType, index, int_range
from mlc.passes.analysis.effects import is_pure
from mlc.passes.differentiate.batch_operations import BatchCoroutine, BatchScope, BlockBatcher, Flagged, batched_type
from mlc.passes.differentiate.predicated import beside

Fill = Callable[[BatchScope, Sequence[Value], Sequence[Value]], BatchCoroutine]
"""Builds the body of a predicated region: new carried values from the carried ones and further arguments."""


class Batcher(BlockBatcher):
    """Batches operations and control flow."""

    def control(self, op: Op, scope: BatchScope) -> BatchCoroutine:
        if isinstance(op, scf.For):
            yield from self._for(op, scope)
        elif isinstance(op, scf.If):
            yield from self._if(op, scope)
        elif isinstance(op, scf.While):
            yield from self._while(op, scope)
        elif isinstance(op, Predicated):
            yield from self._predicated(op, scope)
        else:
            op.fail("is not a loop or conditional on tensors, and cannot be batched", code="MLC0137")

    # -- for ----------------------------------------------------------------------------------------------------------
    def _for(self, op: scf.For, scope: BatchScope) -> BatchCoroutine:
        bounds = scope.get([op.lower, op.upper, op.step])
        if any(is_batched for _, is_batched in bounds):
            yield from self._for_by_element(op, bounds, scope)
            return
        (lower, _), (upper, _), (step, _) = bounds
        start = scope.get(op.init)
        flags = [is_batched for _, is_batched in start]
        while True:                              # to a fixed point of the batched values
            loop = scf.loop(lower, upper, step, self.typed(start, flags))
            scope.bind(op.counter, loop.counter, False)
            enter(op.carried, loop.carried, flags, scope)
            with at_end(loop.block):
                ends = yield from self.block(op.block, scope)
                if not grown(flags, ends):
                    scf.Yield(tuple(self.typed(ends, flags)))
                    break
            loop.erase()
        enter(op.results, loop.results, flags, scope)

    def _for_by_element(self, op: scf.For, bounds: Flagged, scope: BatchScope) -> BatchCoroutine:
        """A loop with batched bounds. If lower bounds or steps differ, so do the counters, unless all steps are 1."""
        if is_dead(op):
            return
        (_, own_lower), (_, own_upper), (step, own_step) = bounds
        kind = op.lower.type
        first, end, by = (v if own else from_scalar(v) for v, own in bounds)
        if own_step or (own_lower and not is_one(op.step)):
            together, step = False, arith.constant(1, kind)
            count: Value = tensor.FloorDiv(end - first + by - full(1, by), by).result
            low, high = arith.constant(0, kind), self.extreme("max", count, scope, kind)
        else:
            together, count = True, end
            low = self.extreme("min", first, scope, kind) if own_lower else bounds[0][0]
            high = self.extreme("max", end, scope, kind) if own_upper else bounds[1][0]
        if together and own_lower:               # the difference must not overflow for an empty batch
            low = arith.MinSI(low, high).result
        else:
            high = arith.MaxSI(high, low).result
        loop = scf.loop(low, high, step, self.typed(scope.get(op.init), [True] * len(op.init)))

        def fill(inner: BatchScope, init: Sequence[Value], others: Sequence[Value]) -> BatchCoroutine:
            inner.bind(op.counter, others[0], not together)
            enter(op.carried, init, [True] * len(init), inner)
            return (yield from self.block(op.block, inner))

        with at_end(loop.block):
            number = from_scalar(loop.counter)
            counts = self.active(compare("lt", number, count), scope)
            if together and own_lower:
                counts = both(counts, compare("ge", number, first))
            counter: Value = loop.counter if together else first + number * by
            scf.Yield(tuple((yield from self.under(counts, loop.carried, [counter], [op.block], scope, fill,
                                                   guarded=together and own_lower))))
        enter(op.results, loop.results, [True] * len(op.results), scope)

    def extreme(self, which: str, x: Value, scope: BatchScope, kind: IntType | IndexType) -> Value:
        """The minimum or maximum over the active elements, as a scalar; without any, the loop is empty."""
        low, high = int_range(scalar_dtype(kind))
        if scope.active is not None:
            x = select(scope.active, x, full(low if which == "max" else high, x))
        found = (tensor.ReduceMax if which == "max" else tensor.ReduceMin)(x, (0,)).result
        scalar = tensor.Item(found).result
        return arith.IndexCast(scalar, index).result if kind == index else scalar

    # -- if -----------------------------------------------------------------------------------------------------------
    def _if(self, op: scf.If, scope: BatchScope) -> BatchCoroutine:
        (condition, is_batched), = scope.get([op.condition])
        if is_batched:
            yield from self._if_by_element(op, condition, scope)
            return
        blocks, ends = (Block(), Block()), list[Flagged]()
        for region, block in zip(op.regions, blocks):
            with at_end(block):
                ends.append((yield from self.block(region.block, scope)) if region.blocks else [])
        flags = [False] * len(op.results)
        for end in ends:
            grown(flags, end)
        for block, end in zip(blocks, ends):
            with at_end(block):
                scf.Yield(tuple(self.typed(end, flags)))
        types = tuple(v.type for v in blocks[0].terminator.operands)
        made = scf.If(condition, Region(blocks[0]), Region(blocks[1]), types)
        enter(op.results, made.results, flags, scope)

    def _if_by_element(self, op: scf.If, condition: Value, scope: BatchScope) -> BatchCoroutine:
        """Start from zeros, and overwrite them with the results of each branch for the elements that take it."""
        if is_dead(op):
            return
        types = [batched_type(r.type, self.batch_size, op.loc) for r in op.results]
        results: Sequence[Value] = [tensor.Full(0, t.shape, t.dtype).result for t in types]
        for region, chosen in zip(op.regions, (condition, tensor.LogicalNot(condition).result)):
            def fill(inner: BatchScope, _: Sequence[Value], __: Sequence[Value],
                     source: Block = region.block) -> BatchCoroutine:
                return (yield from self.block(source, inner))
            results = yield from self.under(self.active(chosen, scope), results, [], [region.block], scope, fill,
                                            guarded=True)
        enter(op.results, results, [True] * len(results), scope)

    # -- while --------------------------------------------------------------------------------------------------------
    def _while(self, op: scf.While, scope: BatchScope) -> BatchCoroutine:
        start = scope.get(op.init)
        flags = [is_batched for _, is_batched in start]
        while True:                              # to a fixed point of the batched values
            inits = self.typed(start, flags)
            before = Block([v.type for v in inits])
            enter(op.before.block.args, before.args, flags, scope)
            with at_end(before):
                (going, differs), *values = yield from self.block(op.before.block, scope)
                scf.Condition(going, tuple(v for v, _ in values)) if not differs else None
            if differs:
                discard(before)
                yield from self._while_by_element(op, scope)
                return
            middle = [is_batched for _, is_batched in values]
            after = Block([v.type for v, _ in values])
            enter(op.after.block.args, after.args, middle, scope)
            with at_end(after):
                ends = yield from self.block(op.after.block, scope)
                if not grown(flags, ends):
                    scf.Yield(tuple(self.typed(ends, flags)))
                    break
            discard(before)
            discard(after)
        made = scf.While(tuple(inits), Region(before), Region(after), tuple(a.type for a in after.args))
        enter(op.results, made.results, middle, scope)

    def _while_by_element(self, op: scf.While, scope: BatchScope) -> BatchCoroutine:
        """y = before(x); while any batch element is active: y = before(after(y)) in the active elements."""
        def all_batched(values: Sequence[Value]) -> list[bool]:
            return [True] * len(values)

        inits = self.typed(scope.get(op.init), all_batched(op.init))
        enter(op.before.block.args, inits, all_batched(inits), scope)
        ends = yield from self.block(op.before.block, scope)
        going, *values = self.typed(ends, [True] * len(ends))
        init = [self.active(going, scope), *values]
        types = [v.type for v in init]
        before, after = Block(types), Block(types)
        with at_end(before):
            scf.Condition(as_condition(tensor.ReduceAny(before.args[0], (0,)).result), tuple(before.args))

        def fill(inner: BatchScope, init: Sequence[Value], _: Sequence[Value]) -> BatchCoroutine:
            enter(op.after.block.args, init[1:], all_batched(init[1:]), inner)
            ends = yield from self.block(op.after.block, inner)
            for arg, (value, is_batched) in zip(op.before.block.args, ends):
                inner.bind(arg, value, is_batched)
            return (yield from self.block(op.before.block, inner))

        with at_end(after):
            scf.Yield(tuple((yield from self.under(after.args[0], after.args, [], [op.after.block, op.before.block],
                                                   scope, fill))))
        made = scf.While(tuple(init), Region(before), Region(after), tuple(types))
        enter(op.results, made.results[1:], all_batched(op.results), scope)

    # -- predicated regions -------------------------------------------------------------------------------------------
    def _predicated(self, op: Predicated, scope: BatchScope) -> BatchCoroutine:
        """Nested batching: the predicate gets one more axis."""
        p, *args = scope.get(op.operands)
        holds = self.active(self.spread(*p), scope)
        own = [is_batched or i < op.carried or has_float(v) for i, (v, is_batched) in enumerate(args)]
        values = self.typed(args, own)

        def fill(inner: BatchScope, init: Sequence[Value], others: Sequence[Value]) -> BatchCoroutine:
            enter(op.block.args, [*init, *others], own, inner)
            return (yield from self.block(op.block, inner))

        results = yield from self.under(holds, values[: op.carried], values[op.carried:], [op.block], scope, fill)
        enter(op.results, results, [True] * len(results), scope)

    def under(self, p: Value, init: Sequence[Value], others: Sequence[Value], sources: Sequence[Block],
              scope: BatchScope, fill: Fill, guarded: bool = False) -> BatchCoroutine:
        """The results of `fill` on `sources` where p holds, else `init`; `guarded` if p may be false everywhere."""
        guarded = guarded and any(may_fail(op) for block in sources for op in block)
        if not guarded:
            return (yield from self._under(p, init, others, sources, scope, fill))
        blocks = Block(), Block()
        with at_end(blocks[0]):
            scf.Yield(tuple((yield from self._under(p, init, others, sources, scope, fill))))
        with at_end(blocks[1]):
            scf.Yield(tuple(init))
        condition = as_condition(tensor.ReduceAny(p, tuple(range(p.type.rank))).result)
        return scf.If(condition, Region(blocks[0]), Region(blocks[1]), tuple(v.type for v in init)).results

    def _under(self, p: Value, init: Sequence[Value], others: Sequence[Value], sources: Sequence[Block],
               scope: BatchScope, fill: Fill) -> BatchCoroutine:
        used = outside(sources)
        made_inside = [v for v in used if is_source(v)]
        passed = [v for v in used if not is_source(v)]
        flags = [is_batched or has_float(v) for v, is_batched in scope.get(passed)]
        values = self.typed(scope.get(passed), flags)
        active = tensor.ReduceAny(p, tuple(range(1, p.type.rank))).result if p.type.rank > 1 else p
        op = predicated(p, init, [active, *others, *values])
        count, args = len(init), op.block.args
        inner = BatchScope(args[count])
        enter(passed, args[count + 1 + len(others):], flags, inner)
        with at_end(op.block):
            for source in dict.fromkeys(v.op for v in made_inside):
                assert source is not None
                self.copy(source, inner)
            ends = yield from fill(inner, args[:count], args[count + 1: count + 1 + len(others)])
            PredicatedYield(tuple(self.typed(ends, [True] * count)))
        drop_unused(op)
        return op.results

    # -- helpers ------------------------------------------------------------------------------------------------------
    def typed(self, values: Flagged, flags: Sequence[bool]) -> list[Value]:
        """The values, with a batch axis where `flags` says so."""
        return [self.spread(v, is_batched) if wanted else v for (v, is_batched), wanted in zip(values, flags)]

    def active(self, p: Value, scope: BatchScope) -> Value:
        """p restricted to the active batch elements."""
        return p if scope.active is None else both(p, beside(scope.active, p))


def both(a: Value, b: Value) -> Value:
    return tensor.And(a, b).result


def has_float(value: Value) -> bool:
    """Whether a value is differentiable, and therefore must be batched inside a predicated region."""
    return isinstance(value.type, TensorType) and isinstance(value.type.dtype, FloatType)


def is_one(value: Value) -> bool:
    return isinstance(value.op, arith.Constant) and value.op.value == 1


def is_source(value: Value) -> bool:
    """Whether an operation without operands defines the value; it is cloned next to its uses."""
    op = value.op
    return op is not None and op.pure and not op.operands and not op.regions and not op.binds_size


def is_dead(op: Op) -> bool:
    """Whether an operation has no results and nothing in it may fail or does anything else."""
    return not op.results and is_pure(op, ())


def may_fail(op: Op) -> bool:
    """Whether an operation, or one nested in it, may fail or not terminate."""
    return any(checked_operand(inner) is not None or isinstance(inner, scf.While | func.Call) or inner.binds_size
               for inner in op.walk())


def outside(blocks: Sequence[Block]) -> list[Value]:
    """The values used in blocks and defined outside of them, in order of use."""
    own: set[Value] = {a for block in blocks for a in block.args}
    out: dict[Value, None] = {}
    for block in blocks:
        for top in block:
            for op in top.walk():
                out.update((v, None) for v in op.operands if v not in own)
                own.update(op.results)
                own.update(a for region in op.regions for b in region.blocks for a in b.args)
    return list(out)


def enter(old: Sequence[Value], new: Sequence[Value], flags: Sequence[bool], scope: BatchScope) -> None:
    """Map values of the function to batched ones."""
    for a, b, is_batched in zip(old, new, flags, strict=True):
        scope.bind(a, b, is_batched)


def grown(flags: list[bool], ends: Flagged) -> bool:
    """Mark as batched the values that a body yields batched; returns whether any is new."""
    before = list(flags)
    flags[:] = [a or b for a, (_, b) in zip(flags, ends)]
    return flags != before


def discard(block: Block) -> None:
    """Erase all operations of a block."""
    for op in reversed(list(block)):
        op.erase()
