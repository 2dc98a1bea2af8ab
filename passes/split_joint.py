"""Split a joint function of primals and cotangents into a forward and a backward function.

takes  REAL, after derivatives are expanded
gives  REAL; @f with the attribute `joint = [p, r]` calls @f_forward and @f_backward
why    the two run at different times: `backward()` comes when the program has computed a loss from the results

    f(primals, cotangents)         -> results, gradients     of which p are primals, and r results
    f_forward(primals)             -> results, saved values
    f_backward(cotangents, saved)  -> gradients

The attribute `saved` of @f_backward has, for each argument behind the cotangents, its number among the primals and the
results of @f_forward. Of the results of @f it has those that the attribute `returned` of @f lists, all if there is
none.

Saved are the results of operations that have loops of their own (products, reductions, scans, calls) and what such
operations read, since those are written to memory anyway. What is computed element by element from these, or from
primals, is computed again, unless what it is computed from takes more memory than itself (as the random numbers do that
a mask is made of). What the results do not need is computed by backward, as the weights are that the derivative of
attention computes anew. AOTAutograd's partitioners do the same with other weights (Horace He and Shangdi Yu 2022,
"Min-Cut Optimal Recomputation"); JAX calls the policy `dots_saveable`. Composites of elements and reductions, such as
norms, are taken apart before, so that what both halves compute of them is found to be the same.

A function stays joint if a result depends on a cotangent, or backward needs a size that depends on data.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import func
from mlc.dialects.func import Func
from mlc.dialects.tensor.composite import Composite
from mlc.dialects.tensor.traits import FusionInterface, Iteration, is_free
from mlc.ir import sizes
from mlc.ir.core import Op, Value, at_end
from mlc.ir.passes import Pass
from mlc.ir.types import TensorType
from mlc.passes import canonicalize, cse, decompose
from mlc.passes.analysis.free_values import free_values
from mlc.passes.differentiate import bodies
from mlc.passes.forms import REAL

JOINT = "joint"
"""Attribute of a joint function: how many of its arguments are primals, and how many of its values are results."""

RETURNED = "returned"
"""Attribute of a joint function: the numbers of the results that are at hand when backward runs."""

SAVED = "saved"
"""Attribute of a backward function, as above."""

TYPICAL = 64
"""The number that a symbolic size counts as where bytes are compared."""

_ELEMENTS = (Iteration.POINTWISE, Iteration.INDEXED, Iteration.VIEW)


def run(module: Op) -> None:
    """Split every function that is joint."""
    joint = [function for function in func.functions(module) if JOINT in function.attrs]
    if joint:
        decompose.expand(module, lambda op: not (isinstance(op, Composite) and op.of_elements))
        canonicalize.run(module)
        cse.run(module)
    for function in joint:
        _Split(function).run()


class _Split:
    """One function while it is split.

    pulled  the operations that depend on a cotangent
    forward the operations that the results need
    at_hand the results that backward may read
    order   the place of each operation
    saved   the values that backward takes from forward, or from its primals
    again   the operations that backward computes again
    """

    def __init__(self, function: Func) -> None:
        self.function = function
        self.primals, self.count = function.attrs[JOINT]
        self.ops = [op for op in function.block if not op.terminator]
        self.order = {op: n for n, op in enumerate(self.ops)}
        self.uses = {op: free_values(op) for op in self.ops}
        returned = function.block.terminator.operands
        self.results, self.gradients = returned[:self.count], returned[self.count:]
        self.cotangents = function.args[self.primals:]
        self.pulled = self._depending(self.cotangents)
        self.forward = self._needed([op for op in self.ops if op not in self.pulled], self.results)
        self.at_hand = {self.results[n] for n in function.attrs.get(RETURNED, range(self.count))}
        self.saved: dict[Value, None] = {}
        self.again = set[Op]()

    def run(self) -> None:
        if any(v in self.cotangents or v.op in self.pulled for v in self.results):
            return
        for v in self._read_by_backward():
            self._demand(v)
        if self._bind_sizes() and all(isinstance(v.type, TensorType) for v in self.saved):
            self._emit()

    def _depending(self, values: Sequence[Value]) -> set[Op]:
        """The operations that depend on any of these values."""
        moved, out = {*values}, set[Op]()
        for op in self.ops:
            if any(v in moved for v in self.uses[op]):
                out.add(op)
                moved.update(op.results)
        return out

    def _needed(self, ops: Sequence[Op], values: Sequence[Value]) -> set[Op]:
        """Those of the operations, in order, that compute values or do more than that."""
        needed, out = {*values}, set[Op]()
        for op in reversed(ops):
            if not op.pure or op.binds_size or any(r in needed for r in op.results):
                out.add(op)
                needed.update(self.uses[op])
        return out

    def _read_by_backward(self) -> list[Value]:
        """The values that backward reads and that depend on no cotangent, in the order in which they are computed."""
        read = dict.fromkeys(v for op in self.ops if op in self.pulled for v in self.uses[op])
        read |= dict.fromkeys(self.gradients)
        found = [v for v in read if v not in self.cotangents and v.op not in self.pulled]
        return sorted(found, key=lambda v: -1 if v.op is None else self.order[v.op])

    # -- what is saved ------------------------------------------------------------------------------------------------
    def _demand(self, value: Value) -> None:
        """Have backward know a value: save it, or what it is computed from."""
        leaves: dict[Value, frozenset[Value]] = {}
        for op in self._computing(value):
            found = frozenset[Value]().union(*(leaves.get(x, frozenset((x,))) for x in self.uses[op]))
            found -= self._known(found)
            again = not found or is_free(op) or not _of_elements(op) or _bytes(found) < _bytes(op.results)
            leaves.update((r, found if again else frozenset((r,))) for r in op.results)
        chosen = leaves.get(value, frozenset((value,)))
        for x in sorted(chosen, key=lambda x: -1 if x.op is None else self.order[x.op]):
            self.saved.setdefault(x)
        self._repeat(value)

    def _computing(self, value: Value) -> list[Op]:
        """The operations that a value is computed by, in order, back to what is saved in any case."""
        found, work = set[Op](), [value]
        while work:
            op = work.pop().op
            if op is not None and op not in found and self._may_repeat(op):
                found.add(op)
                work += self.uses[op]
        return sorted(found, key=self.order.__getitem__)

    def _may_repeat(self, op: Op) -> bool:
        """Whether backward may compute an operation again, which it does not yet."""
        if op in self.again or any(r in self.saved or r in self.at_hand for r in op.results):
            return False
        if op not in self.forward or (op.pure and not op.operands):
            return True
        if not op.pure or not _of_elements(op):
            return False
        return is_free(op) or not any(user in self.forward and _has_loops(user) for r in op.results for user in r.users)

    def _known(self, values: frozenset[Value]) -> frozenset[Value]:
        """Those of the values that backward has at no cost: primals, and what it has already."""
        return frozenset(v for v in values if v.op is None or v in self.saved or v.op in self.again
                         or v in self.at_hand)

    def _repeat(self, value: Value) -> None:
        """Have backward compute a value from what is saved."""
        work = [value]
        while work:
            v = work.pop()
            if v in self.saved or v.op in self.again:
                continue
            if v.op is None or v in self.at_hand:
                self.saved.setdefault(v)
            else:
                self.again.add(v.op)
                work += self.uses[v.op]

    def _bind_sizes(self) -> bool:
        """Save primals that bind the sizes which backward uses and nothing else of it binds; whether all are bound, and
        the sizes of all that is saved are those of primals."""
        primals = self.function.args[:self.primals]
        given = {n for v in primals for n in bodies.bound_sizes(v.type)}
        if any(not given.issuperset(sizes.symbols(*_shape(v))) for v in self.saved):
            return False
        inside = [*self.pulled, *self.again]
        wanted = {name for op in inside for o in op.walk() for name in bodies.size_symbols(o)}
        values = (*self.gradients, *self.cotangents, *self.saved)
        wanted |= {n for v in values for n in sizes.symbols(*_shape(v))}
        wanted -= {n for v in (*self.saved, *self.cotangents) for n in bodies.bound_sizes(v.type)}
        for arg in primals:
            if found := wanted.intersection(bodies.bound_sizes(arg.type)):
                self.saved.setdefault(arg)
                wanted -= found
        return not wanted

    # -- the two functions --------------------------------------------------------------------------------------------
    def _emit(self) -> None:
        primals = self.function.args[:self.primals]
        results = [*self.results]
        numbers: dict[Value, int] = {v: n for n, v in enumerate(primals)}
        for n in self.function.attrs.get(RETURNED, range(self.count)):
            numbers.setdefault(results[n], len(primals) + n)
        extra = [v for v in self.saved if v not in numbers]
        numbers |= {v: len(primals) + len(results) + n for n, v in enumerate(extra)}
        forward = self._function("forward", primals, [op for op in self.ops if op not in self.pulled],
                                 [*results, *extra])
        backward = self._function("backward", [*self.cotangents, *self.saved],
                                  [op for op in self.ops if op in self.pulled or op in self.again], self.gradients)
        backward.attrs[SAVED] = tuple(numbers[v] for v in self.saved)
        self._call(forward, backward)

    def _call(self, forward: Func, backward: Func) -> None:
        """Have the function call the two."""
        function = self.function
        for op in reversed(list(function.block)):
            op.erase()
        primals, cotangents = function.args[:self.primals], function.args[self.primals:]
        with at_end(function.block, function.loc):
            results = func.call(forward, primals)
            known = [*primals, *results]
            gradients = func.call(backward, [*cotangents, *(known[n] for n in backward.attrs[SAVED])])
            func.Return((*results[:self.count], *gradients))
        del function.attrs[JOINT]
        function.attrs.pop(RETURNED, None)

    def _function(self, suffix: str, takes: Sequence[Value], ops: Sequence[Op], gives: Sequence[Value]) -> Func:
        """A function behind this one, of these operations as far as they are needed."""
        module, needed = self.function.parent, self._needed(ops, gives)
        assert module is not None
        name = func.free_symbol(module, f"{self.function.sym_name}_{suffix}")
        made = func.function(name, [v.type for v in takes], [v.name for v in takes])
        made.loc = self.function.loc
        mapping: dict[Value, Value] = dict(zip(takes, made.args))
        with at_end(made.block, self.function.loc):
            for op in ops:
                if op in needed:
                    made.block.insert(op.clone(mapping))
            func.Return(tuple(mapping[v] for v in gives))
        made.update_type()
        module.insert(made, self.function)
        return made


def _of_elements(op: Op) -> bool:
    """Whether an operation computes or moves elements one by one."""
    return isinstance(op, FusionInterface) and op.iteration in _ELEMENTS and not op.regions


def _has_loops(op: Op) -> bool:
    """Whether an operation has loops of its own, so that what it reads is in memory."""
    return not isinstance(op, FusionInterface) or op.iteration not in (*_ELEMENTS, Iteration.REDUCE)


def _shape(value: Value) -> Sequence[sizes.Dim]:
    return value.type.shape if isinstance(value.type, TensorType) else ()


def _bytes(values: Sequence[Value] | frozenset[Value]) -> int:
    """The bytes of tensors, of sizes as they typically are."""
    found = 0
    for v in values:
        if isinstance(v.type, TensorType):
            env = dict.fromkeys(sizes.symbols(*v.type.shape), TYPICAL)
            found += max(sizes.evaluate(v.type.size, env), 0) * v.type.dtype.itemsize
    return found


PASS = Pass(run, takes=REAL, gives=REAL, whole=False)
