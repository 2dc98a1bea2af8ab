"""Descriptions of ONNX models, with all of them that mlc does not run."""

from __future__ import annotations

import os
from collections import Counter

from mlc.frontend.onnx.interpreter import missing
from mlc.frontend.onnx.model import read, type_text
from mlc.frontend.onnx.values import Array
from mlc.ir.diag import UserError
from mlc.model_description import ModelDescription
from mlc.onnx.module import Program, settle


def describe(path: str | os.PathLike[str]) -> ModelDescription:
    """The parts of an ONNX file; UserError MLC0840 if it is none."""
    model = read(path)
    unsupported = missing(model)
    program = Program(model, {})
    program.refused = []
    try:
        settle(program)
    except UserError as error:
        known = [e for e in program.refused or [error] if e.code != "MLC0841" or not unsupported]
        unsupported += dict.fromkeys("; ".join((e.message, *e.notes)) for e in known)
    parameters = {n: x for n, x in model.weights.items() if n not in program.fixed and x.dtype.kind not in "iub"}
    constants = {n: x for n, x in model.weights.items() if n not in parameters}
    graph = model.proto.graph
    return ModelDescription(
        inputs=[f"{n}: {type_text(t)}" for n, t in model.inputs],
        outputs=[f"{o.name}: {type_text(o.type)}" for o in graph.output],
        parameters=[f"{n}: {array_text(x)}" for n, x in parameters.items()],
        constants=[f"{n}: {array_text(x)}" for n, x in constants.items()],
        operations=[f"{n} x {k}" for n, k in Counter(
            f"{node.domain + '.' if node.domain else ''}{node.op_type}" for node in graph.node).most_common()],
        unsupported=unsupported,
        sizes=(sum(x.size for x in parameters.values()), sum(x.size for x in constants.values()), len(graph.node)))


def array_text(x: Array) -> str:
    """The type of an array, such as float32[2, 3]."""
    return f"{'string' if x.dtype.kind == 'U' else x.dtype.name}[{', '.join(map(str, x.shape))}]"
