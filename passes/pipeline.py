"""Pass pipelines from the output of the frontend to the llvm dialect, with the reason for each pass's position.

CPUs and GPUs share the passes down to kernels on buffers; the passes below differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlc.ir.core import Op
from mlc.ir.diag import UserError
from mlc.ir.instrumentation import CHECKS, NONE, TIMES, Instrumentation
from mlc.ir.machine import CPU, GPU, Cpu, Gpu, Machine, Model
from mlc.ir.passes import Instruments, Pass, Pipeline, Step, parse_pipeline
from mlc.ir.types import MemRefType, TensorType
from mlc.passes import fix_numerics, inline

if TYPE_CHECKING:
    from pathlib import Path

Rows = tuple[tuple[str, str, str], ...]
"""(level, pass with options, reason for its place) of each pass."""

SHARED: Rows = (
    ("tensor", "constrain_sizes", "size constraints of a call, inferred from the operations as written"),
    ("tensor", "erase_shardings", "the code is for one device, not for the ranks of a mesh"),
    ("tensor", "decompose_complex", "derivatives, fusion and code are of real numbers"),
    ("tensor", "grad", "composites are differentiated whole, by rules of their own"),
    ("tensor", "inline", "simplification and fusion work within functions; large shared functions stay outlined"),
    ("tensor", "canonicalize", "derivatives contain sums with zero and products with one"),
    ("tensor", "cse", "forward and backward function have common subexpressions"),
    ("tensor", "dead_argument_elimination",
     "unused cotangents, across calls too; last, when uses are final"),
    ("loop", "block_attention", "attention and its derivative are whole, and final"),
    ("loop", "decompose", "the passes below handle primitives only"),
    ("loop", "canonicalize", "decompositions contain identities"),
    ("loop", "cse", "decompositions have common subexpressions: softmax and its derivative"),
    ("loop", "fix_numerics", "fixes reduction orders and approximations; later passes preserve every bit"),
    ("loop", "expand_concat", "kernels of many selects would be slow to compile and to run; before kernels are formed"),
    ("loop", "hoist_constants", "what is computed of weights is final, and is no part of kernels yet"),
    ("loop", "fuse", "values inside a kernel cost no memory traffic; needs canonical IR without duplicates"),
    ("loop", "assign_layouts", "the tensors between kernels are known; before they have buffers"),
    ("loop", "bufferize", "buffers for the values at kernel boundaries; in place where an operand dies"),
    ("loop", "tensor_to_loop", "access maps instead of tensor operations; needs buffers to load from"),
    ("loop", "coalesce_dimensions", "one long dimension fills vectors better than a short innermost one"),
)
FOR_CPU: Rows = (
    ("loop", "vectorize", "tile sizes and vector dimension; needs access maps for contiguity"),
    ("loop", "parallelize", "the work per tile depends on the schedule"),
    ("loop", "outline", "equal kernels are lowered and compiled once; the schedule is part of a kernel"),
    ("loop", "guard_updates", "whether a call may fail is known as long as all functions are there"),
    ("low", "loop_to_scf", "tiles become loops over vectors"),
    ("low", "canonicalize", "index arithmetic with zeros and ones, selects with constant conditions"),
    ("low", "cse", "accesses share address computations"),
    ("low", "dce", "unused views and sizes"),
)
FOR_GPU: Rows = (
    ("loop", "distribute", "mapping of tiles to threads; needs access maps for coalescing"),
    ("loop", "outline", "equal kernels are lowered and compiled once; the schedule is part of a kernel"),
    ("low", "loop_to_gpu", "device functions of one thread, and their launches"),
    ("low", "canonicalize", "index arithmetic with zeros and ones, selects with constant conditions"),
    ("low", "cse", "accesses share address computations"),
    ("low", "dce", "unused views and sizes"),
)


def _rows(machine: Model) -> Rows:
    """The rows of a machine; the last pass is its vendor's, named by the model."""
    return (*SHARED, *(FOR_CPU if machine.order == "cpu" else FOR_GPU),
            ("llvm", machine.to_llvm, "one operation per instruction"))


DISTRIBUTED: Rows = (
    SHARED[0],
    SHARED[2],
    ("tensor", "mark_stages", "the cotangent of what goes to another stage comes back from there"),
    SHARED[3],
    ("tensor", "inline{all=true}", "shardings propagate within a function"),
    ("tensor", "canonicalize", "derivatives contain sums with zero and products with one"),
    ("tensor", "cse", "forward and backward function have common subexpressions"),
    ("tensor", "decompose", "sharding rules are those of primitives"),
    ("tensor", "canonicalize", "decompositions contain identities"),
    ("tensor", "cse", "decompositions have common subexpressions"),
    ("tensor", "dead_argument_elimination", "what is not used need not be divided"),
    ("tensor", "propagate_shardings", "how each tensor is divided; operations change no more until it is carried out"),
    ("tensor", "partition", "the program of one rank, with explicit collectives"),
    ("tensor", "canonicalize", "slices of constants"),
    ("tensor", "cse", "equal collectives of equal tensors"),
    ("tensor", "dce", "collectives whose results are not used"),
    ("tensor", "defer_reductions", "equal ones are one, and none is unused; before tasks and messages are made"),
    ("tensor", "split_stages", "the programs of the ranks of a pipeline"),
    ("tensor", "nccl_collectives", "for GPUs; blocks of rows can be combined, and segments move elements"),
    ("tensor", "combine_collectives", "after those that are equal or unused are gone"),
    ("tensor", "overlap_collectives", "there will be no other collectives; segments are between starts and waits"),
    ("tensor", "outline_segments", "what is between collectives is compiled like any program"),
)
"""(level, pass with options, reason for its place) of a program on a mesh, up to the segments of one rank."""


OVERLAPPED = {"combine_collectives": f"combine_collectives{{bucket={1 << 20}}}"}
"""Rows of a program in which collectives overlap with computation: a short bucket is on its way before the others."""


def distributed(overlap: bool, on_gpus: bool = False) -> list[Step]:
    """The passes of a program on a mesh; `overlap_collectives` only where collectives are to overlap, and
    `nccl_collectives` only for GPUs."""
    rows = [text for _, text, _ in DISTRIBUTED]
    if not on_gpus:
        rows.remove("nccl_collectives")
    if overlap:
        rows = [OVERLAPPED.get(text, text) for text in rows]
    else:
        rows.remove("overlap_collectives")
    return [step for text in rows for step in parse_pipeline(text)]


def splitting() -> Pipeline:
    """The passes that make a forward and a backward function of a joint one. What a call saves is saved whole, so fewer
    functions stay outlined than otherwise: none of the size of a norm."""
    rows = [{"inline": f"inline{{small={inline.KERNEL_THRESHOLD}}}"}.get(text, text)
            for level, text, _ in SHARED if level == "tensor"]
    return Pipeline([step for text in (*rows, "split_joint") for step in parse_pipeline(text)])


ORDERS = {machine.order: _rows(machine) for machine in (CPU, GPU)}
"""The rows of the default machines, by kind."""
ORDER = ORDERS["cpu"]
CHECKING = ("low", "insert_checks", "only for checked code; last of its level, so that the final code is checked")
"""Additional row of checked code, before the last pass."""
TIMING = ("loop", "time_kernels", "only for code that a profile times; equal kernels still have their own lines")
"""Additional row of timed code, before `outline`."""
BEFORE: tuple[tuple[str, str, str], ...] = (
    ("constrain_sizes", "canonicalize", "rewriting an operation drops its size constraints"),
    ("constrain_sizes", "decompose_complex", "rewriting an operation drops its size constraints"),
    ("decompose_complex", "grad", "derivatives are taken of real functions"),
    ("grad", "decompose", "composites have derivatives of their own"),
    ("block_attention", "decompose", "blocks are of attention, not of what it is made of"),
    ("decompose", "fix_numerics", "only primitives have a reduction order"),
    ("inline", "fuse", "kernels contain no calls"),
    ("cse", "fuse", "common subexpressions would be fused twice"),
    ("fix_numerics", "fuse", "fusion must not affect rounding"),
    ("fix_numerics", "hoist_constants", "a factor of a product is packed once its order is fixed"),
    ("hoist_constants", "fuse", "kernels are not split again"),
    ("fuse", "assign_layouts", "tensors within a kernel have no layout"),
    ("assign_layouts", "bufferize", "buffers have the layout of their tensors"),
    ("fuse", "bufferize", "only values at kernel boundaries need buffers"),
    ("vectorize", "loop_to_scf", "the lowering reads the tile sizes"),
    ("vectorize", "parallelize", "tiles are the unit of thread partitioning"),
    ("parallelize", "outline", "equal kernels of equal schedule are lowered once"),
    ("distribute", "outline", "equal kernels of equal schedule are lowered once"),
)
"""(earlier, later, reason): constraints on the order, asserted on import."""

LEVELS = ("tensor", "loop", "low", "llvm")


def _check_order() -> None:
    for rows in ORDERS.values():
        names = [text for _, text, _ in rows]
        for earlier, later, reason in BEFORE:
            if earlier in names and later in names:
                assert names.index(earlier) < names.index(later), f"{earlier} comes after {later}, but {reason}"


_check_order()


def order(machine: Model = CPU, added: Instrumentation = NONE) -> Rows:
    """Rows of the pipeline for a machine; for a CPU optionally with checks, or with the times of kernels."""
    rows = _rows(machine)
    if added is TIMES and machine.order == "cpu":
        at = [text for _, text, _ in rows].index("outline")
        return (*rows[:at], TIMING, *rows[at:])
    if added is not CHECKS:
        return rows
    if machine.order != "cpu":
        raise UserError("code for a GPU cannot be checked", code="MLC0482",
                        hint="check the same program on a CPU, where kernels have the same semantics")
    return (*rows[:-1], CHECKING, rows[-1])


def steps(level: str = "llvm", machine: Model = CPU, products: str = "fma",
          added: Instrumentation = NONE) -> list[Step]:
    """Passes that lower a module from the output of the frontend to `level`.

    machine   machine model, for the passes with such an option
    products  lowering of matrix products, an option of fix_numerics: other than fma, the machine must support it
    added     what the code has besides: checks, by insert_checks, or times, by time_kernels
    """
    if level not in LEVELS:
        raise UserError(f"there is no level {level!r}", code="MLC0334", hint="one of " + ", ".join(LEVELS))
    last = LEVELS.index(level)
    out: list[Step] = []
    for row_level, text, _ in order(machine, added):
        if LEVELS.index(row_level) <= last:
            out += parse_pipeline(text)
    return [Step(s.transform, (*s.options, *_options(s.transform, machine, products))) for s in out]


SCORES_ON_GPU = 1 << 31
"""Bytes of the scores that attention on a GPU takes at once: few blocks would leave it idle, and fill no cache."""


KEYS = (64, 128)
"""Keys that attention takes at a time on tensor cores: by warps, and by warpgroups."""


def _options(transform: Pass, machine: Model, products: str) -> tuple[tuple[str, object], ...]:
    """Machine-dependent options of a pass that differ from its defaults."""
    if transform.name == "fix_numerics":
        of = {"tiles": machine.bf16_tiles, "byte_tiles": machine.byte_tiles} if isinstance(machine, Cpu) else {}
        changed = {"products": products, "lanes": machine.order == "cpu", **of}
        return tuple((name, value) for name, value in changed.items() if value != transform.defaults[name])
    if transform.name == "hoist_constants":                # on GPUs, products read their factors through shared memory
        cpu = machine.of(Cpu) if machine.order == "cpu" else None
        wanted = {} if cpu is None else {"panels": True, "pairs": cpu.bf16_dot, "quads": cpu.byte_dot}
        return tuple((name, True) for name, value in wanted.items() if value)
    if transform.name in ("block_attention", "decompose") and machine.order != "cpu":
        return _options_of_attention(transform.name, machine, products)
    default = transform.defaults.get("machine")
    restricted = machine.of(type(default)) if isinstance(default, Machine) else None
    return () if restricted == default else (("machine", restricted),)


def _options_of_attention(name: str, machine: Model, products: str) -> tuple[tuple[str, object], ...]:
    """Tensor cores compute attention in one kernel, if products may take them at all."""
    gpu = machine.of(Gpu)
    assert isinstance(gpu, Gpu)
    kernel = products != "fma" and gpu.tensor_cores
    if name == "decompose":
        return (("kernels", True),) * kernel
    return (("most", SCORES_ON_GPU), ("block", SCORES_ON_GPU), *((("keys", KEYS[gpu.warpgroup_mma]),) * kernel))


def below_loop(machine: Model = CPU, added: Instrumentation = NONE) -> list[Step]:
    """The passes below level `loop`, which work on each function by itself."""
    return steps("llvm", machine, added=added)[len(steps("loop", machine, added=added)):]


def build(level: str = "llvm", machine: Model = CPU, products: str = "fma",
          added: Instrumentation = NONE) -> Pipeline:
    """Build the pipeline of `steps` and check that it composes."""
    return Pipeline(steps(level, machine, products, added))


def lower(module: Op, level: str = "llvm", machine: Model = CPU, instruments: Instruments | None = None,
          dump_dir: Path | None = None, products: str = "fma", added: Instrumentation = NONE) -> Op:
    """Lower `module` in place to `level`, and return it."""
    if dump_dir is not None:
        instruments = instruments or Instruments()
        instruments.dump_dir = dump_dir
    return build(level, machine, products, added).run(module, instruments)


def stage(module: Op, machine: Model = CPU) -> int:
    """Index of the pass that `module` is ready for, inferred from its operations, so that any dump can be resumed.

    Passes above fix_numerics are idempotent, so all of them run again.
    """
    used = {op.name for op in module.walk()}
    dialects = {name.split(".")[0] for name in used}
    rows = _rows(machine)
    if dialects <= {"builtin", "llvm"} or ("gpu" in dialects and "llvm.func" in used):
        return len(rows)
    names = [text.split("{")[0] for _, text, _ in rows]
    if "tensor.kernel" in used:
        return names.index("tensor_to_loop" if _has_values_of(module, MemRefType) else "bufferize")
    if dialects & {"tensor", "autodiff"} or _has_values_of(module, TensorType):
        return names.index("hoist_constants") if fix_numerics.is_fixed(module) else 0
    lowering = "loop_to_scf" if machine.order == "cpu" else "loop_to_gpu"
    return names.index("tensor_to_loop" if "loop" in dialects else lowering) + 1


def _has_values_of(module: Op, type: type) -> bool:
    return any(isinstance(value.type, type) for op in module.walk()
               for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)))


def remaining(module: Op, level: str = "llvm", machine: Model = CPU, products: str = "fma",
              added: Instrumentation = NONE) -> list[Step]:
    """Passes that lower `module` from its current level to `level`."""
    rows, everything = _rows(machine), steps(level, machine, products, added)
    done = stage(module, machine)
    if done > len(everything):
        raise UserError(f"the module is at level {rows[min(done, len(rows) - 1)][0]} already, below {level}",
                        code="MLC0335", hint="choose a lower level, or start from an earlier dump")
    if added is CHECKS and done == len(rows):
        raise UserError("a module of the llvm dialect cannot be checked: the memory of an access is unknown",
                        code="MLC0482", hint="start from an earlier dump")
    if added is TIMES and done > [text for _, text, _ in rows].index("outline"):
        done += 1                                          # its row is there too, and has been passed
    return everything[done:]


def resume(module: Op, level: str = "llvm", machine: Model = CPU, instruments: Instruments | None = None,
           added: Instrumentation = NONE) -> Op:
    """Lower a module of any level, such as a dump of a pass, in place to `level`."""
    return Pipeline(remaining(module, level, machine, added=added)).run(module, instruments)
