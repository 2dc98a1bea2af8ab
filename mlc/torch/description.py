"""Descriptions of programs of torch.export, with all of them that mlc does not run."""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import Any

from mlc.model_description import ModelDescription
from mlc.torch.compiler import first_recording, is_operator, operators
from mlc.torch.exported import load
from mlc.torch.recording import output_nodes
from mlc.torch.reports import refusal_lines


def describe(path: str | os.PathLike[str]) -> ModelDescription:
    """The parts of a file of torch.export; UserError MLC0835 if it is none."""
    program = load(path)
    refused = {r.node: r for r in (*first_recording(program.graph)[1], *program.refusals())}
    nodes = [n for n in program.graph.graph.nodes if is_operator(n)]
    results = [n.meta["val"] for n in output_nodes(program.graph)[len(program.assigned):] if hasattr(n, "meta")]
    parameters = {n: x for n, x in program.state.items() if n in program.parameters}
    buffers = {n: x for n, x in program.state.items() if n not in program.parameters}
    return ModelDescription(
        inputs=[f"{n}: {type_text(x)}" for n, x in zip(program.names, program.arguments)],
        outputs=[type_text(x) for x in results if hasattr(x, "dtype")],
        parameters=[f"{n}: {type_text(x)}" for n, x in parameters.items()],
        constants=[f"{n}: {type_text(x)}" for n, x in buffers.items()],
        operations=[f"{n} x {k}" for n, k in Counter(str(n.target) for n in nodes).most_common()],
        unsupported=refusal_lines(list(refused.values())),
        sizes=(elements(parameters.values()), elements(buffers.values()), operators(program.graph)))


def type_text(x: Any) -> str:
    """The type of a tensor, such as float32[2, 3]."""
    return f"{str(x.dtype).removeprefix('torch.')}[{', '.join(map(str, x.shape))}]"


def elements(tensors: Any) -> int:
    """The number of elements of all tensors."""
    return sum(math.prod(x.shape) for x in tensors)
