"""tensor, kernel regions: the operations that form a kernel, and the elements that it reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.tensor.base import TensorOp, shape_text
from mlc.dialects.tensor.dynamic import DynamicUpdateSlice
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain, single
from mlc.dialects.tensor.reduce import reduction_orders
from mlc.dialects.tensor.scatter import Scattering
from mlc.dialects.tensor.stages import Stages
from mlc.dialects.tensor.traits import HostOp, Iteration, checked_operand
from mlc.ir.affine import AffineMap, dim
from mlc.ir.core import Op, Region, ResultType, Value
from mlc.ir.sizes import Dim
from mlc.ir.types import MemRefType, TensorType, Type, i1, i8

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.types import ScalarType


def stored(dtype: ScalarType) -> ScalarType:
    """The element type of a buffer for tensors of `dtype`: a bool is a byte, and integers are signless."""
    from mlc.ir.types import IntType
    return i8 if dtype == i1 else IntType(dtype.width) if isinstance(dtype, IntType) else dtype


@lru_cache(1 << 12)
def buffer_type(type: TensorType) -> MemRefType:
    """The row-major memref type of a tensor."""
    return MemRefType(tuple(d if isinstance(d, int) else None for d in type.shape), stored(type.dtype))


ITERATORS = ("parallel", "reduction", "scan", "scatter")


class Yield(Op, name="tensor.yield", terminator=True, pure=False):
    """Yield values to the enclosing tensor.kernel or tensor.map."""

    values: tuple[Value, ...]
    format = "$values attr-dict `:` type($values)"


class Kernel(HostOp, name="tensor.kernel", isolated=True, pure=False):
    """results = body(ins); with buffers: outs[...] = body(ins)

    Before bufferization `ins` and the results are tensors, and there are no `outs`. After it, `ins` and `outs` are
    memrefs, and there are no results. The body, on tensors, stays the same, and is lowered to one kernel. The pass fuse
    records its decisions here, for all later passes:

    domain          extents of the iteration domain
    iterator_types  for each dimension of the domain `parallel`, `reduction`, `scan` (points are visited in order, and
                    each gets the combination of its predecessors) or `scatter` (updates go to any position along it)
    indexing_maps   maps from a point to the element of each operand, then of each result. Those of the results define
                    what a point computes; those of the operands follow, and have no results for an operand that is
                    read by several maps or at positions that are not an affine expression of the point
    stages          number of passes over the points of a reduction slice. Attributes of the operations of the body tell
                    the stage of a reduction, and what is materialized for later stages (`stage`, `materialize`)
    stores          the stage in which each result is stored; `stages` means after the last one
    last_reads      the last stage that reads each operand
    unfused         reasons why a producer or consumer is in another kernel
    fused           by which rules its operations came together, and where their values are

    `stores` and `last_reads` are omitted if there is a single stage.
    """

    ins: tuple[Value, ...]
    outs: tuple[Value, ...]
    sizes: tuple[Value, ...]                    # after bufferization: the values of `symbols`
    errors: Value | None                        # after bufferization: the error record, if an op can fail
    body: Region
    types: tuple[ResultType, ...]
    label: str                                  # its operations, in readable form
    domain: tuple[Dim, ...]
    iterator_types: tuple[str, ...]
    indexing_maps: tuple[AffineMap, ...]
    stages: int = 1
    stores: tuple[int, ...] = ()
    last_reads: tuple[int, ...] = ()
    symbols: tuple[str, ...] = ()
    site: int = 0                               # after bufferization: its first trap id
    unfused: tuple[str, ...] = ()
    fused: tuple[str, ...] = ()

    def verify_op(self) -> None:
        yielded = self.body.block.terminator.operands
        if len(self.iterator_types) != len(self.domain) or {*self.iterator_types} - {*ITERATORS}:
            self.fail(f"iterator_types {list(self.iterator_types)} are not one of {', '.join(ITERATORS)} for each "
                      f"dimension of the domain {shape_text(self.domain)}", code="MLC0143")
        if any(map.dims != len(self.domain) or map.tiles for map in self.indexing_maps):
            self.fail(f"an indexing map takes the {len(self.domain)} dimensions of the domain", code="MLC0143")
        if len(self.indexing_maps) != len(self.ins) + len(yielded):
            self.fail(f"{len(self.indexing_maps)} indexing maps for {len(self.ins)} operands and {len(yielded)} "
                      "results", code="MLC0143")
        self.verify_loops()
        for i, (v, map) in enumerate(zip(yielded, self.result_maps)):
            self.verify_result_map(i, v.type.shape, map)
        self.verify_stages()
        self.verify_materialized()
        self.verify_reads()
        self.verify_buffers()

    def verify_loops(self) -> None:
        """Operations with loops of their own have the domain and the iterator types of the kernel."""
        own = [op for op in self.body.block if isinstance(op, TensorOp) and op.iteration.has_own_loops]
        for op in own:
            shape, types = op.iteration_domain().shape, op.iterator_types()
            if (shape, types) != (self.domain, self.iterator_types):
                op.fail(f"iterates over the domain {shape_text(shape)} as {', '.join(types)}, its kernel over "
                        f"{shape_text(self.domain)} as {', '.join(self.iterator_types)}", code="MLC0143")
        if not own and {*self.iterator_types} - {"parallel"}:
            self.fail("without an operation that reduces, scans or scatters all dimensions are parallel",
                      code="MLC0143")

    def verify_result_map(self, i: int, shape: Sequence[Dim], map: tuple[Dim, ...]) -> None:
        """Every element of a result is computed at exactly one point of the domain, or for one reduction slice."""
        if len(map) != len(shape):
            self.fail(f"result {i} has {len(shape)} axes, and {_map_text(map)} as its indexing map", code="MLC0143")
            return
        used = [d for d in range(len(self.domain)) if dim(d) in map]
        extents: dict[Dim, Dim] = {dim(d): self.domain[d] for d in used}
        if any((e != 0 and e not in extents) or n != extents.get(e, 1) for e, n in zip(map, shape)) or (
                len(used) != sum(e != 0 for e in map)):
            self.fail(f"result {i} of shape {shape_text(shape)} is not {_map_text(map)} over the domain "
                      f"{shape_text(self.domain)}: each axis is one dimension of that size, or 0", code="MLC0143")
        left = [d for d, n in enumerate(self.domain) if n != 1 and d not in used]
        if any(self.iterator_types[d] != "reduction" for d in left):
            self.fail(f"several points of the domain {shape_text(self.domain)} compute the same element of result {i}, "
                      f"whose indexing map is {_map_text(map)}", code="MLC0143")

    def verify_stages(self) -> None:
        """No value is used before the stage in which it is available."""
        if (self.stores or self.last_reads) and (
                len(self.stores), len(self.last_reads)) != (len(self.result_maps), len(self.ins)):
            self.fail("`stores` has a stage for each result, and `last_reads` one for each operand", code="MLC0144")
        available: dict[Value, int] = dict.fromkeys(self.body.block.args, 0)
        for op in self.body.block:
            self.verify_stage(op)
            first = max((available[v] for v in op.operands), default=0)
            stage = op.attrs.get("stage")
            if stage is not None and not first <= stage < self.stages:
                op.fail(f"is in stage {stage}, but its operands are available in stage {first} of {self.stages}",
                        code="MLC0144")
            ready = first if stage is None or "materialize" in op.attrs else stage + 1
            available.update(dict.fromkeys(op.results, ready))
        stages = self.staging()
        reducing = {op.attrs["stage"] for op in stages.reduces}
        if self.stages < 1 or any(stage not in reducing for stage in range(self.stages - 1)):
            self.fail(f"stages = {self.stages}: there is one, and another after each that reduces", code="MLC0144")
        for i, (v, map, stage) in enumerate(zip(stages.outputs, stages.maps, stages.stores)):
            if not available[v] <= stage <= self.stages:
                self.fail(f"result {i} is stored in stage {stage}, but is available in stage {available[v]} of "
                          f"{self.stages}", code="MLC0144")
            if stage == self.stages and not stages.domain.is_of_slice(map):
                self.fail(f"result {i} has an element for each point, and no points are visited after the last stage",
                          code="MLC0144")
        if len(orders := reduction_orders(stages.reduces)) > 1:
            self.fail(f"reduces in several orders: {', '.join(sorted(orders))}", code="MLC0144")

    def verify_stage(self, op: Op) -> None:
        """Reductions and materialized values have a `stage`, and no others."""
        stage, place = op.attrs.get("stage"), op.attrs.get("materialize")
        reduces = isinstance(op, TensorOp) and op.iteration is Iteration.REDUCE
        if reduces and stage is None:
            op.fail("has no stage; write stage = 0 if the kernel has a single one", code="MLC0144")
        if stage is not None and (type(stage) is not int or not (reduces or place is not None)):
            op.fail(f"stage = {stage} must be an integer, on a reduction or a materialized value", code="MLC0144")
        if place is not None and (reduces or stage is None or not isinstance(op, TensorOp)
                                  or op.result.type.shape != self.domain):
            op.fail("a materialized value must have a stage and an element for each point, and not be a reduction",
                    code="MLC0144")
        results = len(self.body.block.terminator.operands)
        if place is not None and place != "scratch" and not (type(place) is int and 0 <= place < results):
            op.fail(f'materialize = {place} is neither "scratch" nor one of {results} results', code="MLC0144")

    def verify_materialized(self) -> None:
        """A materialized value is read back in a later stage, at its own points, before its buffer is overwritten."""
        stages = self.staging()
        points, in_slice = stages.domain.points, stages.domain.in_slice
        reads: dict[Value, set[tuple[int, IndexingMap | None]]] = {v: set() for v in stages.materialized}
        for stage in range(stages.count + 1):
            for v, at in stages.evaluated(stage):
                if v in reads:
                    reads[v].add((stage, at))
        taken: set[int] = set()
        for v, (stored, place) in stages.materialized.items():
            last, maps, problem = max((s for s, _ in reads[v]), default=0), {at for _, at in reads[v]}, ""
            if last <= stored or not maps <= {points, in_slice if place is not None else points}:
                problem = "is not read in a later stage, or is read at points other than its own"
            elif place is None:
                problem = "is of type i1, which scratch buffers do not support" if v.type.dtype == i1 else ""
            elif stages.maps[place] != points or stages.outputs[place].type != v.type:
                problem = f"does not have the type of result {place}, or the latter has no element for each point"
            elif stages.outputs[place] is v:
                problem = "" if stages.stores[place] == stored else f"is stored in stage {stages.stores[place]}"
            elif stages.stores[place] < last or place in taken:
                problem = f"is read in stage {last}, when the buffer of result {place} holds another value"
            else:
                taken.add(place)
            if problem:
                assert v.op is not None
                v.op.fail(f"cannot be materialized in stage {stored}: it {problem}", code="MLC0144")

    def verify_reads(self) -> None:
        """The maps and last reads of operands are those that follow from the body and the maps of the results."""
        stages = self.staging()
        for stage in range(stages.count + 1):
            for v, at in stages.evaluated(stage):
                if isinstance(v.op, TensorOp) and (home := v.op.home(stages.domain)) is not None and at != home:
                    where = "any index" if at is None else _map_text(at)
                    v.op.fail(f"is read at {where}, but the kernel computes it at {_map_text(home)}", code="MLC0143")
        last_reads = self.last_reads or (0,) * len(self.ins)
        for i, (reads, stated, last) in enumerate(zip(stages.reads().values(), self.indexing_maps, last_reads)):
            if (map := single({at for _, at in reads}, stages.domain)) != stated:
                self.fail(f"operand {i} is read by {map}, but its indexing map is {stated}", code="MLC0143")
            if (read := max((stage for stage, _ in reads), default=0)) != last:
                self.fail(f"operand {i} is read for the last time in stage {read}, not {last}", code="MLC0144")

    def verify_buffers(self) -> None:
        """A result shares its buffer only with operands that it may overwrite; operands for sizes and errors exist."""
        if len(self.sizes) != len(self.symbols):
            self.fail(f"{len(self.sizes)} sizes for the symbols {list(self.symbols)}", code="MLC0153")
        if self.outs and self.checked and self.errors is None:
            self.fail(f"{self.checked[0].name} checks an operand, but there is no error record", code="MLC0153")
        for j, out in enumerate(self.outs):
            if out in self.outs[:j] or any(v is out and not self.may_overwrite(i, j) for i, v in enumerate(self.ins)):
                self.fail(f"result {j} is written over another result, or over an operand that is read elsewhere or "
                          "later", code="MLC0153")

    @property
    def checked(self) -> list[Any]:
        """The operations of the body that check an operand at run time; each has a trap id."""
        return [op for op in self.body.block if checked_operand(op) is not None]

    def iteration_domain(self) -> IterationDomain:
        """The domain, with the dimensions along which the kernel reduces or scans."""
        return IterationDomain(self.domain, tuple(
            d for d, kind in enumerate(self.iterator_types) if kind in ("reduction", "scan")))

    @property
    def result_maps(self) -> tuple[tuple[Dim, ...], ...]:
        """The indexing maps of the results."""
        return tuple(map.results for map in self.indexing_maps[len(self.ins):])

    def staging(self) -> Stages:
        """The stages of the kernel, and the values that each of them evaluates."""
        return Stages(self.body.block, self.iteration_domain(), self.result_maps, self.stages,
                      self.stores or (0,) * len(self.result_maps))

    def may_overwrite(self, operand: int, result: int) -> bool:
        """Whether a result may overwrite an operand of its shape: elementwise, and after all reads."""
        update = self.update_of_piece()
        if update is not None and update.x is self.body.block.args[operand]:
            return True
        if self.indexing_maps[operand] != self.indexing_maps[len(self.ins) + result]:
            return False
        if not self.stores:
            return True
        written = [self.stores[result], *(op.attrs["stage"] for op in self.body.block
                                          if op.attrs.get("materialize") == result)]
        return bool(self.last_reads[operand] <= min(written))

    def update_of_piece(self) -> DynamicUpdateSlice | None:
        """The operation that the kernel consists of, besides what computes its update, if it may run in place: then
        only the piece that it replaces is written, and of its operand only that is read."""
        block = self.body.block
        op = block.terminator.operands[0].op
        alone = len(block.terminator.operands) == 1 and set(self.iterator_types) <= {"parallel"}
        if alone and isinstance(op, DynamicUpdateSlice) and op.reads_own_piece() and not any(
                isinstance(x, TensorOp) and x.iteration.has_own_loops for x in block):
            return op
        return None

    def scatter(self) -> Scattering | None:
        """The scatter that the kernel consists of, besides what computes its updates."""
        op = self.body.block.terminator.operands[0].op
        return op if isinstance(op, Scattering) and len(self.result_maps) == 1 else None

    def infer(self) -> tuple[Type, ...]:
        block = self.body.block
        yielded = tuple(v.type for v in block.terminator.operands)
        args = [a.type for a in block.args]
        if self.outs:
            pairs = [*zip(self.ins, args), *zip(self.outs, yielded)]
            if len(self.ins) != len(args) or len(self.outs) != len(yielded) or any(
                    v.type != buffer_type(t) for v, t in pairs):
                self.fail("the buffers are not those of the body's tensors", code="MLC0153")
            return ()
        if [v.type for v in self.ins] != args:
            self.fail("the body's arguments are not the operands", code="MLC0153")
        return yielded

    def interpret(self, frame: Frame) -> list[Any]:
        args = frame.all(self.ins)
        if not self.outs:
            return frame.run(self.body, args)
        frame.sizes.update(zip(self.symbols, frame.all(self.sizes)))
        if self.errors is not None:
            frame.state[self] = frame[self.errors]
        # copies: a result may share its buffer with an operand
        tensors = [from_buffer(x, a.type).copy() for x, a in zip(args, self.body.block.args)]
        results = frame.run(self.body, tensors)
        for out, value in zip(frame.all(self.outs), results):
            out[...] = to_buffer(value, out.dtype)
        return []


def copy_attributes(shape: Sequence[Dim]) -> dict[str, Any]:
    """The attributes of a kernel that copies a tensor of this shape: domain and maps."""
    domain = IterationDomain(tuple(shape))
    own = AffineMap.get(len(domain.shape), domain.points)
    return {"domain": domain.shape, "iterator_types": ("parallel",) * len(domain.shape), "indexing_maps": (own, own)}


def _map_text(map: IndexingMap) -> str:
    return "(" + ", ".join("any" if e is None else str(e) for e in map) + ")"


def from_buffer(buffer: np.ndarray[Any, Any], type: TensorType) -> np.ndarray[Any, Any]:
    """The contents of a buffer as elements of a tensor type."""
    from mlc.ir.types import to_numpy
    return buffer != 0 if type.dtype == i1 else buffer.view(to_numpy(type.dtype))


def to_buffer(value: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The elements of a tensor as contents of a buffer of `dtype`."""
    return value.astype(dtype) if value.dtype == bool else value.view(dtype)
