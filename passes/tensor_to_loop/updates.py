"""Lowering of updates in place: only the elements that change are computed and stored."""

from __future__ import annotations

from mlc.dialects import loop
from mlc.dialects.tensor.kernel import Kernel
from mlc.ir.core import Block, Region, at_end, before
from mlc.passes.tensor_to_loop.evaluate import Index, KernelBuilder
from mlc.passes.tensor_to_loop.windows import starts


class UpdateBuilder(KernelBuilder):
    """Builds the `loop.kernel` of a dynamic_update_slice whose result has the buffer of its operand: the domain is the
    piece, and the rest stays as it is."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        op = kernel.update_of_piece()
        assert op is not None
        self.op = op
        self.shape = op.update.type.shape
        self.dims = max(1, len(self.shape))

    def build(self) -> None:
        kernel, op = self.kernel, self.op
        piece: Index = tuple(loop.coordinate(d) if n != 1 else 0 for d, n in enumerate(self.shape))
        block = Block()
        with at_end(block, kernel.loc):
            first = starts(self, op.starts, [n - d for n, d in zip(op.x.type.shape, self.shape)])
            value = self.value(op.update, piece, None)
            self.store(value, op.x.type.dtype, kernel.outs[0], tuple(a + i for a, i in zip(first, piece)))
            loop.End()
        domain = self.shape or (1,)
        with before(kernel):
            loop.Kernel(kernel.sizes, Region(block), symbols=kernel.symbols, domain=domain,
                        iterator_types=loop.iterator_types(len(domain), len(domain)),
                        schedule=loop.Schedule((1,) * len(domain)), label=kernel.label)


def updates_in_place(kernel: Kernel) -> bool:
    """Whether a kernel updates a piece of the buffer that its result has."""
    op = kernel.update_of_piece()
    return op is not None and any(
        arg is op.x and buffer is kernel.outs[0] for arg, buffer in zip(kernel.body.block.args, kernel.ins))
