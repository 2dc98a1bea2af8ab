"""The order of passes, from what the frontend makes to the llvm dialect, with the reason for every row.

Down to kernels on buffers there is one; from there on a CPU and a GPU each have their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlc.ir.core import Op
from mlc.ir.diag import UserError
from mlc.ir.machine import CPU, GPU, Machine, Model
from mlc.ir.passes import Instruments, Pass, Pipeline, Step, parse_pipeline
from mlc.ir.types import MemRefType, TensorType
from mlc.passes import fix_numerics

if TYPE_CHECKING:
    from pathlib import Path

Rows = tuple[tuple[str, str, str], ...]
"""Of each pass the level it belongs to, its name with options, and why it stands here."""

SHARED: Rows = (
    ("tensor", "constrain_sizes", "what a call's sizes have to be, told by the operations that the user wrote"),
    ("tensor", "grad", "derivatives are taken of what the user wrote, composites whole, so their own rules apply"),
    ("tensor", "inline", "what stands in one function is simplified and fused together; large equal parts stay one"),
    ("tensor", "canonicalize", "derivatives leave sums with zero and products with one"),
    ("tensor", "cse", "forward and backward pass share values"),
    ("tensor", "dead_argument_elimination",
     "cotangents that nobody asked for, in functions too; last, when the uses are known"),
    ("loop", "decompose", "everything below knows primitives only"),
    ("loop", "canonicalize", "decompositions leave identities too"),
    ("loop", "cse", "softmax and its derivative compute the same maximum"),
    ("loop", "fix_numerics", "the last pass that may choose how numbers are computed"),
    ("loop", "fuse", "a value inside a kernel costs no memory; needs canonical, shared values"),
    ("loop", "bufferize", "a buffer per value that is left between kernels; in place where an operand dies"),
    ("loop", "tensor_to_loop", "index maps instead of tensors; needs buffers to load from"),
    ("loop", "coalesce_dimensions", "one long dimension fills vectors better than a short last one"),
)
FOR_CPU: Rows = (
    ("loop", "vectorize", "block sizes and vector dimension; needs access maps to see what is contiguous"),
    ("loop", "parallelize", "how much work a block is depends on how it is scheduled"),
    ("loop", "outline", "what is written twice is lowered and compiled once; how it is scheduled is part of it"),
    ("low", "loop_to_scf", "blocks become loops around vectors"),
    ("low", "canonicalize", "index arithmetic with zeros and ones, selections with known conditions"),
    ("low", "cse", "each access computed its own addresses"),
    ("low", "dce", "views and sizes that no access needed"),
)
FOR_GPU: Rows = (
    ("loop", "distribute", "which thread computes what; needs access maps to see what is contiguous"),
    ("loop", "outline", "what is written twice is lowered and compiled once; how it is distributed is part of it"),
    ("low", "loop_to_gpu", "what one thread does, and launches of so many"),
    ("low", "canonicalize", "index arithmetic with zeros and ones, selections with known conditions"),
    ("low", "cse", "each access computed its own addresses"),
    ("low", "dce", "views and sizes that no access needed"),
)


def _rows(machine: Model) -> Rows:
    """The rows of a machine; the last pass is its vendor's, named by the model."""
    return (*SHARED, *(FOR_CPU if machine.order == "cpu" else FOR_GPU),
            ("llvm", machine.to_llvm, "one operation per instruction"))


ORDERS = {machine.order: _rows(machine) for machine in (CPU, GPU)}
"""The rows of the default machines, by kind."""
ORDER = ORDERS["cpu"]
CHECKS = ("low", "insert_checks", "only for checked code; last of this level, so what is checked is what would run")
"""The row that checked code has besides, before that which leaves the low level."""
BEFORE: tuple[tuple[str, str, str], ...] = (
    ("constrain_sizes", "canonicalize", "an operation that is rewritten takes its condition along"),
    ("grad", "decompose", "composites carry their own derivatives"),
    ("decompose", "fix_numerics", "only primitives have an order of summation"),
    ("inline", "fuse", "a call is no operation of a kernel"),
    ("cse", "fuse", "a value computed twice would be fused twice"),
    ("fix_numerics", "fuse", "kernels must not decide how numbers are rounded"),
    ("fuse", "bufferize", "buffers are for what leaves a kernel"),
    ("vectorize", "loop_to_scf", "block sizes are read there"),
    ("vectorize", "parallelize", "what is shared among threads are blocks"),
    ("parallelize", "outline", "kernels of one schedule are lowered as one"),
    ("distribute", "outline", "kernels of one schedule are lowered as one"),
)
"""(earlier, later, reason): checked when this module is imported, so the list cannot rot."""

LEVELS = ("tensor", "loop", "low", "llvm")


def _check_order() -> None:
    for rows in ORDERS.values():
        names = [text for _, text, _ in rows]
        for earlier, later, reason in BEFORE:
            if earlier in names and later in names:
                assert names.index(earlier) < names.index(later), f"{earlier} stands after {later}, but {reason}"


_check_order()


def order(machine: Model = CPU, checked: bool = False) -> Rows:
    """The rows for a kind of machine; for a CPU they may have checks among them."""
    rows = _rows(machine)
    if not checked:
        return rows
    if machine.order != "cpu":
        raise UserError("code for a GPU cannot be checked", code="MLC0482",
                        hint="its kernels have the meaning of those for a CPU: check them there")
    return (*rows[:-1], CHECKS, rows[-1])


def steps(level: str = "llvm", machine: Model = CPU, products: str = "fma", checked: bool = False) -> list[Step]:
    """The passes that bring a module from the frontend down to `level`.

    machine   the model of the machine, a CPU or a GPU: handed to the passes that have such an option
    products  how matrices are multiplied, as of fix_numerics: by what else than fma the machine has to have
    checked   whether the code reports what is undefined, as of insert_checks
    """
    if level not in LEVELS:
        raise UserError(f"there is no level {level!r}", code="MLC0334", hint="one of " + ", ".join(LEVELS))
    last = LEVELS.index(level)
    out: list[Step] = []
    for row_level, text, _ in order(machine, checked):
        if LEVELS.index(row_level) <= last:
            out += parse_pipeline(text)
    return [Step(s.transform, (*s.options, *_options(s.transform, machine, products))) for s in out]


def _options(transform: Pass, machine: Model, products: str) -> tuple[tuple[str, object], ...]:
    """Options of a pass that depend on the machine, if they differ from its defaults."""
    if transform.name == "fix_numerics" and products != "fma":
        return (("products", products),)
    default = transform.defaults.get("machine")
    told = machine.of(type(default)) if isinstance(default, Machine) else None
    return () if told == default else (("machine", told),)


def build(level: str = "llvm", machine: Model = CPU, products: str = "fma", checked: bool = False) -> Pipeline:
    """The pipeline of `steps`, checked to compose."""
    return Pipeline(steps(level, machine, products, checked))


def lower(module: Op, level: str = "llvm", machine: Model = CPU, instruments: Instruments | None = None,
          dump_dir: Path | None = None, products: str = "fma", checked: bool = False) -> Op:
    """Bring `module` down to `level` in place, and return it."""
    if dump_dir is not None:
        instruments = instruments or Instruments()
        instruments.dump_dir = dump_dir
    return build(level, machine, products, checked).run(module, instruments)


def stage(module: Op, machine: Model = CPU) -> int:
    """The row of a machine's order that `module` is ready for, told from what stands in it: every dump can be entered.

    Above fix_numerics the passes leave what is already as they want it, so all of them run (again).
    """
    used = {op.name for op in module.walk()}
    dialects = {name.split(".")[0] for name in used}
    rows = _rows(machine)
    if dialects <= {"builtin", "llvm"} or {"gpu", "llvm"} <= dialects:
        return len(rows)
    names = [text.split("{")[0] for _, text, _ in rows]
    if "tensor.kernel" in used:
        return names.index("tensor_to_loop" if _has_values_of(module, MemRefType) else "bufferize")
    if dialects & {"tensor", "autodiff"} or _has_values_of(module, TensorType):
        return names.index("fuse") if fix_numerics.is_fixed(module) else 0
    lowering = "loop_to_scf" if machine.order == "cpu" else "loop_to_gpu"
    return names.index("tensor_to_loop" if "loop" in dialects else lowering) + 1


def _has_values_of(module: Op, type: type) -> bool:
    return any(isinstance(value.type, type) for op in module.walk()
               for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)))


def remaining(module: Op, level: str = "llvm", machine: Model = CPU, products: str = "fma",
              checked: bool = False) -> list[Step]:
    """The passes from where `module` stands down to `level`."""
    rows, everything = _rows(machine), steps(level, machine, products, checked)
    done = stage(module, machine)
    if done > len(everything):
        raise UserError(f"the module is at level {rows[min(done, len(rows) - 1)][0]} already, past {level}",
                        code="MLC0335", hint="ask for a level further down, or start from an earlier dump")
    if checked and done == len(rows):
        raise UserError("a module of the llvm dialect cannot be checked: it does not say which memory an access is for",
                        code="MLC0482", hint="start from an earlier dump")
    return everything[done:]


def resume(module: Op, level: str = "llvm", machine: Model = CPU, instruments: Instruments | None = None,
           checked: bool = False) -> Op:
    """Bring a module that was entered anywhere, such as a dump of any pass, down to `level` in place."""
    return Pipeline(remaining(module, level, machine, checked=checked)).run(module, instruments)
