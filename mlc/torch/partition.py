"""Division of a graph between mlc and PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from mlc.frontend.fx.support import NUMBERS, SIZES, unsupported

PREFIX = "mlc_part_"


def partitioned(graph: Any, refused: Collection[str], compile_part: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function that runs a graph: what mlc has in as few parts as possible, the rest by PyTorch.

    refused       the names of the nodes that PyTorch runs
    compile_part  makes a function of a part, a graph of its own
    """
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Support(OperatorSupportBase):  # type: ignore[misc]
        """The nodes of parts: tensor operators that mlc has; numbers are computed outside."""

        def is_node_supported(self, submodules: Any, node: Any) -> bool:
            return node.op == "call_function" and node.name not in refused and not _is_number(node) and (
                unsupported(node) is None)

    partitioner = CapabilityBasedPartitioner(graph, Support(), allows_single_node_partition=True)
    parts = [p for p in partitioner.propose_partitions() if any(_computes(n) for n in p.nodes)]
    fused = partitioner.fuse_partitions(parts, prefix=PREFIX)
    for name, part in list(fused.named_children()):
        if name.startswith(PREFIX):
            function = compile_part(part)
            delattr(fused, name)
            setattr(fused, name, _unpacked(part, function))
    fused.recompile()
    return fused  # type: ignore[no-any-return]


def _unpacked(part: Any, function: Any) -> Any:
    """The function of a part, which returns one result by itself if the part does."""
    output = next(n for n in part.graph.nodes if n.op == "output").args[0]
    if isinstance(output, tuple | list):
        return function
    return lambda *arguments: function(*arguments)[0]


def _is_number(node: Any) -> bool:
    """Whether a node computes a number."""
    value = node.meta.get("val")
    return str(node.target) in SIZES or (node.target in NUMBERS and not hasattr(value, "dtype")
                                         and not isinstance(value, tuple | list))


def _computes(node: Any) -> bool:
    return node.op == "call_function" and node.target not in NUMBERS
