"""Graphs as functions: compiled once, for symbolic sizes too, or once for the sizes of each call."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from mlc.code import Placement
from mlc.ir.diag import UserError
from mlc.torch.recording import Recording
from mlc.torch.reports import GraphReport
from mlc.torch.specialization import Specialization

log = logging.getLogger("mlc.torch")
RECENT = 64
"""Number of sizes that code is kept for."""


def examples(graph: Any) -> list[Any]:
    """The arguments that a graph was traced with, fake tensors and numbers."""
    return [n.meta["val"] for n in graph.graph.nodes if n.op == "placeholder"]


def is_static(arguments: Sequence[Any]) -> bool:
    """Whether all sizes and numbers among the arguments are known."""
    return all(isinstance(n, int | float | bool | None) for x in arguments
               for n in ((*x.shape, *x.stride()) if hasattr(x, "dtype") else (x,)))


class GraphFunction:
    """A graph, or a part of one, that mlc runs.

    report  where it is noted if PyTorch has to run it, after all
    """

    def __init__(self, graph: Any, settings: Mapping[str, Any], report: GraphReport,
                 recording: Recording | None = None) -> None:
        self.graph, self.report = graph, report
        self.placement = Placement(precision=settings["matmul_precision"], threads=settings["threads"],
                                   cache=settings["cache"])
        self.known: dict[Any, Any] = {}
        arguments = examples(graph)
        self.only: Any = self._for_all_sizes(arguments)
        if is_static(arguments):
            self.only = self._specialize(recording or Recording(graph, arguments))

    def __call__(self, *arguments: Any) -> Any:
        """The results of the graph."""
        if self.only is not None:
            return self.only(arguments)
        key = tuple((x.shape, x.stride()) if hasattr(x, "dtype") else x for x in arguments)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._specialize(Recording(self.graph, arguments))
            if len(self.known) > RECENT:
                del self.known[next(iter(self.known))]
        return found(arguments)

    def _for_all_sizes(self, arguments: Sequence[Any]) -> Specialization | None:
        """Code for symbolic sizes; None if there are none, or if they have to be numbers."""
        if is_static(arguments):
            return None
        try:
            recording = Recording(self.graph, arguments, dynamic=True)
            if recording.refusals or not recording.results:
                return None
            found = Specialization(recording, self.placement)
        except UserError as error:
            log.info("sizes become numbers: %s", error.message)
            return None
        return found

    def _specialize(self, recording: Recording) -> Any:
        """Code for a recording, or the graph as PyTorch runs it, if some of it is refused."""
        if not recording.refusals:
            return Specialization(recording, self.placement)
        self.report.add(recording.refusals)
        return lambda arguments: self.graph(*arguments)
