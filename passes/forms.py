"""The named forms: which dialects a module may use between two passes, from what a user writes to LLVM."""

from __future__ import annotations

from mlc.dialects.tensor.traits import is_host, is_view
from mlc.ir.core import Op
from mlc.ir.diag import IRError
from mlc.ir.passes import Form
from mlc.ir.types import TensorType


def is_composite(op: Op) -> bool:
    """Whether an operation is a name for several others, which its `decompose` emits."""
    return hasattr(op, "decompose")


def no_composites(module: Op) -> None:
    """Every operation is a primitive."""
    for op in module.walk():
        if is_composite(op):
            raise IRError(f"{op.name} is composite", code="MLC0141", loc=op.loc, hint="run decompose")


def in_kernels(module: Op) -> None:
    """Tensor computations are in kernels; between them are views, constants, scalars, calls and control flow."""
    for op in module.walk():
        if not (is_host(op) or is_view(op)) and _is_outside(op):
            raise IRError(f"{op.name} stands outside a kernel", code="MLC0162", loc=op.loc, hint="run fuse")


def _is_outside(op: Op) -> bool:
    """Whether an operation stands in a function, or in a loop or condition there, and in no kernel."""
    parent = op.parent_op
    return parent is None or parent.name in ("builtin.module", "func.func") or parent.name.startswith("scf.")


def in_buffers(module: Op) -> None:
    """Tensors exist inside kernels only: functions and what stands between kernels work on memory."""
    for op in module.walk():
        holds = op.name == "func.func" or op.name.startswith("scf.")
        values = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.args if holds)]
        if _is_outside(op) and any(isinstance(v.type, TensorType) for v in values):
            raise IRError(f"{op.name} has tensors outside of kernels", code="MLC0162", loc=op.loc,
                          hint="run bufferize")


TENSOR = Form("tensor", frozenset({"builtin", "func", "tensor", "autodiff", "scf", "arith"}))
"""Output of the frontend: pure values, and derivatives as operations."""

DIFFERENTIATED = Form("differentiated", frozenset({"builtin", "func", "tensor", "scf", "arith"}))
"""Derivatives are ordinary operations."""

DECOMPOSED = Form("decomposed", DIFFERENTIATED.dialects, (no_composites,))
"""Composites such as softmax are spelled out in primitives."""

FIXED = Form("fixed", frozenset({"builtin", "func", "tensor", "scf", "arith", "math"}), (no_composites,))
"""Every float reduction says in which order it adds; transcendental functions are polynomials."""

FUSED = Form("fused", FIXED.dialects | {"loop"}, (no_composites, in_kernels))
"""Tensor operations stand in kernels, one parallel domain each."""

BUFFERIZED = Form("bufferized", FUSED.dialects | {"memref"}, (no_composites, in_kernels, in_buffers))
"""Kernels of tensor operations read and write memory that one plan has laid out."""

LOOP = Form("loop", frozenset({"builtin", "func", "loop", "scf", "arith", "math", "memref"}))
"""Kernels are loops over blocks of points; what decides which of them run is scf."""

LOW = Form("low", frozenset({"builtin", "func", "arith", "math", "scf", "memref", "vector"}))
"""Loops, memory and vectors, with upstream's names and meaning."""

GPU = Form("gpu", LOW.dialects | {"gpu", "nvgpu"})
"""The same, and functions for threads of a GPU."""

NVVM = Form("nvvm", GPU.dialects | {"llvm", "nvvm"})
"""Kernels are functions of LLVM instructions; what launches them is as it was."""

LLVM = Form("llvm", frozenset({"builtin", "llvm"}))
"""One operation per LLVM instruction."""
