"""Lowering of scatters: each row of x is copied, then updated sequentially."""

from __future__ import annotations

from collections.abc import Callable

from mlc.dialects import loop
from mlc.dialects import tensor as tn
from mlc.dialects.tensor.iteration import delinear
from mlc.dialects.tensor.kernel import Kernel
from mlc.dialects.tensor.scatter import Scattering
from mlc.ir.core import Block, Region, Value, at_end, before, builder
from mlc.ir.sizes import Dim
from mlc.passes.tensor_to_loop.evaluate import Index, KernelBuilder


class ScatterBuilder(KernelBuilder):
    """Builds the `loop.kernel` of one scatter: rows are parallel, with two sequential loops along the axis."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        op = self.outputs[0].op
        if not isinstance(op, Scattering) or len(self.outputs) != 1:
            kernel.fail("holds more than a scatter and what it reads", code="MLC0170")
        self.op: Scattering = op
        self.axes = tuple(d for d, kind in enumerate(kernel.iterator_types) if kind == "parallel")
        self.shape: Index = tuple(kernel.domain[d] for d in self.axes)
        self.dims = len(self.shape) + 2

    def build(self) -> None:
        kernel, op, last = self.kernel, self.op, len(self.shape)
        x, out = op.x.type, kernel.outs[0]
        block = Block()
        with at_end(block, kernel.loc):
            if op.x.op is not None or self.buffers[op.x] is not out:
                at = self.row(loop.coordinate(last))
                self.loop(last, lambda: self.store(self.value(op.x, at, None), x.dtype, out, at))
            self.loop(last + 1, self.update)
            loop.End()
        updates = op.updates.type.shape
        count = op.indices.type.size if isinstance(op, tn.Scatter) else updates[op.axis]
        with before(kernel):
            loop.Kernel(kernel.sizes, Region(block), symbols=kernel.symbols, label=kernel.label,
                        domain=(*self.shape, x.shape[op.axis], count), schedule=loop.Schedule((1,) * (last + 2)),
                        iterator_types=loop.iterator_types(last + 2, last))

    def row(self, position: Dim) -> Index:
        """An index of x in the current row."""
        at: list[Dim] = [position] * (len(self.shape) + 1)
        for d, a in enumerate(self.axes):
            at[a] = loop.coordinate(d)
        return tuple(0 if n == 1 and a != self.op.axis else i for a, (i, n) in enumerate(zip(at, self.op.x.type.shape)))

    def loop(self, dim: int, body: Callable[[], None]) -> None:
        """Build a loop without carried values and with a scope of its own for evaluated values."""
        block, outer = Block(), dict(self.memo)
        with at_end(block, builder.loc):
            body()
            loop.Yield(())
        self.memo = outer
        loop.For((), Region(block), dim=dim)

    def update(self) -> None:
        """Combine one update into the row."""
        op, out, number = self.op, self.kernel.outs[0], loop.coordinate(len(self.shape) + 1)
        dtype = op.x.type.dtype
        if isinstance(op, tn.Scatter):
            inside, index = None, delinear(number, op.indices.type.shape)
            row = self.row(0)
            at = (*row[: op.axis], *index, *row[op.axis + 1:])
        else:
            inside = self.fits()
            index = at = self.row(number)
        position, mask = self.gathered(op, op.indices, index, inside)
        new = self.value(op.updates, at, inside)
        where = self.row(position)
        if op.combining is not None:
            old = self.load_from(out, dtype, where, mask)
            new = self.map([old, new], op.combining.emit)
        self.store(new, dtype, out, where, mask)

    def fits(self) -> Value | None:
        """Mask of the rows with updates: axes other than the scatter's may be shorter than those of x."""
        inside: Value | None = None
        for d, a in enumerate(self.axes):
            if (n := self.op.updates.type.shape[a]) != self.op.x.type.shape[a]:
                inside = self.both(inside, self.compare("slt", loop.coordinate(d), n))
        return inside
