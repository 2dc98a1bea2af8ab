"""Operations whose sizes are operands: constants, or numbers that the sizes of arguments determine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlc.frontend.dtypes import of_ir
from mlc.frontend.stablehlo.moving import broadcast, counted, padded
from mlc.frontend.stablehlo.table import row
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step


@row("stablehlo.get_dimension_size")
def dimension_size(step: Step, x: Any) -> Any:
    axis = step.op.need("dimension")
    if not isinstance(axis, int) or not 0 <= axis < len(x.shape):
        step.op.wrong(f"there is no dimension {axis}")
    return O["cast"](O["add"](O["zeros"](1, dtype="int64")[0], x.shape[axis]), of_ir(step.op.array.dtype))


@row("stablehlo.dynamic_reshape")
def dynamic_reshape(step: Step, x: Any, shape: Any) -> Any:
    return O["reshape"](x, tuple(step.known(1)))


@row("stablehlo.dynamic_broadcast_in_dim")
def dynamic_broadcast(step: Step, x: Any, shape: Any) -> Any:
    return broadcast(step, x, step.known(1))


@row("stablehlo.dynamic_iota")
def dynamic_iota(step: Step, shape: Any) -> Any:
    return counted(step, step.op.need("iota_dimension"), step.known(0), of_ir(step.op.array.dtype))


@row("stablehlo.dynamic_pad")
def dynamic_pad(step: Step, x: Any, value: Any, low: Any, high: Any, interior: Any) -> Any:
    return padded(step, x, value, step.known(2), step.known(3), step.known(4))


@row("stablehlo.real_dynamic_slice")
def real_dynamic_slice(step: Step, x: Any, starts: Any, limits: Any, strides: Any) -> Any:
    a, b, s = step.known(1), step.known(2), step.known(3)
    return x[tuple(slice(*r) for r in zip(a, b, s))]


@row("stablehlo.torch_index_select")
def index_select(step: Step, x: Any, index: Any) -> Any:
    """The entries of a dimension at indices, after dimensions that both have in common."""
    axis, batch = int(step.op.get("dim", 0)), int(step.op.get("batch_dims", 0))
    if batch:
        step.op.refuse("batch dimensions")
    found = O["index_select"](x, axis, O["reshape"](O["cast"](index, "int64"), (-1,)))
    return O["reshape"](found, (*x.shape[:axis], *index.shape, *x.shape[axis + 1:]))

