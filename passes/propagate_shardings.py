"""Decide how every tensor is divided among the ranks of a mesh.

takes  DECOMPOSED, where `shard.shard` may remain, with `mesh` and `arg_shardings` on the function @main
gives  the same form; each operation has its decision: `factors`, the axes of the mesh along each factor of its sharding
       rule, and `shardings`, those of its results; `result_shardings` of `open_results` are those that it decides
why    `partition` only carries out what is decided here, and what is decided can be read, and edited, in a dump

Arguments, results and `shard.shard` that say how a tensor lies are kept; the numbers in `open_results` are of results
that may be divided along further axes, as by open dimensions of Shardy's. From them shardings propagate along the
factors of operations (dialects/tensor/sharding_rule.py), to users first and then to operands. Where the tensors of an
operation disagree on an axis of the mesh, the factor is chosen that moves the fewest bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from mlc.dialects.func import Func
from mlc.dialects.shard.constraint import Shard
from mlc.dialects.shard.mesh import Axes, Mesh, Sharding
from mlc.dialects.tensor.base import TensorOp
from mlc.dialects.tensor.sharding_rule import ShardingRule
from mlc.ir.core import Op, Value
from mlc.ir.diag import IRError
from mlc.ir.passes import Pass
from mlc.ir.types import TensorType
from mlc.passes.forms import DECOMPOSED

SWEEPS = 32
"""Most sweeps over a function; each but the last divides some tensor along one more axis."""


def run(module: Op) -> None:
    """Write the decisions to all functions that have a mesh."""
    for function in module.inside(Func):
        if isinstance(function.attrs.get("mesh"), Mesh) and "partitioned" not in function.attrs:
            _Propagation(function, function.attrs["mesh"]).run()


@dataclass
class _Propagation:
    """The shardings of the tensors of a function while they are propagated.

    known  the axes of each dimension of a tensor so far
    fixed  tensors whose sharding was specified
    """

    function: Func
    mesh: Mesh
    known: dict[Value, list[Axes]] = field(default_factory=dict)
    fixed: set[Value] = field(default_factory=set)

    def run(self) -> None:
        self._start()
        all_rules = {op: op.sharding_rule() for op in self.function.block if isinstance(op, TensorOp) and op.results}
        rules = [(op, rule) for op, rule in all_rules.items() if len(op.results) == 1 and rule.extents]
        for _ in range(SWEEPS):
            changed = sum(self._spread(op, rule) for op, rule in rules)
            changed = changed or sum(self._spread(op, rule, to_operands=True) for op, rule in reversed(rules))
            if not changed:
                break
        for op, rule in all_rules.items():
            if not isinstance(op, Shard):
                op.attrs["factors"] = self._chosen(op, rule)
            op.attrs["shardings"] = tuple(self._sharding(r) for r in op.results)
        self._close_results()

    def _start(self) -> None:
        given = self.function.attrs.get("arg_shardings", ())
        for value, sharding in zip(self.function.args, given):
            if isinstance(value.type, TensorType):
                self._fix(value, sharding, self.function)
        for value in self.function.args:
            self.fixed.add(value)
        for op in self.function.block:
            if isinstance(op, Shard):
                self._fix(op.result, Sharding(op.dims), op)
        wanted = self.function.attrs.get("result_shardings", ())
        for value, sharding in zip(self.function.block.terminator.operands, wanted):
            if sharding is not None and value not in self.fixed:
                self._check(value, sharding, self.function)
                self.known[value] = list(sharding.dims)

    def _close_results(self) -> None:
        """Have the results that may be divided along further axes lie as it was decided."""
        wanted, given = list(self.function.attrs.get("result_shardings", ())), self.function.block.terminator.operands
        for i in self.function.attrs.pop("open_results", ()):
            own = self._sharding(given[i])
            wanted[i] = own if own is None or wanted[i] is None else replace(own, stage=wanted[i].stage)
        if wanted:
            self.function.attrs["result_shardings"] = tuple(wanted)

    def _fix(self, value: Value, sharding: Sharding, op: Op) -> None:
        self._check(value, sharding, op)
        self.known[value] = list(sharding.dims)
        self.fixed.add(value)

    def _check(self, value: Value, sharding: Sharding, op: Op) -> None:
        problem = sharding.problem(value.type.shape, self.mesh)
        if problem is not None:
            raise IRError(f"{value.type} cannot be divided as {sharding} over {self.mesh}: {problem}", code="MLC0962",
                          loc=value.op.loc if value.op is not None else op.loc,
                          hint="divide another dimension, or make its size a multiple")

    def _dims(self, value: Value) -> Sequence[Axes]:
        known = self.known.get(value)
        return known if known is not None else ((),) * _rank(value)

    def _sharding(self, value: Value) -> Sharding | None:
        return Sharding(tuple(self._dims(value))) if isinstance(value.type, TensorType) else None

    # -- one operation ---------------------------------------------------------------------------------------------
    def _spread(self, op: TensorOp, rule: ShardingRule, to_operands: bool = False) -> bool:
        """Have the result, or the operands, be divided as the operation is; returns whether any was not before."""
        changed = False
        for factor, axes in enumerate(self._chosen(op, rule)):
            for value, labels in zip(op.operands, rule.operands) if to_operands else ((op.result, rule.result),):
                if factor in labels and value not in self.fixed:
                    changed |= self._extend(value, labels.index(factor), axes)
        return changed

    def _extend(self, value: Value, dim: int, axes: Axes) -> bool:
        dims = list(self._dims(value))
        elsewhere = {axis for d, own in enumerate(dims) for axis in own if d != dim}
        more = tuple(axis for axis in axes if axis not in elsewhere and axis not in dims[dim])
        in_order = tuple(axis for axis in axes if axis not in elsewhere)
        wanted = in_order if set(dims[dim]) <= set(in_order) else (*dims[dim], *more)
        if not more or value.type.shape[dim] % self.mesh.size(wanted):
            return False
        dims[dim] = wanted
        self.known[value] = dims
        return True

    def _chosen(self, op: TensorOp, rule: ShardingRule) -> tuple[Axes, ...]:
        """The axes along each factor of an operation, given how its tensors are divided so far."""
        out: list[Axes] = [()] * len(rule.extents)
        for axis in self.mesh.axes:
            costs = [(self._bytes_moved(op, rule, axis, factor), factor)
                     for factor in sorted(set(self._proposed(op, rule, axis)))
                     if rule.extents[factor] % self.mesh.size((*out[factor], axis)) == 0]
            if costs:
                _, factor = min(costs)
                out[factor] = (*out[factor], axis)
        return tuple(self._ordered(op, rule, factor, axes) for factor, axes in enumerate(out))

    def _proposed(self, op: TensorOp, rule: ShardingRule, axis: str) -> Iterator[int]:
        """The factors of the axes of tensors that an axis of the mesh divides."""
        for value, labels in _tensors(op, rule):
            for axes, factor in zip(self._dims(value), labels):
                if axis in axes and factor is not None:
                    yield factor

    def _ordered(self, op: TensorOp, rule: ShardingRule, factor: int, axes: Axes) -> Axes:
        """The axes of a factor in the order in which the largest tensor has them."""
        if len(axes) < 2:
            return axes
        orders = [(_bytes(value), dims) for value, labels in _tensors(op, rule)
                  for dims, label in zip(self._dims(value), labels) if label == factor and set(dims) == set(axes)]
        return max(orders, key=lambda o: o[0])[1] if orders else axes

    def _bytes_moved(self, op: TensorOp, rule: ShardingRule, axis: str, factor: int) -> float:
        """The bytes that each rank sends if an axis of the mesh divides the operation along a factor, about."""
        n = self.mesh.size((axis,))
        moved = 0.0
        for value, labels in zip(op.operands, rule.operands):
            at = next((label for dims, label in zip(self._dims(value), labels) if axis in dims), -1)
            if at not in (-1, factor):
                moved += _bytes(value) * (n - 1) / n / (n if factor in labels else 1)
        size, wanted = _bytes(op.result), self._dims(op.result)
        at = next((label for dims, label in zip(wanted, rule.result) if axis in dims), -1)
        if factor in rule.reduced:
            moved += size * (n - 1) / n * (1 if at != -1 else 2)
        elif at not in (-1, factor):
            moved += size * (n - 1) / n / n
        elif at == -1 and op.result in self.fixed:
            moved += size * (n - 1) / n
        return moved


def _tensors(op: TensorOp, rule: ShardingRule) -> Iterator[tuple[Value, tuple[int | None, ...]]]:
    yield from zip((*op.operands, op.result), (*rule.operands, rule.result))


def _rank(value: Value) -> int:
    return value.type.rank if isinstance(value.type, TensorType) else 0


def _bytes(value: Value) -> int:
    type = value.type
    if not isinstance(type, TensorType):
        return 0
    return prod(n if isinstance(n, int) else 1 for n in type.shape) * type.dtype.itemsize


PASS = Pass(run, takes=DECOMPOSED, gives=DECOMPOSED, whole=False)
