"""Module-wide error sites and work estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlc.dialects import func, scf
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.dialects.tensor.control import trip_count
from mlc.dialects.tensor.kernel import Kernel
from mlc.ir import sizes
from mlc.ir.core import Block
from mlc.ir.interp import ASSERTION
from mlc.ir.sizes import Dim
from mlc.passes.analysis.kernel_boundary import REGIONS

UNBOUNDED = None
"""Work of a call with loops of data-dependent trip count, and work that would take long to estimate in each call."""
TERMS = 32
"""Most terms of an estimate: sizes that are sums of several symbols have products of hundreds of terms."""


class Sites:
    """Error sites of a module: possible out-of-range indices and failing assertions, numbered in program order."""

    def __init__(self, module: Module) -> None:
        self.names: list[str] = []
        self.first: dict[Kernel | tn.FailIf, int] = {}  # the number of its first site
        self.reached: dict[str, bool] = {}              # whether a function or a callee has error sites
        seen: set[str] = set()
        for function in sorted(func.functions(module), key=lambda f: not f.is_public):
            self.number(function, {f.sym_name: f for f in func.functions(module)}, seen)
        for function in func.callees_first(module):
            self.reached[function.sym_name] = any(
                self.reached.get(op.callee, False) if isinstance(op, func.Call) else bool(sites_of(op))
                for op in _steps(function))

    def number(self, function: Func, table: Mapping[str, Func], seen: set[str]) -> None:
        """Number the sites of a function, and of each callee at its first call."""
        work: list[Func | Kernel | tn.FailIf | func.Call] = [function]
        while work:
            op = work.pop()
            if isinstance(op, Kernel | tn.FailIf):
                self.first[op] = len(self.names)
                self.names += sites_of(op)
                continue
            following = table[op.callee] if isinstance(op, func.Call) else op
            if following.sym_name not in seen:
                seen.add(following.sym_name)
                work += reversed(_steps(following))


def _steps(function: Func) -> list[Kernel | tn.FailIf | func.Call]:
    return [op for op in function.walk() if isinstance(op, Kernel | tn.FailIf | func.Call)]


def sites_of(step: Kernel | tn.FailIf) -> list[str]:
    """Error sites of a kernel or an assertion, as `file:line:col: message`."""
    if isinstance(step, tn.FailIf):
        return [f"{step.loc}: {ASSERTION}{step.message}"]
    return [f"{op.loc}: an index of {op.name.removeprefix('tensor.')} is out of range for axis {op.axis} of size "
            f"{op.x.type.shape[op.axis]}" for op in step.checked]


def work_of(block: Block, of_call: Callable[[func.Call], Dim | None]) -> Dim | None:
    """Estimated scalar operations of a block: points times operations, over all kernels."""
    total: Dim = 0
    for op in block:
        found: Dim | None = 0
        if isinstance(op, Kernel):
            found = _of_kernel(op)
        elif isinstance(op, func.Call):
            found = of_call(op)
        elif isinstance(op, REGIONS):
            found = _of_regions(op, of_call)
        if found is UNBOUNDED:
            return UNBOUNDED
        total = total + found
        if isinstance(total, sizes.Size) and len(total.terms) > TERMS:
            return UNBOUNDED
    return total


def _of_regions(op: scf.For | scf.If | scf.While, of_call: Callable[[func.Call], Dim | None]) -> Dim | None:
    inner = [work_of(b, of_call) for region in op.regions for b in region.blocks]
    if isinstance(op, scf.While) or any(n is UNBOUNDED for n in inner):
        return UNBOUNDED
    total: Dim = sum((n for n in inner if n is not None), 0)
    if isinstance(op, scf.If):
        return total
    count = trip_count(op)
    return UNBOUNDED if count is None else total * count


def _of_kernel(kernel: Kernel) -> Dim:
    total: Dim = 0
    for op in kernel.body.block:
        for r in op.results:
            points = r.type.size
            if isinstance(op, tn.DotGeneral):
                points = points * sizes.product(op.lhs.type.shape[a] for a, _ in op.contract)
            total = total + points
    return total


