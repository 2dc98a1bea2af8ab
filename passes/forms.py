"""The named forms of a module between passes: permitted dialects and invariants, from the frontend's output to LLVM."""

from __future__ import annotations

from mlc.dialects import shard
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.dialects.tensor.contract import DotGeneral
from mlc.dialects.tensor.cumulative import Cumulative
from mlc.dialects.tensor.orders import order_of
from mlc.dialects.tensor.reduce import Reduce
from mlc.dialects.tensor.traits import is_host, is_view
from mlc.ir.core import Op
from mlc.ir.diag import IRError
from mlc.ir.passes import Form
from mlc.ir.types import ComplexType, TensorType


def is_composite(op: Op) -> bool:
    """Whether an operation is a composite, which its `decompose` expands to others."""
    return hasattr(op, "decompose")


def no_complex(module: Op) -> None:
    """No tensor has complex elements."""
    for op in module.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            if isinstance(value.type, TensorType) and isinstance(value.type.dtype, ComplexType):
                raise IRError(f"{op.name} has a {value.type}", code="MLC0140", loc=op.loc, hint="run decompose-complex")


def no_composites(module: Op) -> None:
    """Every operation is a primitive."""
    for op in module.walk():
        if is_composite(op):
            raise IRError(f"{op.name} is composite", code="MLC0141", loc=op.loc, hint="run decompose")


def in_order(module: Op) -> None:
    """Every reduction, scan and product of matrices says in which order it adds."""
    for op in module.walk():
        if isinstance(op, Reduce | Cumulative | DotGeneral):
            order_of(op)


def in_kernels(module: Op) -> None:
    """Tensor computations are in kernels; outside are views, constants, scalars, calls and control flow only."""
    for op in module.walk():
        if not (is_host(op) or is_view(op)) and _is_outside(op):
            raise IRError(f"{op.name} is outside a kernel", code="MLC0162", loc=op.loc, hint="run fuse")


def _is_outside(op: Op) -> bool:
    """Whether an operation is at host level: in a function, or in a loop or conditional of one, but in no kernel."""
    parent = op.parent_op
    return parent is None or isinstance(parent, Module | Func) or parent.name.startswith("scf.")


def in_buffers(module: Op) -> None:
    """Tensors exist inside kernels only: functions and host-level operations work on memory."""
    for op in module.walk():
        holds = isinstance(op, Func) or op.name.startswith("scf.")
        values = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.args if holds)]
        if _is_outside(op) and any(isinstance(v.type, TensorType) for v in values):
            raise IRError(f"{op.name} has tensors outside of kernels", code="MLC0162", loc=op.loc,
                          hint="run bufferize")


COLLECTIVES = frozenset(op.name for op in vars(shard).values() if isinstance(op, type)
                        and issubclass(op, shard.Collective | shard.ProcessIndex | shard.Message | shard.Wait)
                        and op.name)
"""The names of operations that only the program of one rank has."""

TENSOR = Form("tensor", frozenset({"builtin", "func", "tensor", "autodiff", "scf", "arith", "shard"}),
              without=COLLECTIVES)
"""Output of the frontend: value semantics, and derivatives as operations."""

REAL = Form("real", TENSOR.dialects, (no_complex,), without=COLLECTIVES)
"""Complex tensors are replaced by their parts."""

DIFFERENTIATED = Form("differentiated", frozenset({"builtin", "func", "tensor", "scf", "arith", "shard"}),
                      (no_complex,), without=COLLECTIVES)
"""Derivatives are expanded to ordinary operations."""

DECOMPOSED = Form("decomposed", DIFFERENTIATED.dialects, (no_complex, no_composites), without=COLLECTIVES)
"""Composites such as softmax are decomposed to primitives."""

PARTITIONED = Form("partitioned", DIFFERENTIATED.dialects, (no_complex, no_composites))
"""The program of one rank: tensors are shards, and there are collectives."""

FIXED = Form("fixed", frozenset({"builtin", "func", "tensor", "scf", "arith", "math"}),
             (no_complex, no_composites, in_order))
"""Every reduction has an order of addition; transcendental functions are polynomials."""

FUSED = Form("fused", FIXED.dialects | {"loop"}, (*FIXED.invariants, in_kernels))
"""Tensor operations are in kernels, each with one iteration domain."""

BUFFERIZED = Form("bufferized", FUSED.dialects | {"memref"}, (*FUSED.invariants, in_buffers))
"""Kernels of tensor operations read and write buffers of one memory plan."""

LOOP = Form("loop", frozenset({"builtin", "func", "loop", "scf", "arith", "math", "memref", "profile"}))
"""Kernels are loops over blocks of points; control flow around them is scf. Timed code reads a clock."""

LOW = Form("low", frozenset({"builtin", "func", "arith", "math", "scf", "memref", "vector", "x86vector", "amx",
                             "profile"}))
"""Loops, memory and vectors, with the names and semantics of upstream MLIR; and the clock of timed code."""

GPU = Form("gpu", LOW.dialects | {"gpu", "nvgpu", "nvvm", "llvm"})
"""The same, plus gpu functions, each the code of one thread; of nvvm and llvm only instructions without another form:
products of warpgroups."""

NVVM = Form("nvvm", GPU.dialects)
"""Kernels are llvm functions; host code is unchanged."""

LLVM = Form("llvm", frozenset({"builtin", "llvm"}))
"""One operation per LLVM instruction."""
