"""Descriptions of programs of torch.export, with all of them that mlc does not run."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from mlc.torch.compiler import first_recording, is_operator, operators
from mlc.torch.exported import Program, load
from mlc.torch.recording import output_nodes
from mlc.torch.reports import refusal_lines


class Description:
    """The text of a program, and whether all of it is supported."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        program = Program(load(path))
        refused = {r.node: r for r in (*first_recording(program.graph)[1], *program.refusals())}
        self.supported = not refused
        nodes = program.graph.graph.nodes
        reasons = [refused[n.name] for n in nodes if n.name in refused and is_operator(n)]
        counts = Counter(str(n.target) for n in nodes if is_operator(n))
        results = [n.meta["val"] for n in output_nodes(program.graph)[len(program.assigned):] if hasattr(n, "meta")]
        parameters = {n: x for n, x in program.state.items() if n in program.parameters}
        buffers = {n: x for n, x in program.state.items() if n not in program.parameters}
        self.lines = [
            *section("inputs", [f"{n}: {type_text(x)}" for n, x in zip(program.names, program.arguments)]),
            *section("outputs", [type_text(x) for x in results if hasattr(x, "dtype")]),
            *section(f"parameters, {elements(parameters.values())} numbers",
                     [f"{n}: {type_text(x)}" for n, x in parameters.items()]),
            *section(f"buffers and constants, {elements(buffers.values())} numbers",
                     [f"{n}: {type_text(x)}" for n, x in buffers.items()]),
            *section(f"operations, {operators(program.graph)}", [f"{n} x {k}" for n, k in counts.most_common()]),
            *section("not supported", refusal_lines(reasons))]


def section(title: str, lines: Sequence[str]) -> list[str]:
    """A title and indented lines; "none" if there are none."""
    return [f"{title}:", *(f"  {line}" for line in lines)] if lines else [f"{title}: none"]


def type_text(x: Any) -> str:
    """The type of a tensor, such as float32[2, 3]."""
    return f"{str(x.dtype).removeprefix('torch.')}[{', '.join(map(str, x.shape))}]"


def elements(tensors: Any) -> int:
    """The number of elements of all tensors."""
    return sum(math.prod(x.shape) for x in tensors)
