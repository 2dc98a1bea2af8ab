"""The graphs that were compiled: how many of their operators mlc runs, and which it leaves to PyTorch."""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

from mlc.frontend.fx.interpreter import Refusal
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError

RECENT = 4096
"""Number of graphs that are remembered."""
_graphs: deque[GraphReport] = deque(maxlen=RECENT)


class Source:
    """The origin of a graph: the tensors that it was given."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        self._tensors = [weakref.ref(x) for x in tensors]

    @staticmethod
    def of(graph_module: Any) -> Source:
        """The source of a graph of torch.compile."""
        given = (n.meta.get("grapharg") for n in graph_module.graph.nodes if n.op == "placeholder")
        examples = [x for x in (getattr(a, "example", None) for a in given) if hasattr(x, "dtype")]
        attributes = [*graph_module.parameters(), *graph_module.buffers()]
        return Source([*examples, *attributes])

    def uses(self, tensors: Sequence[Any]) -> bool:
        """Whether one of these tensors was among what the graph was given."""
        numbers = {id(x) for x in tensors}
        return any(id(x) in numbers for x in (ref() for ref in self._tensors) if x is not None)


class GraphReport:
    """One graph.

    kind       "forward", "backward" or "inference"
    operators  number of calls of operators
    refusals   those that PyTorch runs
    """

    def __init__(self, kind: str, operators: int, refusals: Sequence[Refusal], source: Source) -> None:
        self.kind, self.operators, self.source = kind, operators, source
        self.refusals = list(refusals)

    def add(self, refusals: Sequence[Refusal]) -> None:
        """Note further nodes that PyTorch runs."""
        known = {r.node for r in self.refusals}
        self.refusals += [r for r in refusals if r.node not in known]

    def __str__(self) -> str:
        ours = self.operators - len(self.refusals)
        lines = [f"{self.kind}: {ours} of {self.operators} operators in mlc"]
        return "\n".join([*lines, *(f"  {line}" for line in refusal_lines(self.refusals))])


def refusal_lines(refusals: Sequence[Refusal]) -> list[str]:
    """A line for each operator, reason and line of the program, the most frequent first."""
    counted = Counter((r.operator, r.reason, r.line) for r in refusals)
    return [f"{operator} x {count}: {reason}" + (f", at {line}" if line else "")
            for (operator, reason, line), count in counted.most_common()]


def remember(report: GraphReport) -> None:
    """Keep the report of a graph."""
    _graphs.append(report)


def reports(model: Any = None) -> list[GraphReport]:
    """The graphs of a model, or all that are remembered."""
    if model is None:
        return list(_graphs)
    if not hasattr(model, "parameters"):
        raise UserError(f"a {type(model).__name__} has no parameters that tell its graphs", code="MLC0792",
                        loc=user_loc(), hint="without an argument, report() is about all that was compiled")
    tensors = [*model.parameters(), *model.buffers()]
    return [g for g in _graphs if g.source.uses(tensors)]


def report(model: Any = None) -> str:
    """Describe what was compiled with `backend="mlc"`: operators that mlc runs, and those that it leaves to PyTorch.

    Args:
        model: Module, compiled or not, whose graphs are described: those that have one of its parameters or buffers
            among their arguments. None for all that were compiled in this process.

    Returns:
        Text: a line for each graph, and below it the operators that PyTorch runs, why, and from which line of the
            program.

    Raises:
        UserError: MLC0792, the argument is no module.

    Example:
        >>> import torch
        >>> model = torch.compile(torch.nn.Linear(2, 3), backend=mlc.torch.backend)
        >>> with torch.no_grad():
        ...     _ = model(torch.ones(1, 2))
        >>> print(mlc.torch.report(model))
        1 graph, 100 % of 2 operators in mlc
        inference: 2 of 2 operators in mlc
    """
    found = reports(model)
    total = sum(g.operators for g in found)
    ours = total - sum(len(g.refusals) for g in found)
    head = f"{len(found)} graph{'s' * (len(found) != 1)}, {100 * ours // max(total, 1)} % of {total} operators in mlc"
    return "\n".join([head, *map(str, found)])
