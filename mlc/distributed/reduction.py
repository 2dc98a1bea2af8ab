"""How a collective combines the tensors of several ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.backends.transport.errors import RankError
from mlc.backends.transport.fold import check_kind
from mlc.backends.transport.nccl import combined
from mlc.frontend.location import user_loc


class ReduceOp:
    """An operation of `all_reduce`, `reduce` and `reduce_scatter`; `AVG` is of floats.

    Sums, means and products are taken in the order of the ranks, those of f16 and bf16 in f32 with one rounding at the
    end, so that all ranks, all backends and all repetitions have the same bits. Of tensors on GPUs NCCL combines the
    elements, in an order and with roundings of its own: all ranks have the same bits, and only integers those of the
    CPU.

    The operations are `SUM`, `AVG`, `PRODUCT`, `MIN`, `MAX`, `BAND`, `BOR` and `BXOR`.

    Args:
        name: Its name.
        kind: The kind that is folded, "mean" or a combining kind of the dialects.

    Returns:
        The operation.

    Example:
        >>> mlc.distributed.ReduceOp.SUM
        ReduceOp.SUM
    """

    SUM: ReduceOp
    AVG: ReduceOp
    PRODUCT: ReduceOp
    MIN: ReduceOp
    MAX: ReduceOp
    BAND: ReduceOp
    BOR: ReduceOp
    BXOR: ReduceOp

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind

    def __repr__(self) -> str:
        return f"ReduceOp.{self.name}"

    def check(self, x: Any) -> None:
        """RankError if elements of this type cannot be combined so, where they are."""
        if self is ReduceOp.AVG and x.dtype.kind in "biu":
            raise RankError(f"AVG is of floats, and these elements are of {x.dtype}", code="MLC0973", loc=user_loc(),
                            hint="convert the tensor first, or divide the sum")
        try:
            check_kind(self.kind, x.dtype)
            if not isinstance(x, np.ndarray):
                combined(x.dtype, self.kind)
        except RankError as error:
            raise error.at(user_loc()) from None


def check_op(op: Any, x: Any) -> None:
    """RankError unless `op` is an operation, and combines elements of this type."""
    if not isinstance(op, ReduceOp):
        raise RankError(f"op is {op!r}, which is no operation", code="MLC0974", loc=user_loc(),
                        hint="give one of mlc.distributed.ReduceOp, such as ReduceOp.SUM")
    op.check(x)


for _name, _kind in (("SUM", "add"), ("AVG", "mean"), ("PRODUCT", "mul"), ("MIN", "min"), ("MAX", "max"),
                     ("BAND", "and"), ("BOR", "or"), ("BXOR", "xor")):
    setattr(ReduceOp, _name, ReduceOp(_name, _kind))
