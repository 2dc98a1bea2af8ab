"""A recorded module at one of the levels that the compiler takes it through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlc.frontend.location import user_loc
from mlc.ir import html
from mlc.ir.core import Op
from mlc.ir.diag import UserError
from mlc.ir.printer import to_text

if TYPE_CHECKING:
    from mlc.backends.target import Target


class Lowered:
    """A recorded module at one of the levels, as `mlc.lower` returns it.

    Args:
        module: The module as it was recorded; it is lowered in place.
        level: "trace", or a level of `mlc.passes.pipeline`: "tensor", "loop", "low" or "llvm".
        gpu: The GPU to lower for; None for this machine's CPU.
        precision: How matrix products of float32 are computed on a GPU, as `mlc.set_float32_matmul_precision` has it.

    Attributes:
        level: The level.
        module: The module.

    Raises:
        UserError: There is no such level (MLC0334).

    Example:
        >>> lowered = mlc.lower(lambda x: x + x, [mlc.spec(3)], level="trace")
        >>> lowered.level, "tensor.add" in lowered.to_text()
        ('trace', True)
    """

    def _repr_html_(self) -> str:
        return html.folded(f"level {self.level}", html.module(self.to_text()), True)

    def __init__(self, module: Op, level: str, gpu: Target | None = None,
                 precision: str | None = None) -> None:
        from mlc.backends.cpu.targets import host
        from mlc.passes import pipeline
        if level not in ("trace", *pipeline.LEVELS):
            raise UserError(f"there is no level {level!r}", code="MLC0334", loc=user_loc(),
                            hint="one of trace, " + ", ".join(pipeline.LEVELS))
        self.level = level
        self.module = module if level == "trace" else pipeline.lower(
            module, level, (gpu or host()).machine,
            products=gpu.products(precision) if gpu else "fma")

    def to_text(self, generic: bool = False, locations: bool = False) -> str:
        """The text of the module, in the pretty printing or in the generic one that any MLIR tool reads."""
        return to_text(self.module, generic, locations)

    __str__ = to_text
