"""Kernels of a compilation: what `fuse` recorded on them, the work that they do, and the schedules chosen later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mlc.dialects import loop
from mlc.dialects.func import Call, Func
from mlc.dialects.tensor.base import TensorOp
from mlc.dialects.tensor.kernel import Kernel as KernelOp
from mlc.dialects.tensor.traits import Iteration, moves_elements
from mlc.ir import sizes
from mlc.ir.affine import AffineMap
from mlc.ir.core import Op, Value
from mlc.ir.sizes import Dim
from mlc.ir.types import FloatType, TensorType, element
from mlc.tools.explain.explanation import Kernel, Operand
from mlc.tools.explain.lineage import Lineage
from mlc.tools.explain.printing import ContinuousPrinter

UNCOUNTED = ("constant", "select", "cmpf", "bitcast", "negf", "yield")
"""Operations on single elements that are no floating-point arithmetic."""


def collect(module: Op, lineage: Lineage, printer: ContinuousPrinter) -> dict[int, Kernel]:
    """The kernels and calls of every function of a module in the form `fused`, by their numbers, in program order."""
    out: dict[int, Kernel] = {}
    for function in module.inside(Func):
        for op in function.walk():
            if isinstance(op, KernelOp):
                out[lineage.number_of[op]] = _kernel(op, function, lineage, printer)
            elif isinstance(op, Call):
                out[lineage.number_of[op]] = _call(op, function, lineage, printer)
    return out


def _kernel(op: KernelOp, function: Func, lineage: Lineage, printer: ContinuousPrinter) -> Kernel:
    maps = op.indexing_maps
    inputs = [_operand(v, str(map), lineage, printer, function) for v, map in zip(op.ins, maps)]
    outputs = [Operand(printer.name_in(function, v), str(v.type), str(map), -1)
               for v, map in zip(op.results, maps[len(op.ins):])]
    inside = [lineage.number_of[inner] for inner in op.body.block if not inner.terminator]
    return Kernel(lineage.number_of[op], str(function.sym_name), op.label, "", [str(d) for d in op.domain],
                  list(op.iterator_types), inputs, outputs, inside, list(op.unfused), list(op.fused), "",
                  str(flops_of(op)), str(bytes_of(op)), "")


def _call(op: Call, function: Func, lineage: Lineage, printer: ContinuousPrinter) -> Kernel:
    inputs = [_operand(v, "", lineage, printer, function) for v in op.args]
    outputs = [Operand(printer.name_in(function, v), str(v.type), "", -1) for v in op.results]
    return Kernel(lineage.number_of[op], str(function.sym_name), f"call @{op.callee}", str(op.callee), [], [], inputs,
                  outputs, [], [], [], "", "", "", "")


def _operand(v: Value, map: str, lineage: Lineage, printer: ContinuousPrinter, function: Func) -> Operand:
    source = v
    while source.op is not None and not isinstance(source.op, KernelOp | Call) and source.op.operands:
        source = source.op.operands[0]                     # views of what a kernel made
    made = lineage.number_of[source.op] if isinstance(source.op, KernelOp | Call) else -1
    return Operand(printer.name_in(function, v), str(v.type), map, made)


# -- work -------------------------------------------------------------------------------------------------------------
def flops_of(kernel: KernelOp) -> Dim:
    """Floating-point operations of a kernel: a multiply-add is two, and moving, comparing and choosing are none."""
    total: Dim = 0
    for op in kernel.body.block:
        if not isinstance(op, TensorOp) or not op.results or not isinstance(element(op.results[0].type), FloatType):
            continue
        points = op.results[0].type.size
        if op.iteration is Iteration.CONTRACT:
            total = total + 2 * sizes.product(kernel.domain)
        elif op.iteration in (Iteration.REDUCE, Iteration.SCAN):
            total = total + op.operands[0].type.size
        elif op.iteration is Iteration.SCATTER:
            total = total + op.operands[-1].type.size
        elif op.regions:
            total = total + points * sum(map(_flops_of_element, op.regions[0].block))
        elif not moves_elements(op) and op.name.partition(".")[2] not in UNCOUNTED and op.operands:
            total = total + points
    return total


def _flops_of_element(op: Op) -> int:
    kind = op.name.partition(".")[2]
    if not op.results or not isinstance(op.results[0].type, FloatType) or kind in UNCOUNTED:
        return 0
    return 2 if kind == "fma" else 1


def bytes_of(kernel: KernelOp) -> Dim:
    """Bytes that a kernel reads and writes at least: each element that it accesses once."""
    types = [v.type for v in (*kernel.ins, *kernel.results)]
    total: Dim = 0
    for type, map in zip(types, kernel.indexing_maps):
        total = total + _elements(type, map, kernel.domain) * max(1, element(type).width // 8)
    return total


def _elements(type: TensorType, map: AffineMap, domain: tuple[Dim, ...]) -> Dim:
    """Elements that are accessed: all of them, or fewer if the points of the domain do not reach that many."""
    whole = type.size
    used = {atom.position for e in map.results for atom in sizes.leaves(e, sizes.AffineDim)}
    if not map.results:                                    # at positions that are no expression of the point
        used = {*range(len(domain))} if type.rank else set()
    reached = sizes.product(domain[d] for d in sorted(used))
    if isinstance(whole, int) and isinstance(reached, int):
        return min(whole, reached)
    return whole if map.results and len(used) == type.rank else reached


# -- schedules --------------------------------------------------------------------------------------------------------
def add_schedules(found: dict[int, Kernel], module: Op, lineage: Lineage, numbers: Mapping[str, int]) -> None:
    """Add to each kernel its schedule and the name of its function, of a module in the form `loop`."""
    for op in module.inside(loop.Kernel):
        holder = op.parent_op
        code = str(holder.sym_name) if isinstance(holder, Func) else ""
        for number in ancestors(lineage.number_of[op], lineage, found):
            schedule = op.attr_text("schedule", op.schedule, False)
            threads = found[number].threads or has_parts(op, numbers)
            found[number] = replace(found[number], schedule=schedule, code=code, threads=threads)


def has_parts(kernel: loop.Kernel, numbers: Mapping[str, int]) -> bool:
    """Whether a kernel has several parts for threads, as `loop_to_scf` divides it; sizes without numbers are large."""
    schedule = kernel.schedule
    blocks = [sizes.divide(extent + tile - 1, tile)
              for extent, tile in zip(kernel.domain[: schedule.thread_dims], schedule.tile)]
    parts = sizes.divide(sizes.product(blocks), schedule.grain_size)
    return bool(blocks) and (not sizes.symbols(parts) <= numbers.keys() or sizes.evaluate(parts, numbers) > 1)


def ancestors(number: int, lineage: Lineage, among: Mapping[int, object]) -> Iterator[int]:
    """The nearest operations among some that an operation comes from."""
    work, seen = [number], set[int]()
    while work:
        n = work.pop()
        if n in seen:
            continue
        seen.add(n)
        if n in among:
            yield n
        else:
            work += lineage.nodes[n].parents
