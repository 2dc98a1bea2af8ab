"""Make the program of one rank of a program whose tensors are divided among a mesh.

takes  DECOMPOSED with the decisions of `propagate_shardings`
gives  PARTITIONED, with collectives of the dialect `shard`; arguments, results and all tensors are shards, and the
       function has the attribute `partitioned`
why    communication is explicit from here on: printed, counted, merged and interpreted with all ranks at once

Each operation computes its shard, of operands that are divided as its factors are. Where a tensor lies otherwise, it is
sliced, gathered or exchanged; a result whose reduced factors are divided is combined among the ranks. Where an axis is
divided in which other operands give positions, as the rows of a table, each rank takes those of its block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlc.dialects import func, shard, tensor
from mlc.dialects.func import Func
from mlc.dialects.shard.mesh import Axes, Mesh, Sharding
from mlc.dialects.tensor.base import TensorOp, reshape
from mlc.dialects.tensor.sharding_rule import ShardingRule
from mlc.ir.core import Op, Value, at_end, builder, located
from mlc.ir.diag import IRError
from mlc.ir.passes import Pass
from mlc.ir.types import TensorType, Type, i64
from mlc.passes.forms import DECOMPOSED, PARTITIONED

Local = tuple[Value, Sharding]
"""A shard, and how the tensor is divided that it belongs to."""


def run(module: Op) -> None:
    """Partition every function that has a mesh."""
    for function in list(module.inside(Func)):
        if isinstance(function.attrs.get("mesh"), Mesh) and "partitioned" not in function.attrs:
            _Partition(function, function.attrs["mesh"]).run()


@dataclass
class _Partition:
    """One function while it is partitioned.

    local   the shard of each tensor; scalars are the same on every rank
    moved   shards of tensors that were made to lie otherwise
    """

    function: Func
    mesh: Mesh
    local: dict[Value, Local] = field(default_factory=dict)
    scalars: dict[Value, Value] = field(default_factory=dict)
    moved: dict[tuple[Value, Sharding], Value] = field(default_factory=dict)

    def run(self) -> None:
        old = self.function.body.blocks[0]
        given = self.function.attrs.get("arg_shardings", ())
        shardings = [given[i] if i < len(given) else _replicated(a.type) for i, a in enumerate(old.args)]
        types = [_local_type(a.type, s, self.mesh) for a, s in zip(old.args, shardings)]
        names = [a.name for a in old.args]
        made = func.function(self.function.sym_name, types, names, private=not self.function.is_public)
        for arg, new, sharding in zip(old.args, made.args, shardings):
            self._define(arg, new, sharding)
        with at_end(made.body.block):
            for op in old:
                with located(op.loc.through("partition")):
                    self._op(op)
        made.attrs |= {name: x for name, x in self.function.attrs.items() if name not in made.attrs}
        made.attrs["arg_shardings"] = tuple(shardings)
        made.attrs["result_shardings"] = made.block.terminator.attrs.pop("shardings")
        made.attrs["partitioned"] = True
        made.update_type()
        assert self.function.parent is not None
        self.function.parent.insert(made, self.function)
        self.function.erase()

    def _define(self, old: Value, new: Value, sharding: Sharding) -> None:
        new.name = old.name
        if isinstance(old.type, TensorType):
            self.local[old] = new, sharding.everywhere
        else:
            self.scalars[old] = new

    def _op(self, op: Op) -> None:
        if isinstance(op, func.Return):
            self._return(op)
        elif isinstance(op, shard.Shard):
            sharding = Sharding(op.dims)
            self.local[op.result] = self._lying(op.x, sharding), sharding
        elif isinstance(op, TensorOp) and not op.regions and len(op.results) == 1 and "factors" in op.attrs:
            self._divided(op)
        elif isinstance(op, func.Call):
            op.fail(f"@{op.callee} cannot be inlined, and calls are not divided among ranks", code="MLC0967",
                    hint="make it no recursion, or compute it outside of the mesh")
        else:
            self._replicated(op)

    # -- operations ------------------------------------------------------------------------------------------------
    def _divided(self, op: TensorOp) -> None:
        rule, factors = op.sharding_rule(), op.attrs["factors"]
        target, = op.attrs["shardings"]
        if len(factors) != len(rule.extents):
            op.fail(f"{len(factors)} factors are divided, and it has {len(rule.extents)}", code="MLC0968",
                    hint="run propagate-shardings")
        operands = [self._lying(v, _along(labels, factors)) if isinstance(v.type, TensorType) else self.scalars[v]
                    for v, labels in zip(op.operands, rule.operands)]
        if isinstance(op, shard.StageLike | shard.After):  # which take nothing but the stage or the time from the other
            operands[1] = self.local[op.operands[1]][0]
        if not isinstance(op.result.type, TensorType):
            made = op.with_operands(operands)
            self.scalars[op.result] = _clean(made).results[0]
            return
        own = _along(rule.result, factors)
        axis = op.block_axis()
        block = None if axis is None else rule.operands[0][axis]
        if isinstance(op, shard.Roll):
            value = op.on_ranks(operands[0], self.mesh, own.dims[op.axis])
        elif block is not None and factors[block]:
            value = op.on_block(operands, self._start(factors[block], operands[0].type.shape[axis]))
        else:
            value = _clean(op.on_shard(operands, own.local(op.result.type.shape, self.mesh))).results[0]
        partial = tuple(axis for f in sorted(rule.reduced) for axis in factors[f])
        value, own = self._combined(value, own, partial, rule, target)
        value.name = op.result.name
        self.local[op.result] = self._moved(value, own, target), target

    def _start(self, axes: Axes, size: int) -> Value:
        """Where the block of the rank begins, along an axis that is divided in blocks of so many elements."""
        numbers = tensor.Iota((self.mesh.size(axes),), 0, i64).result
        position = reshape(shard.AllSlice(numbers, self.mesh, axes, 0).result, ())
        return tensor.Mul(position, tensor.Full(size, (), i64).result).result

    def _combined(self, x: Value, own: Sharding, partial: Axes, rule: ShardingRule,
                  target: Sharding) -> tuple[Value, Sharding]:
        """The combination of the partial results of the ranks along some axes: scattered where the target is divided
        along one of these, on every rank otherwise."""
        dims = list(own.dims)
        for d, axes in enumerate(target.dims):
            scattered = axes[len(dims[d]):]
            if scattered and axes[:len(dims[d])] == dims[d] and set(scattered) <= set(partial):
                x = shard.ReduceScatter(x, self.mesh, scattered, d, rule.combines).result
                partial = tuple(axis for axis in partial if axis not in scattered)
                dims[d] = axes
        if partial:
            x = shard.AllReduce(x, self.mesh, partial, rule.combines).result
        return x, Sharding(tuple(dims))

    def _replicated(self, op: Op) -> None:
        """An operation that every rank runs as a whole: with regions, say, or a check."""
        mapping = dict(self.scalars)
        for v in _used(op):
            if v in self.local:
                mapping[v] = self._lying(v, Sharding.replicated(v.type.rank))
        made = _clean(op.clone(mapping))
        assert builder.block is not None
        builder.block.insert(made, builder.before)
        for old, new in zip(op.results, made.results):
            self._define(old, new, _replicated(old.type))
            wanted = op.attrs.get("shardings", ())[old.index:old.index + 1]
            if wanted and wanted[0] is not None:
                self.local[old] = self._lying(old, wanted[0]), wanted[0]

    def _return(self, op: func.Return) -> None:
        wanted = self.function.attrs.get("result_shardings", ())
        out, shardings = [], []
        for i, v in enumerate(op.operands):
            if v not in self.local:
                raise IRError(f"result {i} is a {v.type}, and only tensors are divided among ranks", code="MLC0967",
                              loc=op.loc, hint="return a tensor")
            sharding = wanted[i] if i < len(wanted) and wanted[i] is not None else self.local[v][1]
            out.append(self._lying(v, sharding.everywhere))
            shardings.append(sharding)
        func.Return(tuple(out)).attrs["shardings"] = tuple(shardings)

    # -- moving tensors --------------------------------------------------------------------------------------------
    def _lying(self, v: Value, target: Sharding) -> Value:
        """The shard of a tensor that lies as `target` says."""
        x, own = self.local[v]
        if own != target and isinstance(v.op, shard.Shard) and self.local[v.op.x][1] == target:
            return self.local[v.op.x][0]                   # as it lay before
        if (v, target) not in self.moved:
            self.moved[v, target] = self._moved(x, own, target)
        return self.moved[v, target]

    def _moved(self, x: Value, own: Sharding, target: Sharding) -> Value:
        """A shard that lies otherwise: exchanged among dimensions, sliced, and gathered.

        It is sliced first along axes that do not divide it yet, since less is gathered then.
        """
        dims = list(own.dims)
        for d, axes in enumerate(target.dims):
            for source in range(len(dims)):
                moves = axes[len(dims[d]):len(dims[d]) + 1]
                if (source != d and moves and dims[source][-1:] == moves and axes[:len(dims[d])] == dims[d]
                        and x.type.shape[d] % self.mesh.size(moves) == 0):
                    x = shard.AllToAll(x, self.mesh, moves, d, source).result
                    dims[source], dims[d] = dims[source][:-1], (*dims[d], *moves)
        for d, axes in enumerate(target.dims):
            if axes[:len(dims[d])] == dims[d]:
                x = self._sliced(x, dims, d, _unused(axes[len(dims[d]):], dims))
        for d, axes in enumerate(target.dims):
            kept = _common(dims[d], axes)
            gathered = dims[d][kept:]
            if gathered:
                x = shard.AllGather(x, self.mesh, gathered, d).result
                dims[d] = dims[d][:kept]
        for d, axes in enumerate(target.dims):
            x = self._sliced(x, dims, d, axes[len(dims[d]):])
        return x

    def _sliced(self, x: Value, dims: list[Axes], d: int, axes: Axes) -> Value:
        """The slice of a shard along more axes of a dimension, which are added to `dims`."""
        dims[d] = (*dims[d], *axes)
        return shard.AllSlice(x, self.mesh, axes, d).result if axes else x


def _clean(op: Op) -> Op:
    """An operation without the decisions, which are carried out."""
    op.attrs.pop("factors", None)
    op.attrs.pop("shardings", None)
    return op


def _along(labels: Sequence[int | None], factors: Sequence[Axes]) -> Sharding:
    return Sharding(tuple(() if f is None else factors[f] for f in labels))


def _unused(axes: Axes, dims: Sequence[Axes]) -> Axes:
    """The first axes, up to one that divides some dimension."""
    return next((axes[:i] for i, axis in enumerate(axes) if any(axis in d for d in dims)), axes)


def _common(a: Axes, b: Axes) -> int:
    """The length of the common beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def _replicated(type: Type) -> Sharding:
    return Sharding.replicated(type.rank if isinstance(type, TensorType) else 0)


def _local_type(type: Type, sharding: Sharding, mesh: Mesh) -> Type:
    return type.with_shape(sharding.local(type.shape, mesh)) if isinstance(type, TensorType) else type


def _used(op: Op) -> list[Value]:
    """The values from outside of an operation that it or an operation inside uses."""
    return [v for inner in op.walk() for v in inner.operands]


PASS = Pass(run, takes=DECOMPOSED, gives=PARTITIONED, whole=False)
