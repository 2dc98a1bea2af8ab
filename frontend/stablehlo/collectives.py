"""Operations that need other devices or the host, which are refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlc.frontend.stablehlo.interpreter import constant
from mlc.frontend.stablehlo.table import REFUSED, row

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step

for _name in ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "reduce_scatter",
              "async_start", "async_done", "cross-replica-sum"):
    REFUSED[f"stablehlo.{_name}"] = "it communicates with other devices, and programs run on one"
for _name in ("infeed", "outfeed", "send", "recv"):
    REFUSED[f"stablehlo.{_name}"] = "it communicates with the host while the program runs"
for _name in ("uniform_quantize", "uniform_dequantize"):
    REFUSED[f"stablehlo.{_name}"] = "quantized types are not supported"
REFUSED["stablehlo.set_dimension_size"] = "bounded sizes are not supported"


@row("stablehlo.partition_id", "stablehlo.replica_id")
def number_of_device(step: Step) -> Any:
    """There is one device, number 0."""
    import numpy as np
    return constant(np.zeros((), np.uint32))
